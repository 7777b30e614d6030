"""Python environments, installed by a pinned uv from hashed requirements."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from setup.dag import SetupError, Step, Work
from setup.paths import HOME, REPO, REQUIREMENTS

UV = HOME / "uv" / "bin" / "uv"
# What a person configured for pip holds for uv too; nothing of it is written down here.
PIP_TO_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}


def uv_environment(pip_config: str, environment: dict[str, str]) -> dict[str, str]:
    """The environment with pip's configuration (as `pip config list` prints it) translated for uv.

    What is set for uv itself wins.
    """
    translated: dict[str, str] = {}
    for line in pip_config.splitlines():
        key, separator, value = line.partition("=")
        name = PIP_TO_UV.get(key.rpartition(".")[2])
        if separator and name:
            translated[name] = value.strip().strip("'\"")
    return {**translated, "UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never", **environment}


def _environment() -> dict[str, str]:
    listed = subprocess.run(
        [HOME / "uv" / "bin" / "python", "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    environment = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH")}
    return uv_environment(listed.stdout, environment)


def uv(work: Work, *arguments: str | Path) -> None:
    work.command(UV, *arguments, env=_environment(), attempts=4)


def install_into(work: Work, folder: Path, *requirements: Path, python: str = "") -> None:
    """Installs hashed requirements into a plain folder, for Python `python` (3.11) or the one that runs."""
    version = ("--python-version", python) if python else ()
    for file in requirements:
        uv(work, "pip", "install", "--target", folder, "--require-hashes", "--no-deps", "--python", sys.executable,
           *version, "-r", file)  # fmt: skip


def uv_step() -> Step:
    requirements = REQUIREMENTS / "uv.txt"

    def run(work: Work) -> None:
        folder = HOME / "uv"
        try:
            work.command(sys.executable, "-m", "venv", "--clear", folder)
        except SetupError as error:
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            raise SetupError(
                f"{sys.executable} cannot make a virtual environment ({error})",
                f"on Debian or Ubuntu: apt-get install python{version}-venv; then repeat",
            ) from error
        work.command(
            folder / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check", "--require-hashes",
            "-r", requirements, attempts=4,
        )  # fmt: skip

    return Step("uv", "network", run, (requirements, sys.version), (UV,), gib=0.2)


def environment_step(name: str, folder: Path, requirements: tuple[Path, ...], gib: float, editable: bool) -> Step:
    """A virtual environment with exactly these requirements; `editable` adds this checkout's own package."""
    inputs: tuple[Path | str, ...] = (*requirements, sys.version)
    if editable:
        inputs = (*inputs, REPO / "pyproject.toml")

    def run(work: Work) -> None:
        # Afresh: a package that an interruption left half installed looks installed. uv's cache makes it quick.
        uv(work, "venv", "--clear", "--python", sys.executable, folder)
        for file in requirements:
            uv(work, "pip", "install", "--python", folder, "--require-hashes", "--no-deps", "-r", file)
        if editable:
            uv(work, "pip", "install", "--python", folder, "--no-deps", "--no-build-isolation", "--editable", REPO)

    fix = "an interrupted download resumes on the next run; pip's configured index and proxy are used"
    return Step(name, "network", run, inputs, (folder / "bin" / "python",), ("uv",), fix, gib)

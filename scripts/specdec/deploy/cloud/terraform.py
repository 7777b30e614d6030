"""Terraform or OpenTofu on one root: python-terraform writes the arguments, nothing goes through a shell."""

from __future__ import annotations

import json
import logging
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from specdec.deploy.cloud import process
from specdec.deploy.cloud.events import Changes, Reader
from specdec.errors import SpecdecError

MINIMUM = (1, 9)


class Failed(Exception):
    """Terraform ended with an error; `reader` holds what it said."""

    def __init__(self, command: str, reader: Reader) -> None:
        super().__init__(command)
        self.command, self.reader = command, reader


def executable() -> str:
    """terraform or tofu on PATH, then in the repository's tools. Raises SpecdecError (SD850)."""
    own = Path(__file__).resolve().parents[4] / ".tools" / "bin"
    for name in ("terraform", "tofu"):
        if found := shutil.which(name) or shutil.which(name, path=str(own)):
            return found
    raise SpecdecError(
        "neither terraform nor tofu is on PATH",
        code="SD850",
        fix="make setup, or install Terraform 1.9 or OpenTofu 1.10",
    )


@cache
def version(path: str) -> str:
    """For example "1.11.4". Raises SpecdecError (SD850) for one that does not start or is too old."""
    try:
        run = subprocess.run([path, "version", "-json"], capture_output=True, text=True, timeout=60, check=False)
        found = str(json.loads(run.stdout)["terraform_version"])
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        raise SpecdecError(f"{path} does not say its version: {error}", code="SD850") from None
    numbers = tuple(int(number) for number in re.findall(r"\d+", found)[:2])
    if numbers < MINIMUM:
        raise SpecdecError(f"{path} is {found}; the modules need 1.9 or newer", code="SD850", fix="make setup")
    return found


class Terraform:
    """One root in its working folder. Every command runs to its end, with a log of its own."""

    def __init__(
        self,
        where: Path,
        logs: Path,
        *,
        line: Callable[[str], None] = lambda _: None,
        tick: Callable[[str], None] = lambda _: None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.where, self.logs, self.line, self.tick, self.warn = where, logs, line, tick, warn
        self.path = executable()
        version(self.path)

    @property
    def note(self) -> Path:
        """Where a running command is written down."""
        return self.logs / "running.json"

    @property
    def is_ready(self) -> bool:
        """Whether an init ended well here."""
        return (self.where / ".terraform" / "terraform.tfstate").is_file()

    def init(self, backend: Path, *, upgrade: bool = False) -> None:
        """Providers, modules, and the backend that `backend` configures. Raises Failed."""
        options = {"backend_config": str(backend), "upgrade": True} if upgrade else {"backend_config": str(backend)}
        self._stream("init", reconfigure=_FLAG, no_color=_FLAG, input=False, **options)

    def plan(self, out: Path, variables: Sequence[Path], *, destroy: bool = False) -> Reader:
        """Saves a plan; what it changes is in the reader. Raises Failed."""
        extra = {"destroy": _FLAG} if destroy else {}
        files = [str(file) for file in variables]
        return self._stream("plan", json=_FLAG, input=False, out=str(out), var_file=files, lock_timeout="20s", **extra)

    def apply(self, plan: Path) -> Reader:
        """Does what a saved plan says, and nothing else. Raises Failed, Interrupted."""
        return self._stream("apply", str(plan), json=_FLAG, input=False, lock_timeout="20s")

    def unlock(self, identifier: str) -> None:
        """Takes a lock away whose holder is dead. Raises Failed."""
        self._stream("force-unlock", identifier, force=_FLAG)

    def forget(self, addresses: Sequence[str]) -> None:
        """Takes entries out of the state; what they stand for is left alone. Raises Failed."""
        self._stream("state rm", *addresses)

    def shown(self, plan: Path | None = None) -> dict[str, Any]:
        """A saved plan as JSON, or the state. Raises Failed."""
        return self._document("show", *([str(plan)] if plan else []), json=_FLAG)

    def outputs(self) -> dict[str, Any]:
        """The root's outputs by name, empty before the first apply. Raises Failed."""
        return {name: entry.get("value") for name, entry in self._document("output", json=_FLAG).items()}

    def resources(self) -> list[dict[str, Any]]:
        """What the state holds, modules' resources included, each with address, type and values. Raises Failed."""
        root = (self.shown().get("values") or {}).get("root_module") or {}
        return [one for one in _walk(root) if one.get("mode") == "managed"]

    def await_survivor(self) -> None:
        """Waits for a command that a killed run left behind."""
        reader = Reader(line=self.line, tick=self.tick)
        process.await_survivor(self.note, reader.feed, self.warn)

    def _arguments(self, command: str, *arguments: str, **options: Any) -> list[str]:
        from python_terraform import Terraform as Writer

        logging.getLogger("python_terraform").setLevel(logging.CRITICAL)
        writer = Writer(working_dir=str(self.where), terraform_bin_path=self.path)
        return [str(word) for word in writer.generate_cmd_string(command, *arguments, **options)]

    def _stream(self, command: str, *arguments: str, **options: Any) -> Reader:
        reader = Reader(line=self.line, tick=self.tick)
        status = process.run(
            self._arguments(command, *arguments, **_flags(options)),
            where=self.where,
            log=self.logs / f"{self.where.name}-{command.replace(' ', '-')}.log",
            environment=process.environment(),
            on_line=reader.feed,
            report=self.warn,
            note=self.note,
        )
        if status:
            raise Failed(f"{Path(self.path).name} {command}", reader)
        return reader

    def _document(self, command: str, *arguments: str, **options: Any) -> dict[str, Any]:
        run = subprocess.run(
            self._arguments(command, *arguments, **_flags(options)),
            cwd=self.where,
            env=process.environment(),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        try:
            if run.returncode == 0:
                return dict(json.loads(run.stdout))
        except (ValueError, TypeError):
            pass
        reader = Reader()
        for text in f"{run.stdout}\n{run.stderr}".splitlines():
            reader.feed(text)
        raise Failed(f"{Path(self.path).name} {command}", reader)


# python-terraform knows a flag without a value by a class of its own; it is looked up where it is loaded anyway.
_FLAG = object()


def _flags(options: dict[str, Any]) -> dict[str, Any]:
    from python_terraform import IsFlagged

    return {name: IsFlagged if value is _FLAG else value for name, value in options.items()}


def _walk(module: dict[str, Any]) -> list[dict[str, Any]]:
    found = list(module.get("resources") or [])
    for child in module.get("child_modules") or []:
        found += _walk(child)
    return found


__all__ = ["Changes", "Failed", "Reader", "Terraform", "executable", "version"]

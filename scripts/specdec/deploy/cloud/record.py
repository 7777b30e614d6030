"""How far a deploy came, in a file: what a second run and `specdec status` read. Terraform's own state is the truth."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Record:
    """One entry a stage: {"state": running, done or failed, "inputs", "at", "detail"}. Written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "deploy.json"
        try:
            document = json.loads(self.file.read_text())
            self.stages: dict[str, dict[str, Any]] = dict(document["stages"])
            self.facts: dict[str, Any] = dict(document["facts"])
        except (OSError, ValueError, KeyError, TypeError):
            # Missing, or broken by a full disk: nothing is lost but the memory of how far it came.
            self.stages, self.facts = {}, {}

    def save(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        scratch = self.file.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps({"stages": self.stages, "facts": self.facts}, indent=1) + "\n")
        scratch.replace(self.file)

    def put(self, **known: Any) -> None:
        """Remember facts that later stages and `status` need."""
        self.facts |= known
        self.save()

    def clear(self) -> None:
        self.stages, self.facts = {}, {}
        self.save()

    def is_done(self, stage: str, inputs: str) -> bool:
        """Whether the stage succeeded on these very inputs."""
        entry = self.stages.get(stage, {})
        return entry.get("state") == "done" and entry.get("inputs") == inputs

    @property
    def unfinished(self) -> str | None:
        """The stage that the last run stopped at, None where it went through."""
        return next((name for name, entry in self.stages.items() if entry.get("state") != "done"), None)

    @contextmanager
    def stage(self, name: str, inputs: str) -> Iterator[dict[str, Any]]:
        """Mark a stage as running, then done or failed. The entry may be given a "detail"."""
        entry: dict[str, Any] = {"state": "running", "inputs": inputs, "at": now()}
        self.stages.pop(name, None)
        self.stages[name] = entry
        self.save()
        try:
            yield entry
        except BaseException as error:
            entry |= {"state": "failed", "at": now(), "detail": str(error).splitlines()[0] if str(error) else ""}
            self.save()
            raise
        entry |= {"state": "done", "at": now()}
        self.save()


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

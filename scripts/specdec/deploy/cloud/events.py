"""Terraform's machine-readable output, a JSON object a line, as progress for people and as errors to explain.

https://developer.hashicorp.com/terraform/internals/machine-readable-ui
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

EVERY_SECONDS = 60  # between two lines about one resource that is still being made, where lines stay
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
FRAME = re.compile(r"^[\s╷│╵]*")


@dataclass(frozen=True)
class Diagnostic:
    """An error or a warning of Terraform's, with the resource and the line of HCL that it is about."""

    severity: str
    summary: str
    detail: str
    address: str = ""
    place: str = ""

    @property
    def text(self) -> str:
        return f"{self.summary}\n{self.detail}".strip()


@dataclass(frozen=True)
class Changes:
    """How many resources a plan or an apply adds, changes and destroys."""

    add: int = 0
    change: int = 0
    destroy: int = 0

    @property
    def none(self) -> bool:
        return not (self.add or self.change or self.destroy)

    def __str__(self) -> str:
        return f"{self.add} to add, {self.change} to change, {self.destroy} to destroy"

    def as_dict(self) -> dict[str, int]:
        return {"add": self.add, "change": self.change, "destroy": self.destroy}


@dataclass
class Reader:
    """Takes lines as they come. `line` gets what stays on the screen, `tick` what the moment is about."""

    line: Callable[[str], None] = lambda _: None
    tick: Callable[[str], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    changes: Changes = field(default_factory=Changes)
    planned: list[tuple[str, str]] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=60))
    done: int = 0
    _said: dict[str, float] = field(default_factory=dict)

    def feed(self, text: str) -> None:
        """One line of output, JSON or not."""
        try:
            event = json.loads(text)
            kind = str(event["type"])
        except (ValueError, KeyError, TypeError):
            plain = FRAME.sub("", COLOUR.sub("", text)).rstrip()
            self.tail.append(plain)
            if plain.startswith(("Initializing ", "- Installing ", "- Downloading ")):
                self.tick(plain.removeprefix("- "))
            return
        handler = getattr(self, f"_on_{kind}", None)
        if handler:
            handler(event, str(event.get("@message", "")))

    def _on_diagnostic(self, event: dict[str, Any], _: str) -> None:
        found = event.get("diagnostic") or {}
        where = found.get("range") or {}
        line = (where.get("start") or {}).get("line")
        self.diagnostics.append(
            Diagnostic(
                str(found.get("severity", "error")),
                str(found.get("summary", "")),
                str(found.get("detail", "")),
                str(found.get("address", "")),
                f"{where['filename']}:{line}" if where.get("filename") else "",
            )
        )

    def _on_planned_change(self, event: dict[str, Any], message: str) -> None:
        change = event.get("change") or {}
        address = str((change.get("resource") or {}).get("addr", ""))
        self.planned.append((address, str(change.get("action", ""))))
        self.line(message)

    def _on_change_summary(self, event: dict[str, Any], message: str) -> None:
        found = event.get("changes") or {}
        self.changes = Changes(*(int(found.get(key) or 0) for key in ("add", "change", "remove")))
        self.tick(message)

    def _on_refresh_start(self, _: dict[str, Any], message: str) -> None:
        self.tick(message.split(" [id=")[0])

    def _on_apply_start(self, event: dict[str, Any], message: str) -> None:
        self._said[self._address(event)] = self.clock()
        self.line(message)

    def _on_apply_progress(self, event: dict[str, Any], message: str) -> None:
        address = self._address(event)
        self.tick(message)
        if self.clock() - self._said.get(address, 0) >= EVERY_SECONDS:
            self._said[address] = self.clock()
            self.line(message)

    def _on_apply_complete(self, _: dict[str, Any], message: str) -> None:
        self.done += 1
        self.line(message.split(" [id=")[0])

    def _on_apply_errored(self, _: dict[str, Any], message: str) -> None:
        self.line(message)

    @staticmethod
    def _address(event: dict[str, Any]) -> str:
        return str(((event.get("hook") or {}).get("resource") or {}).get("addr", ""))

    def errors(self) -> list[Diagnostic]:
        """What went wrong, once each: diagnostics, or the end of plain output where there are none."""
        found = [one for one in self.diagnostics if one.severity == "error" and one.summary != "execution halted"]
        if found:
            return list(dict.fromkeys(found))
        lines = list(self.tail)
        start = next((index for index, line in enumerate(lines) if line.startswith("Error")), max(len(lines) - 15, 0))
        text = [line for line in lines[start:] if line]
        if not text:
            return []
        return [Diagnostic("error", text[0].removeprefix("Error: "), "\n".join(text[1:]))]

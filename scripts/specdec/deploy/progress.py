"""Live progress on standard error: the step that runs, what it is at, and what the pods do meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from specdec.output import console

if TYPE_CHECKING:
    from rich.console import RenderableType

    from specdec.deploy.pods import State


class Progress:
    """On a terminal one live block; elsewhere a line for each thing that changes."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.out = console(stderr=True)
        self.live_wanted = self.out.is_terminal and not quiet
        self.quiet = quiet
        self.current = "start"
        self.steps: list[dict[str, Any]] = []
        self.warnings: list[str] = []
        self._text = ""
        self._states: Sequence[State] = ()
        self._said: dict[str, str] = {}
        self._live: Any = None
        self._begin = 0.0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """One named step: timed, and marked as failed where it raises."""
        self.current, self._text, self._states, self._begin = name, "", (), time.monotonic()
        ok = False
        self._start()
        try:
            yield
            ok = True
        finally:
            seconds = time.monotonic() - self._begin
            self._stop()
            self.steps.append({"name": name, "ok": ok, "seconds": round(seconds, 1), "detail": self._text})
            mark = "[green]✓[/]" if ok else "[red]✗[/]"
            self._print(f"{mark} {name:<12} [dim]{seconds:7.1f} s[/]  ", self._text)

    def note(self, text: str) -> None:
        """What the step is at now; the last note stays as its result."""
        if text == self._text:
            return
        self._text = text
        if self._live:
            self._live.update(self._block())
        else:
            self._print("  ", text)

    def line(self, text: str) -> None:
        """A line that stays: one of many things that a step did."""
        self._text = text
        self._print("  ", text)

    def pods(self, states: Sequence[State]) -> None:
        """What the pods do now."""
        self._states = states
        ready = sum(state.ready for state in states)
        self._text = f"{ready} of {len(states)} pods Ready"
        if self._live:
            self._live.update(self._block())
            return
        for state in states:
            if self._said.get(state.name) != state.phase:
                self._said[state.name] = state.phase
                self._print("  ", f"{time.monotonic() - self._begin:5.0f} s  {state.name}: {state.phase}")

    def warn(self, text: str) -> None:
        self.warnings.append(text)
        self._print("[yellow]![/] ", text)

    def _print(self, markup: str, text: str) -> None:
        if self.quiet:
            return
        self.out.print(markup, end="")
        self.out.print(text, markup=False)

    def _start(self) -> None:
        if self.live_wanted:
            from rich.live import Live

            self._live = Live(self._block(), console=self.out, transient=True, refresh_per_second=8)
            self._live.start()

    def _stop(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None

    def _block(self) -> RenderableType:
        from rich.console import Group
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        line = Spinner("dots", Text(f"{self.current}  {self._text}"))
        if not self._states:
            return line
        table = Table(box=None, pad_edge=False, show_header=False)
        for state in self._states:
            mark = Text("✓", "green") if state.ready else Text("✗", "red") if state.trouble else Text("…", "dim")
            table.add_row(
                mark, Text(state.name), Text(state.phase), Text(f"{state.restarts} restarts" if state.restarts else "")
            )
        return Group(line, table)

"""Runs a command that must not be cut off: an interrupt goes to it once, and then it is waited for.

A command whose parent was killed goes on (its output has a file to go to); the next run finds it and waits for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

POLL_SECONDS = 0.1


class Interrupted(KeyboardInterrupt):
    """The user stopped it, and it ended in order."""


def run(
    command: Sequence[str],
    *,
    where: Path,
    log: Path,
    environment: Mapping[str, str],
    on_line: Callable[[str], None],
    report: Callable[[str], None],
    note: Path | None = None,
) -> int:
    """The exit status. `note` is the file by which a later run finds a command that outlived us.

    Raises Interrupted after the command has ended, where SIGINT or SIGTERM came while it ran.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with _signals() as signals, log.open("wb") as out, log.open(encoding="utf-8", errors="replace") as written:
        process = subprocess.Popen(
            [*command],
            cwd=where,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            # Ctrl-C goes to the whole foreground group: it would get there twice, and twice means at once.
            start_new_session=True,
        )
        try:
            if note:
                noted = {"pid": process.pid, "born": born(process.pid), "command": " ".join(command), "log": str(log)}
                note.write_text(json.dumps(noted))
            told = 0
            reader = _Lines(written, on_line)
            while process.poll() is None:
                reader.drain()
                if len(signals) > told:
                    if not told:
                        process.send_signal(signal.SIGINT)
                        report("interrupted: Terraform ends what it has begun and saves its state; please wait")
                    else:
                        report("still waiting: to cut Terraform off now would lose what it has made")
                    told = len(signals)
                time.sleep(POLL_SECONDS)
            reader.drain(end=True)
        finally:
            if note and process.poll() is not None:
                note.unlink(missing_ok=True)
    if signals:
        raise Interrupted
    return process.returncode


def await_survivor(note: Path, on_line: Callable[[str], None], report: Callable[[str], None]) -> bool:
    """Wait for a command that an earlier run left behind when it was killed. Whether there was one, alive or dead."""
    try:
        noted = json.loads(note.read_text())
        pid, birth, log = int(noted["pid"]), noted["born"], Path(noted["log"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if birth is not None and born(pid) == birth:
        report(f"Terraform of a run that was killed goes on (process {pid}); waiting for it")
        with log.open(encoding="utf-8", errors="replace") as written:
            reader = _Lines(written, on_line)
            while born(pid) == birth:
                reader.drain()
                time.sleep(POLL_SECONDS)
            reader.drain(end=True)
    note.unlink(missing_ok=True)
    return True


def born(pid: int) -> str | None:
    """What tells a process from a later one of the same number; None where there is none, or only its remains."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            return None
        return None if fields[0] == "Z" else fields[19]
    found = subprocess.run(["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    words = found.stdout.split()
    return " ".join(words[1:]) if words and not words[0].startswith("Z") else None


class _Lines:
    """Whole lines of a file that grows."""

    def __init__(self, file: TextIO, take: Callable[[str], None]) -> None:
        self.file, self.take, self.rest = file, take, ""

    def drain(self, end: bool = False) -> None:
        *lines, self.rest = (self.rest + self.file.read()).split("\n")
        for line in lines:
            self.take(line)
        if end and self.rest:
            self.take(self.rest)
            self.rest = ""


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM instead of dying of them. Only the main thread may."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, lambda number, _: seen.append(number))
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that Terraform gets: the user's, without those that would change a command behind our back."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TF_CLI_ARGS") and name not in ("TF_WORKSPACE", "TF_DATA_DIR", "TF_LOG_PATH")
    }
    return kept | {"TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"} | dict(extra or {})

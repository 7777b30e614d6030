"""Runs steps that depend on each other: a step runs when its inputs changed or what it makes is missing.

Two lanes, because the steps that download and the ones that compile wait for different things: up to two steps of the
network lane run beside one of the CPU lane. An interrupted step starts afresh; finished ones stay finished.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

LANES = {"network": 2, "cpu": 1}


class SetupError(Exception):
    """Something a person can put right. `fix` says how."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


@dataclass(frozen=True)
class Step:
    """One thing that set-up makes.

    run      makes it; gets the Work to run commands with
    inputs   files, folders and plain strings: a change of any makes the step run again
    outputs  what has to exist afterwards
    needs    names of steps that have to be done first
    fix      what a person can do when it fails
    gib      disk that it needs while it runs, caches included
    """

    name: str
    lane: str
    run: Callable[[Work], None]
    inputs: tuple[Path | str, ...]
    outputs: tuple[Path, ...]
    needs: tuple[str, ...] = ()
    fix: str = ""
    gib: float = 0.1

    def stamp(self) -> str:
        digest = hashlib.sha256(self.name.encode())
        for item in self.inputs:
            for part in _bytes_of(item):
                digest.update(hashlib.sha256(part).digest())
        return digest.hexdigest()


def _bytes_of(item: Path | str) -> Iterator[bytes]:
    if isinstance(item, str):
        yield item.encode()
    elif item.is_dir():
        for path in sorted(item.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(item).as_posix().encode()
                yield path.read_bytes()
    else:
        yield item.read_bytes()


@dataclass
class Work:
    """What a running step uses: its log, its scratch folder, and commands that end when set-up is interrupted."""

    name: str
    home: Path
    cancelled: threading.Event
    processes: set[subprocess.Popen[bytes]] = field(default_factory=set)

    @property
    def log(self) -> Path:
        return self.home / "log" / f"{self.name}.log"

    @property
    def scratch(self) -> Path:
        """An empty folder beside what is made, so that a rename puts the result in place whole."""
        path = self.home / "tmp" / self.name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def say(self, text: str) -> None:
        with self.log.open("a") as log:
            log.write(text + "\n")

    def command(
        self,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        attempts: int = 1,
    ) -> None:
        """Runs a command with its output in the log. One that downloads is tried again when it fails."""
        words = [str(argument) for argument in arguments]
        for attempt in range(1, attempts + 1):
            self.say(f"$ {' '.join(words)}")
            with self.log.open("ab") as log:
                # A session of its own: Ctrl-C reaches set-up alone, which then ends the command and its children.
                process = subprocess.Popen(
                    words, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
                self.processes.add(process)
                try:
                    code = process.wait()
                finally:
                    self.processes.discard(process)
            if self.cancelled.is_set():
                raise SetupError("interrupted")
            if code == 0:
                return
            if attempt < attempts:
                self.say(f"failed with {code}, trying again")
                self.cancelled.wait(2.0 * attempt)
        raise SetupError(f"{Path(words[0]).name} failed with exit code {code}")

    def put(self, made: Path, place: Path) -> None:
        """Moves what was made to its place; what was there before goes."""
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir() and not place.is_symlink():
            old = self.home / "tmp" / f"{self.name}.old"
            shutil.rmtree(old, ignore_errors=True)
            place.rename(old)
            made.rename(place)
            shutil.rmtree(old, ignore_errors=True)
        else:
            made.rename(place)


@contextmanager
def lock(home: Path, say: Callable[[str], None]) -> Iterator[None]:
    """One set-up at a time in one checkout: a second one waits for the first."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            say(f"another set-up runs here (process {handle.read().strip() or 'unknown'}), waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        yield


def in_order(steps: Mapping[str, Step], wanted: Iterable[str]) -> list[Step]:
    """The wanted steps and what they need, each after its needs. Raises SetupError for a name that is not there."""
    found: dict[str, Step] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise SetupError(f"steps need each other: {' → '.join((*above, name))}")
        if name not in steps:
            raise SetupError(f"no step {name!r}")
        if name not in found:
            for need in steps[name].needs:
                visit(need, (*above, name))
            found[name] = steps[name]

    for name in wanted:
        visit(name, ())
    return list(found.values())


class Runner:
    """Brings steps up to date in `home` (the folder `.tools`)."""

    def __init__(self, home: Path, say: Callable[[str], None]) -> None:
        self.home, self.say = home, say
        self.cancelled = threading.Event()
        self.running: dict[str, Work] = {}

    def is_done(self, step: Step) -> bool:
        stamp = self.home / "stamp" / step.name
        return all(output.exists() for output in step.outputs) and stamp.is_file() and stamp.read_text() == step.stamp()

    def run(self, steps: list[Step]) -> None:
        """Raises SetupError when a step failed; steps that do not need it are finished first."""
        todo = [step for step in steps if not self.is_done(step)]
        if not todo:
            return
        self._check_disk(todo)
        for folder in ("log", "tmp", "stamp"):
            (self.home / folder).mkdir(parents=True, exist_ok=True)
        done = {step.name for step in steps if step not in todo}
        failed: dict[str, SetupError] = {}
        changed = threading.Condition()

        def work(step: Step) -> None:
            error = self._run_one(step)
            with changed:
                del self.running[step.name]
                if error is None:
                    done.add(step.name)
                else:
                    failed[step.name] = error
                changed.notify()

        waiting = list(todo)
        try:
            with changed:
                while waiting or self.running:
                    waiting = [
                        step for step in waiting if not failed.keys() & set(step.needs) or self._skip(step, failed)
                    ]
                    for step in [step for step in waiting if done.issuperset(step.needs)]:
                        busy = sum(1 for other in todo if other.name in self.running and other.lane == step.lane)
                        if busy < LANES[step.lane]:
                            waiting.remove(step)
                            self.running[step.name] = Work(step.name, self.home, self.cancelled)
                            threading.Thread(target=work, args=(step,), daemon=True).start()
                    if self.running:
                        changed.wait(1.0)
                    elif not any(done.issuperset(step.needs) for step in waiting):
                        break
        except KeyboardInterrupt:
            self._stop()
            raise
        if failed:
            raise SetupError(f"{len(failed)} of {len(todo)} steps failed: {', '.join(failed)}", "repeat to resume")

    def _skip(self, step: Step, failed: dict[str, SetupError]) -> bool:
        failed[step.name] = SetupError("not tried")
        self.say(f"  skip   {step.name}: {', '.join(failed.keys() & set(step.needs))} failed")
        return False

    def _check_disk(self, todo: list[Step]) -> None:
        need = sum(step.gib for step in todo)
        self.home.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.home).free / 2**30
        if free < need:
            raise SetupError(
                f"this needs about {need:.1f} GiB of disk and {free:.1f} GiB are free at {self.home}",
                "make room and repeat; nothing was changed",
            )

    def _run_one(self, step: Step) -> SetupError | None:
        work = self.running[step.name]
        work.log.write_text("")
        stamp = self.home / "stamp" / step.name
        started, value = time.monotonic(), step.stamp()
        self.say(f"  start  {step.name}")
        try:
            stamp.unlink(missing_ok=True)
            shutil.rmtree(self.home / "tmp" / step.name, ignore_errors=True)
            step.run(work)
            missing = [str(output) for output in step.outputs if not output.exists()]
            if missing:
                raise SetupError(f"did not make {', '.join(missing)}")
            stamp.write_text(value)
        except (SetupError, OSError) as error:
            if self.cancelled.is_set():
                return SetupError("interrupted")
            self._explain(step, work, error)
            return error if isinstance(error, SetupError) else SetupError(str(error))
        finally:
            shutil.rmtree(self.home / "tmp" / step.name, ignore_errors=True)
        self.say(f"  done   {step.name} in {time.monotonic() - started:.0f} s")
        return None

    def _explain(self, step: Step, work: Work, error: Exception) -> None:
        tail = [f"         | {line}" for line in work.log.read_text(errors="replace").splitlines()[-12:]]
        fix = getattr(error, "fix", "") or step.fix
        lines = [f"  FAILED {step.name}: {error}", *tail, f"         whole log: {work.log}"]
        self.say("\n".join(lines + ([f"         to do: {fix}"] if fix else [])))

    def _stop(self) -> None:
        """Ends the commands of running steps and waits for them, so that nothing goes on behind the prompt."""
        self.cancelled.set()
        for send in (signal.SIGTERM, signal.SIGKILL):
            for process in [process for work in list(self.running.values()) for process in list(work.processes)]:
                if process.poll() is None:
                    os.killpg(process.pid, send)
            deadline = time.monotonic() + 5
            while self.running and time.monotonic() < deadline:
                time.sleep(0.05)
        print("interrupted; repeat to resume", file=sys.stderr)

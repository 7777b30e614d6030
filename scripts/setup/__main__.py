"""Brings what this checkout needs up to date, in .venv and .tools.

usage: python3 scripts/setup [--quiet] GROUP...      (`all` for every group)
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - an older Python gets here, and should be told
    sys.exit(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}: make PYTHON=python3.12 ...")
sys.path[0] = str(Path(__file__).resolve().parents[1])

from setup.dag import Runner, SetupError, in_order, lock  # noqa: E402 - needs the path above
from setup.paths import HOME  # noqa: E402 - needs the path above
from setup.steps import GROUPS, plan, wanted  # noqa: E402 - needs the path above


def main(arguments: list[str]) -> int:
    quiet = "--quiet" in arguments
    groups = [argument for argument in arguments if argument != "--quiet"]
    if not groups or {"-h", "--help"} & set(groups):
        print(__doc__.strip(), "groups:", *(f"  {name:10} {does}" for name, does in GROUPS.items()), sep="\n")
        return 0 if groups else 2

    def say(text: str) -> None:
        print(text, file=sys.stderr if quiet else sys.stdout, flush=True)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    started = time.monotonic()
    try:
        with lock(HOME, say):
            steps, notes = plan(groups)
            ordered = in_order(steps, wanted(steps, groups))
            runner = Runner(HOME, say)
            todo = [step.name for step in ordered if not runner.is_done(step)]
            if todo:
                say(f"setup: {', '.join(groups)} ({len(todo)} steps to do, logs in {HOME / 'log'})")
                for note in notes:
                    say(f"  use    {note}")
                runner.run(ordered)
                say(f"setup: done in {time.monotonic() - started:.0f} s")
    except SetupError as error:
        print(f"setup: {error}" + (f"\n  fix: {error.fix}" if error.fix else ""), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m specdec.engine_check VERSION (PYTHON | --build FOLDER)`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from specdec import engine_check
from specdec.engine_check import environment
from specdec.engine_check.run import check
from specdec.engine_check.verdict import Judged, Verdict
from specdec.errors import SpecdecError
from specdec.output import print_error


def report(judged: Sequence[Judged], version: str) -> str:
    """A line for each case, what is the same for all of its kind last."""
    width = max(len(each.name) for each in judged)
    lines = []
    for verdict in Verdict:
        mine = [each for each in judged if each.verdict is verdict]
        lines += [f"\n{verdict} ({len(mine)})"] if mine else []
        lines += [f"  {each.name:{width}}  {shortened(each.why)}".rstrip() for each in mine]
    counts = Counter(each.verdict for each in judged)
    lines += ["", f"vLLM {version}, {len(judged)} cases", *(f"  {counts[verdict]:4}  {verdict}" for verdict in Verdict)]
    return "\n".join(lines)


def shortened(text: str, length: int = 150) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def main(words: Sequence[str]) -> int:
    """Exit code."""
    if len(words) == 3 and words[1] == "--build":
        version, python = words[0], environment.build(words[0], Path(words[2]).absolute())
    elif len(words) == 2 and not words[1].startswith("-"):
        version, python = words[0], Path(words[1]).absolute()
    else:
        sys.stderr.write(f"{engine_check.__doc__}")
        return 2
    judged = check(version, python)
    print(report(judged, version))
    return 1 if any(each.verdict is Verdict.differ for each in judged) else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SpecdecError as error:
        print_error(error, as_json=False)
        sys.exit(error.exit_code)

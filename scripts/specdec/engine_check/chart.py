"""What the chart and the rules make of a case: refused, or the arguments that the engine's container gets."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from specdec import facts, helm, manifests, rules
from specdec.engine_check.cases import Case
from specdec.engine_check.models import MODELS
from specdec.errors import SpecdecError

# Of arguments and pair; what is wrong with memory and pod is not the parser's to say.
ABOUT_ARGUMENTS = ("SD1", "SD2")


@dataclass(frozen=True)
class Ours:
    """code and message are empty where neither chart nor rules refuse. argv and env are those of the rendering."""

    code: str = ""
    message: str = ""
    argv: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)


def with_models(folder: Path, models: Path) -> Path:
    """A copy of the chart in `folder` that knows the tiny models by their paths."""
    chart = folder / "chart"
    shutil.copytree(facts.chart_dir(), chart, ignore=shutil.ignore_patterns("ci", "rendered"))
    file = chart / "files" / "models.yaml"
    known = {
        str(models / name): {"checkpointBytes": 2**20, "source": "made for the check", "config": config}
        for name, config in MODELS.items()
    }
    with file.open("a", encoding="utf-8") as table:
        for name, model in known.items():
            table.write(f"  {name}: {json.dumps(model)}\n")
    return chart


@contextmanager
def knowing(chart: Path) -> Iterator[None]:
    """Everything here reads its facts from that copy of the chart."""
    before = os.environ.get("SPECDEC_CHART")
    os.environ["SPECDEC_CHART"] = str(chart)
    try:
        yield
    finally:
        os.environ.pop("SPECDEC_CHART")
        if before is not None:
            os.environ["SPECDEC_CHART"] = before


def ask(cases: Sequence[Case], scratch: Path) -> dict[str, Ours]:
    """By the case's name."""
    with ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda numbered: _one(numbered[1], scratch / f"{numbered[0]}.yaml"), enumerate(cases))
        return {case.name: answer for case, answer in zip(cases, answers, strict=True)}


def _one(case: Case, file: Path) -> Ours:
    file.write_text(yaml.safe_dump(case.values), encoding="utf-8")
    try:
        text = helm.render([file], ["router.enabled=false"])
    except SpecdecError as error:
        if not error.code.startswith("SD"):
            raise
        return Ours(error.code, f"{error.path or ''} {error.message}".strip())
    rendered = manifests.parse(text)
    (engine,) = manifests.engines(rendered)
    env = {name: value for name, value in engine.env.items() if value is not None and name.startswith("VLLM_")}
    argv = engine.argv[engine.argv.index("--model") :]
    world = rules.World(rendered)
    for rule in rules.all_rules().values():
        if rule.severity is rules.Severity.error and rule.code.startswith(ABOUT_ARGUMENTS):
            for problem in rule.check(world):
                return Ours(rule.code, problem.message, argv, env)
    return Ours(argv=argv, env=env)


def given_fields(argv: Sequence[str]) -> dict[str, Any]:
    """The object after --speculative-config."""
    words = list(argv)
    if "--speculative-config" not in words[:-1]:
        return {}
    try:
        document = json.loads(words[words.index("--speculative-config") + 1])
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}

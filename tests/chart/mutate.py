"""Mutants of the chart's arguments, and whether a test turns red for each.

Of files/engines.yaml: an argument's row left out, and a version bound moved to the neighbouring release; both run
against the tests of the tables in this process. Of the templates: a line left out; run against the golden renderings of
the scenarios and the refusals, those of a code alone where the line has one. `python -m tests.chart.mutate`
runs all, keeps the verdicts in .tools/mutate.json, and goes on there after an interruption.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from specdec import facts
from specdec.rules import versions

from . import refusals, test_spans, test_version_table
from .conftest import CHART, ROOT
from .conftest import SCENARIOS as ALL_SCENARIOS
from .releases import RELEASES

VERDICTS = ROOT / ".tools" / "mutate.json"
TABLE = CHART / "files" / "engines.yaml"
TEMPLATES = [*sorted((CHART / "templates" / "engine").glob("_*.tpl")), CHART / "templates" / "cache" / "_models.tpl"]
# The richest first: most mutants show there. Those that need options of `helm template` are left to the golden test.
RICHEST = ("speculation", "adapters", "seed-0.6.3", "cpu", "h100-draft-model", "offline", "suffix")
SCENARIOS = RICHEST + tuple(
    name
    for name in ALL_SCENARIOS
    if name not in RICHEST and "# helm template:" not in (CHART / "ci" / f"{name}-values.yaml").read_text()
)
BEYOND = "0.34.0"
# Bounds of a row whose neighbour says the same there: moving them changes nothing.
SAME = {
    "engines.yaml defaults.batching.4 from=0.8.5",
    "engines.yaml defaults.batching.6 before=0.9.0",
}


@dataclass(frozen=True)
class TableMutant:
    """`path` leads to a row; `key` is the bound to move to `value`, or None to leave the row out."""

    path: tuple[Any, ...]
    key: str | None
    value: str = ""

    def __str__(self) -> str:
        what = f"{self.key}={self.value}" if self.key else "left out"
        return f"engines.yaml {'.'.join(map(str, self.path))} {what}"


@dataclass(frozen=True)
class TemplateMutant:
    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.text}"


@cache
def table() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(TABLE.read_text())
    return document


def neighbours(bound: str) -> list[str]:
    """The releases before and after; what no release distinguishes is no neighbour."""
    known = [*RELEASES, BEYOND]
    i = known.index(bound)
    return [known[j] for j in (i - 1, i + 1) if 0 <= j < len(known)]


def table_mutants() -> list[TableMutant]:
    found: list[TableMutant] = []
    for path, row in _rows(table()):
        for key in ("from", "before"):
            if key in row:
                found += [TableMutant(path, key, bound) for bound in neighbours(str(row[key]))]
        if path[0] == "arguments":
            found.append(TableMutant(path, None))
    return [mutant for mutant in found if str(mutant) not in SAME]


def _rows(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    if isinstance(node, dict):
        if "source" in node:
            yield path, node
        for key, child in node.items():
            yield from _rows(child, (*path, key))
    elif isinstance(node, list):
        for i, child in enumerate(node):
            yield from _rows(child, (*path, i))


def mutated(mutant: TableMutant) -> dict[str, Any]:
    document = copy.deepcopy(table())
    parent: Any = document
    for key in mutant.path[:-1]:
        parent = parent[key]
    if mutant.key:
        parent[mutant.path[-1]][mutant.key] = mutant.value
    else:
        del parent[mutant.path[-1]]
    return document


def red_test(document: dict[str, Any], changed: tuple[Any, ...] = ()) -> str | None:
    """The first test of the tables that this table turns red; those of the part that was `changed` are asked first."""
    arguments = {argument["value"]: argument for argument in document["arguments"]}
    _forget()
    try:
        with patch.object(facts, "engines", lambda: document), patch.object(test_spans, "ARGUMENTS", arguments):
            if changed[:1] == ("arguments",):
                value = table()["arguments"][changed[1]]["value"]
                test = test_spans.test_a_value_has_a_row_on_just_the_releases_that_define_it
                if _fails(lambda: test(value)):
                    return f"{test.__name__}[{value}]"
            for module in (test_version_table, test_spans):
                for name, test in vars(module).items():
                    if name.startswith("test_") and _fails(test):
                        return name
    finally:
        _forget()
    return None


def _forget() -> None:
    for cached in (versions.has, versions.known, versions._oldest, versions._spans):
        cached.cache_clear()


def _fails(test: Any) -> bool:
    cases: list[dict[str, Any]] = [{}]
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names, values = mark.args[0], list(mark.args[1])
            rows = [{names: v} if isinstance(names, str) else dict(zip(names, v, strict=True)) for v in values]
            cases = [first | second for first, second in product(cases, rows)]
    try:
        for case in cases:
            test(**case)
    except Exception:  # an error of any kind is red
        return True
    return False


ACTIONS = re.compile(r"\{\{-?\s*(/\*|[a-z]+|\$?)", re.IGNORECASE)
OPENS, CLOSES = ("if", "range", "with", "define"), ("end",)


def template_mutants() -> list[TemplateMutant]:
    """Lines that do something and can be left out without breaking the template's blocks."""
    found = []
    for path in TEMPLATES:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            words = [match.group(1) for match in ACTIONS.finditer(line)]
            whole = line.count("{{") == line.count("}}")
            balanced = sum(word in OPENS for word in words) == sum(word in CLOSES for word in words)
            does = "set " in line or "fail" in line or "include" in line or "append" in line
            if words and whole and balanced and does and "else" not in words and "/*" not in words:
                found.append(TemplateMutant(path.relative_to(CHART).as_posix(), number, line.strip()))
    return found


def template_verdict(mutant: TemplateMutant, helm: str, folder: Path) -> str | None:
    """What notices that the line is gone: a scenario, or the story of a refusal."""
    chart = folder / "chart"
    if not chart.exists():
        shutil.copytree(CHART, chart, ignore=shutil.ignore_patterns("rendered", "ci", "values.schema.json"))
    file = chart / mutant.file
    text = (CHART / mutant.file).read_text()
    lines = text.splitlines(keepends=True)
    gone = lines.pop(mutant.line - 1)
    file.write_text("".join(lines))
    try:
        codes = set(re.findall(r"SD\d{3}", gone))
        if not codes and (scenario := next((name for name in SCENARIOS if _differs(helm, chart, name)), None)):
            return scenario
        for story, (values, (code, _, part), _) in refusals.BAD.items():
            if codes and code not in codes:
                continue
            done = _template(helm, chart, "-", json.dumps(values, ensure_ascii=False))
            if done.returncode == 0 or code not in done.stderr or part not in done.stderr:
                return story
    finally:
        file.write_text(text)
    return None


def _differs(helm: str, chart: Path, scenario: str) -> bool:
    done = _template(helm, chart, str(CHART / "ci" / f"{scenario}-values.yaml"))
    return done.stdout != (CHART / "rendered" / f"{scenario}.yaml").read_text()


def _template(helm: str, chart: Path, values: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [helm, "template", "speculative", str(chart), "-n", "ai-inference", "--values", values]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def main() -> int:
    helm = shutil.which("helm", path=str(ROOT / ".tools" / "bin")) or "helm"
    verdicts: dict[str, str | None] = json.loads(VERDICTS.read_text()) if VERDICTS.exists() else {}
    mutants: list[TableMutant | TemplateMutant] = [*table_mutants(), *template_mutants()]
    if red := red_test(table()):
        raise SystemExit(f"{red} is red without any mutant")
    if stale := [name for name in SCENARIOS if _differs(helm, CHART, name)]:
        raise SystemExit(f"the golden renderings of {', '.join(stale)} are out of date: make golden")
    with tempfile.TemporaryDirectory() as folder:
        for i, mutant in enumerate(mutants, 1):
            if str(mutant) not in verdicts:
                if isinstance(mutant, TableMutant):
                    verdicts[str(mutant)] = red_test(mutated(mutant), mutant.path)
                else:
                    verdicts[str(mutant)] = template_verdict(mutant, helm, Path(folder))
                VERDICTS.parent.mkdir(exist_ok=True)
                VERDICTS.write_text(json.dumps(verdicts, indent=1))
            print(f"\r{i} of {len(mutants)}", end="", file=sys.stderr, flush=True)
    survivors = [str(mutant) for mutant in mutants if verdicts[str(mutant)] is None]
    print(
        f"\n{len(mutants)} mutants, {len(mutants) - len(survivors)} turn a test red", *survivors, sep="\n  survives: "
    )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())

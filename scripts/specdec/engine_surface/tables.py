"""The mechanical part of a new release, written into the tables line by line, and what a person has to decide.

Only what a source says without doubt is written: names that come and go with the newest release, its metrics, and the
end of the range that engines.yaml answers for. A release older than the newest one only moves a first version back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from specdec import facts
from specdec.engine_surface.metrics import Metric
from specdec.engine_surface.names import Surface
from specdec.errors import nearest
from specdec.facts import version_key, version_text
from specdec.rules import versions
from specdec.rules.speculation import LITERAL_HOLDS_FROM

PARTS: tuple[versions.Part, ...] = ("flags", "fields", "methods")
# The versions that run a core: V0's metrics stand in the sources for longer, V1's are an experiment before.
CORES = {"v0": ("0.0.0", "0.10.0"), "v1": ("0.8.0", "9999.0.0")}


@dataclass
class Change:
    """The text of a table with the release in it, what was written, and what a person has to decide."""

    text: str
    written: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)


def bounds() -> set[facts.Version]:
    """Every version at which something comes or goes in the tables of names and metrics."""
    found: set[str] = set()
    for part in PARTS:
        for span in facts.surfaces()[part].values():
            found.update(span if isinstance(span, list) else [span])
    for row in _metric_rows():
        found.update({row["from"], row.get("before", row["from"])})
    for argument in facts.engines()["arguments"]:
        for row in argument["rows"]:
            found.update({row["from"], row.get("before", row["from"])})
    return {version_key(version) for version in found}


def previous(version: str) -> str | None:
    """The last release before that one that the tables know of."""
    earlier = [key for key in bounds() if key < version_key(version)]
    return version_text(max(earlier)) if earlier else None


def is_newest(version: str) -> bool:
    """Whether nothing in the tables is of a later release."""
    return all(key <= version_key(version) for key in bounds())


def names(text: str, surface: Surface, version: str) -> Change:
    """surfaces.yaml with the names of the release."""
    change = Change(text)
    told = {row.get("flag") or row.get("field"): argument["value"] for argument, row in _argument_rows()}
    told |= facts.engines()["untyped"]
    for part in PARTS:
        theirs, ours = getattr(surface, part), versions.known(part, version)
        for name in sorted(theirs - ours):
            _came(change, part, name, version, name in told)
        for name in sorted(ours - theirs):
            _went(change, part, name, version, str(told.get(name, "")))
    for method, entry in facts.engines()["methods"].items():
        called = [row["engineName"] for row in facts.in_range(entry["rows"], version) if "engineName" in row]
        # Old versions have no literal of methods, or compare nothing with it.
        if called and version_key(version) >= LITERAL_HOLDS_FROM and called[0] not in surface.methods:
            change.questions.append(f"method {method} is gone: end its row in engines.yaml before {version}")
    return change


def _came(change: Change, part: str, name: str, version: str, typed: bool) -> None:
    singular = part.removesuffix("s")
    span = facts.surfaces()[part].get(name)
    first = span[0] if isinstance(span, list) else span
    if typed or (first is not None and version_key(first) < version_key(version)):
        change.questions.append(f"{singular} {name} is there, and the tables end it before {version}")
        return
    if first is None:
        change.text = _inserted(change.text, part, name, version)
    else:
        change.text = change.text.replace(_line(change.text, part, name), _entry(name, [version, *_end(span)]))
    change.written.append(f"{part}: {name}: {version}")
    if part == "fields":
        change.questions.append(f"field {name} is new: a value of the chart, or none?")
    if part == "methods":
        change.questions.append(f"method {name} is new: of which family, and does a runner run it?")


def _went(change: Change, part: str, name: str, version: str, typed: str) -> None:
    if typed:
        change.questions.append(f"{name} is gone, which was {typed}: end its row in engines.yaml before {version}")
    elif not is_newest(version):
        change.questions.append(f"{name} is not there, and the tables have it in releases around {version}")
    else:
        span = facts.surfaces()[part][name]
        change.text = change.text.replace(_line(change.text, part, name), _entry(name, [span, version]))
        change.written.append(f"{part}: {name}: [{span}, {version}]")


def _end(span: Any) -> list[str]:
    return span[1:] if isinstance(span, list) else []


def _entry(name: str, span: list[str]) -> str:
    return f"  {name}: {span[0]}\n" if len(span) == 1 else f"  {name}: [{span[0]}, {span[1]}]\n"


def _section(text: str, part: str) -> re.Match[str]:
    match = re.search(rf"^{part}:\n((?:  .*\n)*)", text, re.MULTILINE)
    assert match, part
    return match


def _line(text: str, part: str, name: str) -> str:
    section = _section(text, part).group(1)
    return next(line for line in section.splitlines(keepends=True) if line.startswith(f"  {name}: "))


def _inserted(text: str, part: str, name: str, version: str) -> str:
    section = _section(text, part)
    lines = [*section.group(1).splitlines(keepends=True), _entry(name, [version])]
    return (
        text[: section.start(1)] + "".join(sorted(lines, key=lambda line: line.split(":")[0])) + text[section.end(1) :]
    )


def metrics(text: str, found: Iterable[Metric], version: str) -> Change:
    """metrics.yaml with what the release exports."""
    change = Change(text)
    theirs = {(metric.name, metric.core): metric for metric in found if _runs(metric.core, version)}
    ours = {(row["name"], row["core"]): row for row in facts.in_range(_metric_rows(), version)}
    for key in sorted(theirs.keys() - ours.keys()):
        metric = theirs[key]
        if not metric.kind:
            change.questions.append(f"metric {metric.name}: {metric.file} does not tell its type; add it by hand")
            continue
        if any((row["name"], row["core"]) == key for row in _metric_rows()) and not is_newest(version):
            change.questions.append(f"metric {metric.name} is there, and the tables have it in other releases alone")
            continue
        change.text = _with_row(change.text, metric, version)
        change.written.append(f"metrics: {metric.name}: {version}")
    if not is_newest(version):
        return change
    new = [name for name, core in theirs.keys() - ours.keys()]
    for key in sorted(ours.keys() - theirs.keys()):
        change.text = _ended(change.text, ours[key], version)
        change.written.append(f"metrics: {key[0]}: before {version}")
        if "role" in ours[key]:
            guess = nearest(key[0], new)
            hint = f"; {guess} is new" if guess else ""
            change.questions.append(
                f"metric {key[0]} is gone, which was {ours[key]['role']}{hint}: which one is it now?"
            )
    for key in sorted(theirs.keys() & ours.keys()):
        metric, row = theirs[key], ours[key]
        labels = tuple(row["labels"]) if "labels" in row else None
        same_kind = metric.kind in ("", row["type"]) and metric.hidden == bool(row.get("hidden"))
        if same_kind and metric.labels in (None, labels):
            continue
        role = row.get("role") if same_kind else None
        change.text = _with_row(_ended(change.text, row, version), metric, version, role)
        change.written.append(f"metrics: {metric.name} changes with {version}")
        if row.get("role") and not role:
            change.questions.append(f"metric {metric.name}, which is {row['role']}, is hidden or of another type now")
    return change


def _runs(core: str, version: str) -> bool:
    first, end = CORES[core]
    return version_key(first) <= version_key(version) < version_key(end)


def metric_row(metric: Metric, version: str, before: str | None = None, role: str | None = None) -> str:
    """The metric as a line of metrics.yaml."""
    parts = [f'name: "{metric.name}"', f"type: {metric.kind}", f"core: {metric.core}", f"from: {version}"]
    parts += [f"before: {before}"] if before else []
    parts += [f"role: {role}"] if role else []
    parts += ["hidden: true"] if metric.hidden else []
    parts += [f"labels: [{', '.join(metric.labels)}]"] if metric.labels is not None else []
    return "  - {" + ", ".join([*parts, f"source: {metric.file}"]) + "}\n"


def _with_row(text: str, metric: Metric, version: str, role: str | None = None) -> str:
    """Behind the last line of a metric that sorts before it."""
    head, _, rows = text.partition("metrics:\n")
    lines = rows.splitlines(keepends=True)
    place = sum(1 for line in lines if _of_line(line) <= (metric.name, metric.core))
    return head + "metrics:\n" + "".join([*lines[:place], metric_row(metric, version, role=role), *lines[place:]])


def _of_line(line: str) -> tuple[str, str]:
    match = re.search(r'name: "([^"]+)".* core: (v\d)', line)
    return (match[1], match[2]) if match else ("", "")


def _ended(text: str, row: dict[str, Any], version: str) -> str:
    start = rf'(name: "{re.escape(row["name"])}", type: \w+, core: {row["core"]}, from: {re.escape(row["from"])})'
    return re.sub(start + r"(?!, before)", rf"\1, before: {version}", text)


def known_range(text: str, version: str) -> Change:
    """engines.yaml with the version inside of what the table answers for, up to the next minor release."""
    change = Change(text)
    if facts.in_range(facts.engines()["versions"], version):
        return change
    match = re.search(r"^versions:\n  - \{from: [\d.]+, before: ([\d.]+)", text, re.MULTILINE)
    if match is None or version_key(version) < version_key(match[1]):
        change.questions.append(f"vLLM {version} is before all that engines.yaml answers for")
        return change
    major, minor, *_ = version_key(version)
    change.text = text[: match.start(1)] + f"{major}.{minor + 1}.0" + text[match.end(1) :]
    change.written.append(f"versions: before {major}.{minor + 1}.0")
    return change


def _argument_rows() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(argument, row) for argument in facts.engines()["arguments"] for row in argument["rows"]]


def _metric_rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = facts.load(facts.files_dir() / "metrics.yaml")["metrics"]
    return rows

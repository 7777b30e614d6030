"""`specdec validate`: the rules on anyone's manifests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specdec import reading
from specdec.errors import SpecdecError

if TYPE_CHECKING:
    from specdec.manifests import Manifest
    from specdec.rules.model import Finding

STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


class Report(StrEnum):
    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"
    junit = "junit"


def validate(
    targets: Annotated[list[str] | None, typer.Argument(metavar="ENV | FILE... | -", help="What to check.")] = None,
    values: Annotated[list[Path] | None, typer.Option("--values", "-f", help="Values file to render.")] = None,
    set_values: Annotated[list[str] | None, typer.Option("--set", help="One value, key=value.")] = None,
    release: Annotated[str | None, typer.Option(help="Release's name.", envvar="RELEASE")] = None,
    namespace: Annotated[str | None, typer.Option(help="Namespace.", envvar="NAMESPACE")] = None,
    engine_version: Annotated[
        str | None, typer.Option(help="Check against this vLLM, whatever the manifests say.")
    ] = None,
    model_config: Annotated[
        list[str] | None, typer.Option(help="Folder with a model's config.json, NAME=DIR.", metavar="NAME=DIR")
    ] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Change the files where the fix is certain, and show it.")] = False,
    show_ignored: Annotated[
        bool, typer.Option("--show-ignored", help="Show findings that an annotation accepts, with its reason.")
    ] = False,
    output: Annotated[Report, typer.Option("--format", help="How to print what was found.")] = Report.text,
) -> int:
    """Check manifests against the rules: an environment's, files, folders, or standard input (-).

    Exit 1 when an error was found, 2 when the input cannot be read.
    """
    from specdec import facts, rules

    if engine_version is not None:
        engine_version = facts.known_version(engine_version)
    _configs(model_config or [])
    manifests = list(_read(targets or [], values or [], set_values or [], release, namespace))
    if not manifests:
        raise SpecdecError(
            "there is no Kubernetes object in it",
            code="no-objects",
            file=", ".join(targets or []) or None,
            fix="manifests have apiVersion and kind; a values file is checked with --values FILE",
        )
    if fix:
        _fix(manifests, engine_version)
        manifests = list(_read(targets or [], values or [], set_values or [], release, namespace))
    examined = _room(targets or [], values or [], release, namespace, manifests)
    examined += rules.examine(manifests, engine_version)
    findings = [finding for finding in examined if finding.ignored is None]
    shown = examined if show_ignored else findings
    _print(shown, manifests, output, ignored=len(examined) - len(findings))
    return 1 if any(finding.severity == "error" for finding in findings) else 0


def _configs(given: list[str]) -> None:
    """Remember the folders of --model-config. Raises SpecdecError where one has no config.json."""
    from specdec.rules.configs import GIVEN

    GIVEN.clear()
    for text in given:
        name, equals, folder = text.partition("=")
        if not equals or not (Path(folder) / "config.json").is_file():
            raise SpecdecError(f"{text}: no config.json there", code="bad-model-config", fix="--model-config NAME=DIR")
        GIVEN[name] = Path(folder)


def _fix(manifests: list[Manifest], engine_version: str | None) -> None:
    """Change files and say on standard error what was changed; what is printed afterwards is what is left."""
    from specdec import rules
    from specdec.rules.edit import fix_files

    if any(manifest.file == "-" for manifest in manifests):
        raise SpecdecError("standard input cannot be changed", code="usage", fix="name a file with --fix")
    rendered = not all(Path(manifest.file).is_file() for manifest in manifests)
    found = rules.check(manifests, engine_version) if rendered else []
    for name in sorted({finding.file for finding in found if not Path(finding.file).is_file()}):
        codes = ", ".join(sorted({finding.code for finding in found if finding.file == name}))
        sys.stderr.write(
            f"{name}: not changed: it is rendered from values, and those are what has to change ({codes})\n"
        )
    for change in fix_files(manifests, lambda items: rules.check(items, engine_version)):
        if change.refused:
            sys.stderr.write(f"{change.file}: not changed: {change.refused}\n")
        else:
            codes = ", ".join(sorted({finding.code for finding in change.gone}))
            sys.stderr.write(f"{change.diff()}{change.file}: fixed {codes}\n")


def _read(
    targets: list[str], values: list[Path], set_values: list[str], release: str | None, namespace: str | None
) -> Iterator[Manifest]:
    from specdec import environments, helm
    from specdec.manifests import parse

    names = [target for target in targets if target != "-" and not Path(target).exists()]
    files = [target for target in targets if target not in names]
    for name in names:
        if "/" in name or name.endswith((".yaml", ".yml", ".json")):
            raise SpecdecError("no such file", code="file-missing", file=name)
    if values or names:
        chosen: list[str | None] = [*names] or [None]
        for chosen_name in chosen:
            where = environments.choose(chosen_name, values, release, namespace)
            text = helm.render(where.values, set_values, where.release, where.namespace)
            yield from parse(text, f"{where.name} (rendered)")
    elif set_values:
        raise SpecdecError("--set belongs to an environment or --values", code="usage")
    elif not files:
        raise SpecdecError("name an environment, files, or - for standard input", code="usage", fix="see --help")
    for file in files:
        for path, text in _texts(file):
            yield from parse(text, path)


def _room(
    targets: list[str], values: list[Path], release: str | None, namespace: str | None, manifests: list[Manifest]
) -> list[Finding]:
    """What the GPU pools of the environments that were named cannot run."""
    from specdec import environments
    from specdec.infrastructure.room import findings

    found = []
    for name in targets:
        if name != "-" and not Path(name).exists():
            where = environments.choose(name, values, release, namespace)
            found += findings(where, [item for item in manifests if item.file == f"{where.name} (rendered)"])
    return found


def _texts(target: str) -> Iterator[tuple[str, str]]:
    """(name, content) of a file, of the manifests in a folder, or of standard input."""
    path = Path(target)
    for file in map(str, reading.manifests_in(path)) if path.is_dir() else [target]:
        yield file, reading.text(file)


def _print(findings: list[Finding], manifests: list[Manifest], output: Report, ignored: int) -> None:
    from specdec.output import print_json
    from specdec.rules import all_rules, report

    if output is Report.json:
        print_json([finding.as_dict() for finding in findings])
    elif output is Report.sarif:
        sys.stdout.write(report.sarif(findings, all_rules()) + "\n")
    elif output is Report.github:
        sys.stdout.write("".join(line + "\n" for line in report.github(findings, all_rules()).splitlines()))
    elif output is Report.junit:
        resources = list(dict.fromkeys((manifest.file, manifest.resource) for manifest in manifests))
        sys.stdout.write(report.junit(findings, resources) + "\n")
    else:
        _print_text(findings, len(manifests), ignored)
        _print_not_judged(manifests)


def _print_text(findings: list[Finding], objects: int, ignored: int) -> None:
    from rich.text import Text

    from specdec.output import console

    out = console()
    for finding in findings:
        line = Text(f"{finding.file}:{finding.line}: ", style="bold")
        if finding.ignored is not None:
            line.append(f"{finding.code} ignored", style="dim")
        else:
            line.append(f"{finding.code} {finding.severity}", style=STYLES[finding.severity])
        line.append(f" {finding.resource}: {finding.message}", style="not bold")
        out.print(line)
        told = f"fix: {finding.fix}" if finding.ignored is None else f"accepted: {finding.ignored}"
        out.print(Text(f"    {told}", style="dim"))
    active = [finding for finding in findings if finding.ignored is None]
    counts = [f"{sum(f.severity == kind for f in active)} {kind}s" for kind in ("error", "warning")]
    accepted = f", {ignored} ignored" if ignored else ""
    out.print(Text(f"{', '.join(counts)}{accepted} in {objects} objects", style="bold"))


def _print_not_judged(manifests: list[Manifest]) -> None:
    """A note on models that no rule can judge the memory of."""
    from rich.text import Text

    from specdec.manifests import engines
    from specdec.output import console
    from specdec.rules.configs import unknown_models

    names = sorted({name for engine in engines(manifests) for name in unknown_models(engine)})
    if names:
        told = f"not judged: memory and pair of {', '.join(names)} (--model-config NAME=DIR with their config.json)"
        console().print(Text(told, style="dim"))

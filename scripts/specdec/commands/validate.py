"""`specdec validate`: the rules on anyone's manifests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    output: Annotated[Report, typer.Option("--format", help="How to print what was found.")] = Report.text,
) -> int:
    """Check manifests against the rules: an environment's, files, folders, or standard input (-).

    Exit 1 when an error was found, 2 when the input cannot be read.
    """
    from specdec import facts, rules

    if engine_version is not None:
        facts.version_key(engine_version)
    manifests = list(_read(targets or [], values or [], set_values or [], release, namespace))
    if not manifests:
        raise SpecdecError(
            "there is no Kubernetes object in it",
            code="no-objects",
            file=", ".join(targets or []) or None,
            fix="manifests have apiVersion and kind; a values file is checked with --values FILE",
        )
    findings = rules.check(manifests, engine_version)
    _print(findings, manifests, output)
    return 1 if any(finding.severity == "error" for finding in findings) else 0


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


def _texts(target: str) -> Iterator[tuple[str, str]]:
    """(name, content) of a file, of the manifests in a folder, or of standard input."""
    path = Path(target)
    try:
        if target == "-":
            yield "-", sys.stdin.buffer.read().decode("utf-8-sig")
        elif path.is_dir():
            for file in sorted(path.rglob("*")):
                if file.suffix in (".yaml", ".yml") and file.is_file():
                    target = str(file)
                    yield target, file.read_text(encoding="utf-8-sig")
        else:
            yield target, path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecdecError(f"not text in UTF-8: {error.reason}", code="unreadable-file", file=target) from None
    except OSError as error:
        raise SpecdecError(error.strerror or "cannot be read", code="unreadable-file", file=target) from None


def _print(findings: list[Finding], manifests: list[Manifest], output: Report) -> None:
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
        _print_text(findings, len(manifests))


def _print_text(findings: list[Finding], objects: int) -> None:
    from rich.text import Text

    from specdec.output import console

    out = console()
    for finding in findings:
        line = Text(f"{finding.file}:{finding.line}: ", style="bold")
        line.append(f"{finding.code} {finding.severity}", style=STYLES[finding.severity])
        line.append(f" {finding.resource}: {finding.message}", style="not bold")
        out.print(line)
        out.print(Text(f"    fix: {finding.fix}", style="dim"))
    counts = [f"{sum(f.severity == kind for f in findings)} {kind}s" for kind in ("error", "warning")]
    out.print(Text(f"{', '.join(counts)} in {objects} objects", style="bold"))

"""`specdec plan-check`: the guard on Terraform plans."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specdec.errors import unknown

if TYPE_CHECKING:
    from specdec.rules.model import Finding

STYLES = {"error": "bold red", "warning": "yellow"}


class Report(StrEnum):
    text = "text"
    json = "json"
    github = "github"


def plan_check(
    plan: Annotated[Path, typer.Argument(metavar="tfplan.json", help="A plan: terraform show -json tfplan.")],
    root: Annotated[
        Path | None,
        typer.Option(help="Where terraform init ran, to see how the state is kept. Default: the plan's folder."),
    ] = None,
    allow_gpu_pool_replacement: Annotated[
        bool, typer.Option("--allow-gpu-pool-replacement", help="GPU pools may be destroyed or replaced.")
    ] = False,
    allow: Annotated[list[str] | None, typer.Option(help="A code that may be: it becomes a warning.")] = None,
    output: Annotated[Report, typer.Option("--format", help="How to print what was found.")] = Report.text,
) -> int:
    """Refuse a Terraform plan that destroys GPU pools, drops protection, or opens a cluster.

    Exit 1 when an error was found, 2 when the plan cannot be read.
    """
    from specdec.plan_check import NAMES, check, read

    for code in allow or ():
        if code not in NAMES:
            raise unknown("code", code, NAMES)
    findings = check(read(plan, root), allow_gpu_pool_replacement=allow_gpu_pool_replacement, allow=allow or ())
    _print(findings, output)
    return 1 if any(finding.severity == "error" for finding in findings) else 0


def _print(findings: list[Finding], output: Report) -> None:
    from rich.text import Text

    from specdec.output import console, print_json
    from specdec.plan_check import NAMES

    if output is Report.json:
        print_json([finding.as_dict() for finding in findings])
        return
    if output is Report.github:
        sys.stdout.write("".join(_annotation(finding, NAMES[finding.code]) for finding in findings))
        return
    out = console()
    for finding in findings:
        line = Text(f"{finding.code} {finding.severity}", style=STYLES[finding.severity])
        line.append(f" {finding.resource}: {finding.message}", style="not bold default")
        out.print(line)
        out.print(Text(f"    fix: {finding.fix}", style="dim"))
    errors = sum(finding.severity == "error" for finding in findings)
    out.print(Text(f"{errors} errors, {len(findings) - errors} warnings", style="bold"))


def _annotation(finding: Finding, name: str) -> str:
    """A workflow command, https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands."""

    def escaped(text: str, inside: str = "") -> str:
        for character in "%\r\n" + inside:
            text = text.replace(character, f"%{ord(character):02X}")
        return text

    title = escaped(f"{finding.code} {name}", ":,")
    text = escaped(f"{finding.resource}: {finding.message}. Fix: {finding.fix}")
    return f"::{finding.severity} file={escaped(finding.file, ':,')},line={finding.line},title={title}::{text}\n"

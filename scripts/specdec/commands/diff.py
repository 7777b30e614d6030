"""`specdec diff`: what an upgrade would change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specdec import reading
from specdec.errors import SpecdecError
from specdec.output import Format, console, print_json

if TYPE_CHECKING:
    from specdec.compare import Comparison
    from specdec.manifests import Manifest


def diff(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    revision: Annotated[int | None, typer.Argument(help="A revision of the release; else the deployed one.")] = None,
    against: Annotated[
        Path | None, typer.Option(help="Compare with manifests in this file, without a cluster.")
    ] = None,
    values: Annotated[list[Path] | None, typer.Option("--values", "-f", help="Values file, later ones win.")] = None,
    set_values: Annotated[list[str] | None, typer.Option("--set", help="One value, key=value.")] = None,
    release: Annotated[str | None, typer.Option(help="Release's name.")] = None,
    namespace: Annotated[str | None, typer.Option(help="Namespace.")] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    output: Annotated[Format, typer.Option("--format", help="text or json.")] = Format.text,
) -> None:
    """Show what an upgrade to what the values say now would change in objects and arguments, and its risks."""
    from specdec import environments, helm
    from specdec.compare import compare
    from specdec.manifests import parse

    where = environments.choose(environment, values, release, namespace)
    text = helm.render(where.values, set_values or [], where.release, where.namespace, is_upgrade=True)
    new = parse(text, f"{where.name} (rendered)")
    old = _file(against) if against else _deployed(environment, revision, release, namespace, context)
    changes = compare(old, new)
    if output is Format.json:
        print_json(changes.as_dict())
    else:
        _print(changes)


def _file(path: Path) -> list[Manifest]:
    from specdec.manifests import parse

    found = parse(reading.text(path), str(path))
    if not found:
        raise SpecdecError(
            "there is no Kubernetes object in it",
            code="no-objects",
            file=str(path),
            fix="manifests have apiVersion and kind: those of helm get manifest RELEASE, or of specdec render",
        )
    return found


def _deployed(
    environment: str, revision: int | None, release: str | None, namespace: str | None, context: str | None
) -> list[Manifest]:
    from specdec import helm
    from specdec.deploy.live import Live
    from specdec.manifests import parse

    live = Live.of(environment, context, release, namespace)
    if revision is None:
        return live.manifests()
    where = live.env
    text = helm.manifest(where.release, where.namespace, where.kubecontext, live.kubeconfig, revision)
    if text is None:
        known = [
            str(row["revision"])
            for row in helm.history(where.release, where.namespace, where.kubecontext, live.kubeconfig)
        ]
        fix = f"one of {', '.join(known)}" if known else f"specdec deploy {environment}"
        raise SpecdecError(f"{where.release} has no revision {revision}", code="unknown-revision", fix=fix)
    return parse(text, f"{where.name} (revision {revision})")


def _print(changes: Comparison) -> None:
    from rich.text import Text

    out = console()

    def line(text: str, style: str = "") -> None:
        out.print(Text(text, style=style))

    if not changes.objects:
        line("nothing changes")
    for risk in changes.risks:
        line(f"risk: {risk}", "bold yellow")
    for finding in changes.findings:
        line(f"{finding.code} {finding.severity}: {finding.resource}: {finding.message}", FOUND[finding.severity])
        line(f"    fix: {finding.fix}", "dim")
    for memory in changes.memory:
        tokens = [_tokens(count) for count in (memory.old_tokens, memory.new_tokens)]
        line(f"{memory.engine}: KV cache {tokens[0]} -> {tokens[1]}", "bold")
    for argument in changes.arguments:
        line(f"{argument.engine}: {argument.flag} {_shown(argument.old)} -> {_shown(argument.new)}", "bold")
    for change in changes.objects:
        line(f"{change.change}: {change.resource}", {"added": "green", "removed": "red"}.get(change.change, ""))
        for value in change.fields:
            line(f"    {value.path}: {_shown(value.old)} -> {_shown(value.new)}", "dim")


FOUND = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def _tokens(count: int | None) -> str:
    return "(unknown)" if count is None else f"{count:,} tokens"


def _shown(value: Any) -> str:
    """A value on one line, long ones cut in the middle."""
    if value is None:
        return "(none)"
    text = str(value) or '""'
    return text if len(text) <= 120 else f"{text[:80]} ... {text[-30:]}"

"""The comment as Markdown. Nothing in it is longer than what GitHub takes: 65,536 characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from specdec.comment.sources import Sources

if TYPE_CHECKING:
    from specdec.plan_check.plan import Change, Plan
    from specdec.rules.model import Finding

# By this line a later comment finds the earlier one and takes its place.
MARKER = "<!-- specdec comment {environment} -->"
LIMIT = 65_000
ROWS = 60
VERBS = {
    ("create",): "add",
    ("update",): "change",
    ("delete",): "**destroy**",
    ("delete", "create"): "**replace**",
    ("create", "delete"): "**replace**",
}
REQUESTS = (1, 16, 64)


def render(sources: Sources) -> str:
    """The whole comment. Cut, with a word on it, where it would be too long."""
    head = "needs a look before it is applied" if sources.is_refused else "nothing stands against it"
    lines = [
        MARKER.format(environment=sources.environment),
        f"## {sources.environment}: {head}",
        "",
        *_terraform(sources),
        *_findings("Guard", sources.guard),
        *_findings("Rules", [f for f in sources.rules if f.severity != "note"]),
        *[f"### Pools and values disagree\n\n{one['code']}: {cell(one['message'])}\n" for one in sources.disagreement],
        *_engines(sources),
        *_cost(sources),
        *_comparison(sources),
        *[f"_Skipped: {what}._" for what in sources.skipped],
    ]
    text = "\n".join(lines).rstrip() + "\n"
    if len(text) <= LIMIT:
        return text
    # Inside a fold its end is needed too.
    kept = text[:LIMIT].rsplit("\n", 1)[0]
    closing = "\n\n</details>" * max(0, kept.count("<details>") - kept.count("</details>"))
    return f"{kept}{closing}\n\n_The rest is too long for a comment: the job's log has it all._\n"


def cell(text: Any) -> str:
    """Text that stays in its cell of a table, and that Markdown leaves alone."""
    plain = str(text).replace("\r", " ").replace("\n", " ").replace("|", "\\|")
    return plain.replace("<", "&lt;").replace("@", "@\u200b")


def _table(head: str, rows: Iterable[Iterable[Any]], right: Iterable[int] = ()) -> list[str]:
    names = head.split(" | ")
    rule = "|".join("---:" if i in set(right) else "---" for i in range(len(names)))
    return [f"| {head} |", f"|{rule}|", *(f"| {' | '.join(cell(c) for c in row)} |" for row in rows), ""]


def _terraform(sources: Sources) -> Iterator[str]:
    for plan in sources.terraform:
        changes = [change for change in plan.changes if change.actions not in (("no-op",), ("read",))]
        counts = Counter(action for change in changes for action in change.actions)
        total = f"{counts['create']} to add, {counts['update']} to change, {counts['delete']} to destroy"
        yield f"### Terraform, {_root(plan)}: {total}"
        yield ""
        if changes:
            first = sorted(changes, key=lambda change: (not change.deletes, change.address))
            rows = [(VERBS.get(change.actions, "/".join(change.actions)), f"`{change.address}`", _why(change))
                    for change in first[:ROWS]]  # fmt: skip
            yield from _table("what | resource | because of", rows)
            if len(changes) > ROWS:
                yield f"and {len(changes) - ROWS} more, none of which is destroyed before the above."
                yield ""
        if plan.drift:
            yield f"{len(plan.drift)} resources were changed outside Terraform:"
            yield ""
            yield from (f"- `{change.address}`" for change in plan.drift[:ROWS])
            yield ""


def _root(plan: Plan) -> str:
    types = {change.type for change in plan.changes}
    return "platform" if any(kind.startswith(("helm_", "kubernetes_")) for kind in types) else "cluster"


def _why(change: Change) -> str:
    if change.replaced_for:
        return ", ".join(f"`{path}`" for path in change.replaced_for)
    if change.actions == ("update",):
        changed = sorted(key for key in change.after if change.after.get(key) != change.before.get(key))
        return ", ".join(f"`{key}`" for key in changed[:6])
    return ""


def _findings(title: str, findings: list[Finding]) -> list[str]:
    if not findings:
        return []
    errors = sum(finding.severity == "error" for finding in findings)
    rows = [(f"{f.code} {f.severity}", f"`{f.resource}`", f.message, f.fix) for f in findings[:ROWS]]
    return [
        f"### {title}: {errors} errors, {len(findings) - errors} warnings",
        "",
        *_table("code | where | what is wrong | what would be right", rows),
    ]


def _engines(sources: Sources) -> list[str]:
    if not sources.engines:
        return []
    rows = [
        (
            f"`{plan['engine']}`",
            f"{plan['gpus']} × {plan['accelerator']}",
            f"{'fits' if plan['fits'] else '**does not fit**'}{'' if plan['starts'] else ', **will not start**'}",
            f"{plan['ranks'][plan['deciding_rank']]['kv_cache_gib']:.1f} GiB",
            f"{plan['kv_cache_tokens']:,}",
            f"{plan['max_concurrency']:.1f}",
            plan["num_speculative_tokens"]["static"],
            f"{plan['startup_seconds']} s",
        )
        for plan in sources.engines
    ]
    lines = ["### Memory and speed", ""]
    head = "engine | GPUs | memory | KV cache | tokens | longest sequences at once | best K | to start"
    lines += _table(head, rows, right=(3, 4, 5, 6, 7))
    speed = [
        (f"`{plan['engine']}`", batch, baseline, static, f"{float(row['speedup']):.2f}")
        for plan in sources.engines
        for batch in REQUESTS
        for row in [_speed(plan, batch, "static")]
        for baseline, static in [(f"{_speed(plan, batch, 'baseline')['tpot_ms']:.1f}", f"{row['tpot_ms']:.1f}")]
    ]
    lines += _table("engine | requests | ms a token without | ms a token with | speed-up", speed, right=(1, 2, 3, 4))
    reasons = [f"- `{plan['engine']}`: {cell(reason)}" for plan in sources.engines for reason in plan["reasons"]]
    return [*lines, *reasons, *([""] if reasons else [])]


def _speed(plan: dict[str, Any], batch: int, arm: str) -> dict[str, Any]:
    """The row of an arm; the baseline's where the engine does not speculate."""
    rows = {(row["batch"], row["arm"]): row for row in plan["speed"]}
    return dict(rows.get((batch, arm)) or rows[batch, "baseline"])


def _cost(sources: Sources) -> list[str]:
    if sources.bill is None:
        return []
    lines = ["### Cost", "", f"{cell(sources.bill)}.", ""]
    rows = [
        (
            f"`{plan['engine']}`",
            row["concurrency"],
            f"${row['baseline']:.2f}",
            f"${row.get('static', row['baseline']):.2f}",
        )
        for plan in sources.engines
        if plan["cost"]
        for row in plan["cost"]["per_million_output_tokens"]
        if row["concurrency"] in REQUESTS
    ]
    head = "engine | requests | a million output tokens without | with speculation"
    return lines + (_table(head, rows, right=(1, 2, 3)) if rows else [])


def _comparison(sources: Sources) -> list[str]:
    found = sources.comparison
    if found is None:
        return []
    lines = [f"### Manifests: {len(found.objects)} objects change", ""]
    lines += [f"- **risk**: {cell(risk)}" for risk in found.risks]
    lines += [
        f"- `{a.engine}`: `{a.flag}` {_shown(a.old)} → {_shown(a.new)}" for a in found.arguments
    ]  # fmt: skip
    lines += [""] if found.risks or found.arguments else []
    if not found.objects:
        return lines
    lines += ["<details><summary>Every value that changes</summary>", ""]
    for change in found.objects:
        lines.append(f"- {change.change} `{change.resource}`")
        lines += [f"  - `{value.path}`: {_shown(value.old)} → {_shown(value.new)}" for value in change.fields]
    return [*lines, "", "</details>", ""]


def _shown(value: Any) -> str:
    """A value as code on one line, long ones cut."""
    if value is None:
        return "(none)"
    text = " ".join(str(value).replace("`", "'").split()) or '""'
    return f"`{text if len(text) <= 160 else text[:120] + ' ... ' + text[-30:]}`"

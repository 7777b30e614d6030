"""Tables for people: the smoke test, the measurement, the deploy, the status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from specdec.deploy.smoke import Check

if TYPE_CHECKING:
    from rich.table import Table


def checks(found: Sequence[Check]) -> Table:
    """One row a check."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title="Smoke test", title_justify="left")
    for column in ("check", "", "what was seen"):
        table.add_column(column)
    table.add_column("seconds", justify="right")
    for check in found:
        table.add_row(
            check.name,
            Text("ok", "green") if check.ok else Text("FAILED", "bold red"),
            Text(check.detail),
            f"{check.seconds:.1f}",
        )
    return table


def rows(title: str, pairs: Sequence[tuple[str, str]]) -> Table:
    """A table of names and values."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", show_header=False)
    for name, value in pairs:
        table.add_row(name, Text(value))
    return table


def deployed(result: dict[str, Any]) -> Table:
    """What a deploy ended with: seconds to Ready, an answer, acceptance, time per output token of both arms."""
    pairs = [("release", f"{result['release']} in {result['namespace']}, revision {result['revision']}")]
    for pod in result["pods"]:
        seconds = pod["seconds_to_ready"]
        pairs.append((f"{pod['name']} Ready after", f"{seconds:.0f} s" if seconds is not None else "unknown"))
    if answer := result.get("answer"):
        pairs.append((f"answer through {answer['through']}", f"{answer['tokens']} tokens: {answer['text']}"))
    pairs += measured(result.get("measurement"))
    return rows(f"Deployed {result['environment']}", pairs)


def measured(found: dict[str, Any] | None) -> list[tuple[str, str]]:
    """The rows of a comparison."""
    if not found:
        return []
    arms = found["arms"]
    positions = " ".join(f"{value:.2f}" for value in found["acceptance_by_position"])
    with_it, without = arms["speculative"]["tpot_ms"], arms["baseline"]["tpot_ms"]
    how = f"median of {found['repeats']} repeats each, interleaved, {found['max_tokens']} tokens"
    return [
        ("drafts", f"{found['drafts']:.0f}, {found['accepted']:.0f} of {found['drafted']:.0f} tokens accepted"),
        ("acceptance by position", positions or "not counted by this version"),
        ("acceptance rate", number(found["acceptance_rate"], ".2f")),
        ("tokens a verification", number(found["mean_length"], ".2f")),
        ("time per output token", f"{with_it:.1f} ms with speculation, {without:.1f} ms without"),
        ("ratio", f"{found['ratio']:.2f} ({how})"),
    ]


def number(value: float | None, form: str) -> str:
    return format(value, form) if value is not None else "unknown"

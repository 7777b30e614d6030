"""The pages of the rules, made from the rules."""

from __future__ import annotations

from pathlib import Path

from specdec.rules import all_rules
from specdec.rules.examples import manifests_of
from specdec.rules.model import Rule, World

FAMILIES = {
    "0": "The command itself",
    "1": "Arguments",
    "2": "Target and draft",
    "3": "Memory",
    "4": "Pod",
    "5": "Traffic and scaling",
    "6": "Metrics",
    "7": "Security",
    "8": "Terraform",
}


def page(rule: Rule) -> str:
    """One rule in Markdown."""
    return f"""# {rule.code}: {rule.name}

Severity: {rule.severity.value}

{rule.reason}

## Wrong

```yaml
{rule.bad}
```

## Right

```yaml
{rule.good}
```

## Fix

{rule.fix}
{_certain(rule)}
Source: {rule.source}

Accept it where it is right: the annotation `vllm-speculative/ignore: "{rule.code}=why"` on the object.
"""


def _certain(rule: Rule) -> str:
    """What --fix does of it, by its own example."""
    edits = any(problem.edits for problem in rule.check(World(manifests_of(rule.bad))))
    return "\n`specdec validate --fix` changes it where the file says it plainly.\n" if edits else ""


def index() -> str:
    """The list of all rules in Markdown."""
    lines = ["# Rules of `specdec validate`", ""]
    lines += ["Made from the rules by `specdec rules --write docs/rules`. An error makes the exit code 1.", ""]
    family = None
    for rule in all_rules().values():
        if rule.code[2] != family:
            family = rule.code[2]
            lines += [f"## SD{family}xx: {FAMILIES[family]}", "", "| code | rule | severity |", "|---|---|---|"]
        lines.append(f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.severity.value} |")
        following = [other for other in all_rules().values() if other.code > rule.code]
        if following and following[0].code[2] != family:
            lines.append("")
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """File name to content."""
    return {"README.md": index()} | {f"{rule.code}.md": page(rule) for rule in all_rules().values()}


def write(directory: Path) -> None:
    """Write every page, and take away pages of rules that are gone."""
    directory.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for old in directory.glob("SD*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (directory / name).write_text(text, encoding="utf-8")

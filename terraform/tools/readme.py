#!/usr/bin/env python3
"""Writes the reference part of every README.md under terraform/ from a module's descriptions, in terraform-docs' form.

terraform/tools/readme.py            renew them
terraform/tools/readme.py --check    exit 1 where one is not up to date
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from hcl import Block, blocks

TERRAFORM = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- BEGIN_TF_DOCS -->", "<!-- END_TF_DOCS -->"


def read(module: Path) -> str:
    return "\n".join(file.read_text() for file in sorted(module.glob("*.tf")))


def unquoted(expression: str | None) -> str:
    return (expression or "").strip('"')


def escaped(version: str) -> str:
    return version.replace(">", "\\>").replace("<", "\\<")


def described(block: Block) -> str:
    text = unquoted(block.attribute("description")).replace('\\"', '"')
    return text.replace("\n", " ").replace("|", "\\|")


def cell(expression: str | None, missing: str) -> str:
    if expression is None:
        return missing
    one_line = re.sub(r"\s*\n\s*", ", ", expression)
    one_line = re.sub(r"([({\[]), ", r"\1 ", one_line)
    one_line = re.sub(r",? ?, ([)}\]])", r" \1", re.sub(r"\s+", " ", one_line))
    one_line = re.sub(r", ([)}\]])", r" \1", one_line).replace("|", "\\|")
    return f"`{one_line}`"


def table(head: str, rows: list[str]) -> list[str]:
    columns = head.count("|") - 1
    return [head, "|" + "------|" * columns, *rows] if rows else ["None."]


def reference(module: Path) -> str:
    text = read(module)
    lines = ["## Requirements", ""]
    required = blocks(text, "terraform")[0]
    rows = [f"| terraform | {escaped(unquoted(required.attribute('required_version')))} |"]
    for name, version in re.findall(r'(\w+) = \{\s*source\s*=\s*"[^"]+"\s*version\s*=\s*"([^"]+)"', required.body):
        rows.append(f"| {name} | {escaped(version)} |")
    lines += [*table("| Name | Version |", rows), "", "## Modules", ""]
    modules = [f"| {b.labels[0]} | {unquoted(b.attribute('source'))} |" for b in blocks(text, "module")]
    lines += [*table("| Name | Source |", modules), "", "## Resources", ""]
    things = sorted(
        f"| {'.'.join(block.labels)} | {'data source' if block.kind == 'data' else 'resource'} |"
        for block in blocks(text)
        if block.kind in ("resource", "data") and len(block.labels) == 2
    )
    lines += [*table("| Name | Type |", things), "", "## Inputs", ""]
    inputs = []
    for block in sorted(blocks(text, "variable"), key=lambda block: block.labels):
        default = block.attribute("default")
        inputs.append(
            f"| {block.labels[0]} | {described(block)} | {cell(block.attribute('type'), '`any`')} "
            f"| {cell(default, 'n/a')} | {'yes' if default is None else 'no'} |"
        )
    lines += [*table("| Name | Description | Type | Default | Required |", inputs), "", "## Outputs", ""]
    outputs = [f"| {b.labels[0]} | {described(b)} |" for b in sorted(blocks(text, "output"), key=lambda b: b.labels)]
    lines += table("| Name | Description |", outputs)
    return "\n".join(lines)


def renewed(readme: Path) -> str:
    text = readme.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{reference(readme.parent)}\n{END}{after}"


def main() -> int:
    stale = [
        readme
        for readme in sorted(TERRAFORM.rglob("README.md"))
        if BEGIN in readme.read_text() and readme.read_text() != renewed(readme)
    ]
    if "--check" in sys.argv:
        for readme in stale:
            print(f"{readme} is not up to date: run terraform/tools/readme.py", file=sys.stderr)
        return 1 if stale else 0
    for readme in stale:
        readme.write_text(renewed(readme))
    return 0


if __name__ == "__main__":
    sys.exit(main())

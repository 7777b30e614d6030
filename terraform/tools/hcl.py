"""Finds the blocks of an HCL file: enough to document modules and to take a validation out."""

from __future__ import annotations

import re
from dataclasses import dataclass

HEADER = re.compile(r'^[ \t]*(?P<kind>[a-z_]+)(?P<labels>(?:[ \t]+"[^"\n]*")*)[ \t]*\{', re.MULTILINE)
HEREDOC = re.compile(r"<<-?(?P<word>[A-Z]+)\n")


@dataclass(frozen=True)
class Block:
    """`text[start:end]` is the whole block, `body` what stands between its braces."""

    kind: str
    labels: tuple[str, ...]
    start: int
    end: int
    body: str

    def attribute(self, name: str) -> str | None:
        """The expression of an attribute as written, or None. Objects and lists may span lines."""
        match = re.search(rf"^[ \t]*{name}[ \t]*=[ \t]*", self.body, re.MULTILINE)
        if match is None:
            return None
        rest = self.body[match.end() :]
        if heredoc := HEREDOC.match(rest):
            text = rest[heredoc.end() :].split(f"{heredoc['word']}\n", 1)[0]
            return "\n".join(line.strip() for line in text.splitlines() if line.strip())
        return rest[: _end_of_expression(rest)].strip()


def _skip_string(text: str, position: int) -> int:
    """The position after the string that opens at `position`, its interpolations included."""
    position += 1
    while text[position] != '"':
        if text[position] == "\\":
            position += 1
        elif text.startswith("${", position):
            position = _skip_braces(text, position + 1) - 1
        position += 1
    return position + 1


def _skip_braces(text: str, position: int) -> int:
    """The position after the bracket that closes the one at `position`."""
    depth = 0
    while True:
        character = text[position]
        if character == '"':
            position = _skip_string(text, position)
            continue
        if character == "#":
            position = text.index("\n", position)
        elif heredoc := HEREDOC.match(text, position):
            end = re.compile(rf"^[ \t]*{heredoc['word']}$", re.MULTILINE).search(text, heredoc.end())
            assert end, "Terraform has parsed it"
            position = end.end()
            continue
        elif character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1


def _end_of_expression(text: str) -> int:
    position = 0
    while position < len(text) and text[position] not in "\n#":
        if text[position] == '"':
            position = _skip_string(text, position)
        elif text[position] in "{[(":
            position = _skip_braces(text, position)
        else:
            position += 1
    return position


def blocks(text: str, kind: str | None = None) -> list[Block]:
    """All blocks of a file, nested ones too, in order; of one kind where given."""
    found = []
    for match in HEADER.finditer(text):
        if kind is None or match["kind"] == kind:
            opening = match.end() - 1
            end = _skip_braces(text, opening)
            labels = tuple(re.findall(r'"([^"]*)"', match["labels"]))
            found.append(Block(match["kind"], labels, match.start(), end, text[opening + 1 : end - 1]))
    return found

"""Variable and backend files as Terraform writes them: names and literal values, no expressions.

The grammar is the literal part of HCL's native syntax: https://github.com/hashicorp/hcl/blob/main/hclsyntax/spec.md
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from specdec.errors import SpecdecError

# A comment, or one token. Strings keep their quotes; a newline ends an attribute.
TOKEN = re.compile(
    r"""(?P<skip>[ \t\r]+|\#[^\n]*|//[^\n]*|/\*.*?\*/)
      | (?P<newline>\n)
      | <<(?P<indent>-?)(?P<word>\w+)\n(?P<heredoc>.*?)\n[ \t]*(?P=word)(?=\n|$)
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<name>[A-Za-z_][\w-]*(?:[.]\w+)*)
      | (?P<sign>[=:,{}\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)
WORDS = {"true": True, "false": False, "null": None}
ESCAPED_TEMPLATE = {"$${": "${", "%%{": "%{"}


def load(file: Path) -> dict[str, Any]:
    """The variables of a file. Raises SpecdecError (SD872) with the line where it is missing or holds an expression."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SpecdecError("no such file", code="SD872", file=str(file)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecdecError(f"cannot be read: {error}", code="SD872", file=str(file)) from None
    return parse(text, str(file))


def parse(text: str, file: str = "variables") -> dict[str, Any]:
    """`name = value` lines as a mapping. Raises SpecdecError (SD872)."""
    return _Reader(text, file).body(None)


class _Reader:
    """One pass over the tokens, with the next one in hand."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file, self.position = text, file, 0
        self.kind, self.value = "", ""
        self.advance()

    def advance(self) -> None:
        while True:
            if self.position >= len(self.text):
                self.kind, self.value = "end", ""
                return
            match = TOKEN.match(self.text, self.position)
            if match is None:
                raise self.wrong(f"cannot read {self.text[self.position : self.position + 20].splitlines()[0]!r}")
            self.position = match.end()
            kind = match.lastgroup or ""
            if kind == "skip":
                continue
            self.kind = kind
            self.value = _dedent(match) if kind == "heredoc" else match.group(kind)
            return

    def wrong(self, message: str) -> SpecdecError:
        line = self.text.count("\n", 0, self.position) + 1
        fix = "a variables file holds literal values: strings, numbers, true, false, null, lists and maps"
        return SpecdecError(f"line {line}: {message}", code="SD872", file=self.file, fix=fix)

    def newlines(self) -> None:
        while self.kind == "newline" or (self.kind == "sign" and self.value == ","):
            self.advance()

    def body(self, end: str | None) -> dict[str, Any]:
        """Attributes up to the closing brace, or to the end of the file."""
        found: dict[str, Any] = {}
        self.newlines()
        while not (self.kind == "end" if end is None else self.value == end and self.kind == "sign"):
            if self.kind not in ("name", "string", "number"):
                raise self.wrong(f"a name was expected, not {self.value or 'the end of the file'!r}")
            name = self.string() if self.kind == "string" else self.value
            if name in found:
                raise self.wrong(f"{name} stands there twice")
            self.advance()
            if self.kind != "sign" or self.value not in (("=",) if end is None else ("=", ":")):
                raise self.wrong(f"'=' was expected after {name}")
            self.advance()
            found[name] = self.expression()
            if self.kind not in ("newline", "end") and self.value not in (",", end):
                raise self.wrong(f"the value of {name} goes on with {self.value!r}")
            self.newlines()
        self.advance()
        return found

    def expression(self) -> Any:
        kind, value = self.kind, self.value
        if kind == "sign" and value == "{":
            self.advance()
            return self.body("}")
        if kind == "sign" and value == "[":
            return self.items()
        if kind == "string":
            value = self.string()
        elif kind == "number":
            self.advance()
            number = float(value)
            return int(number) if number.is_integer() and "." not in value else number
        elif kind == "name":
            if value not in WORDS:
                raise self.wrong(f"{value} is no literal")
            self.advance()
            return WORDS[value]
        elif kind != "heredoc":
            raise self.wrong(f"a value was expected, not {value!r}")
        self.advance()
        return value

    def items(self) -> list[Any]:
        found = []
        self.advance()
        self.newlines()
        while not (self.kind == "sign" and self.value == "]"):
            if self.kind == "end":
                raise self.wrong("a list is not closed")
            found.append(self.expression())
            self.newlines()
        self.advance()
        return found

    def string(self) -> str:
        inner = self.value
        plain = inner.replace("$${", "").replace("%%{", "")
        if "${" in plain or "%{" in plain:
            raise self.wrong(f"{inner} is a template")
        try:
            text = str(json.loads(inner))
        except ValueError:
            raise self.wrong(f"{inner} is no string") from None
        for written, meant in ESCAPED_TEMPLATE.items():
            text = text.replace(written, meant)
        return text


def _dedent(match: re.Match[str]) -> str:
    import textwrap

    text = str(match.group("heredoc"))
    return (textwrap.dedent(text) if match.group("indent") else text) + "\n"

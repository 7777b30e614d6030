"""A shell's script as far as it can be known without running it: its variables put in, its redirections left out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

_VARIABLE = re.compile(r"\$(?:\{(\w+)(?:(:?-)([^}$`\"']*))?\}|([A-Za-z_]\w*))")
_REDIRECTION = re.compile(r"(?<!\S)(?:\d|&)?>{1,2}(?:&(?:\d|-)|\s*[^\s;|&]+)|(?<!\S)\d?<(?![<(])\s*[^\s;|&]+")
_ASSIGNMENT = re.compile(
    r"(?:^|[;\n&|]|\bthen\b|\bdo\b|\belse\b)[ \t]*(?:(?:export|readonly|local)[ \t]+)?([A-Za-z_]\w*)="
    r"(\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s;&|\"'<>()]*)(?=[ \t]*(?:[;\n&|]|$))"
)
_COMMENT = re.compile(r"(?<!\S)#[^\n]*")


def resolved(script: str, env: Mapping[str, str | None]) -> str:
    """The script with the values of `env` and of what it assigns once; in single quotes and of an unknown variable
    the text stays. What a value holds is never read as quotes again, as in a shell."""
    script = script.replace("\r\n", "\n").replace("\\\n", " ")
    known = {**env, **_assigned(script, env)}
    done: list[str] = []
    position, quote = 0, ""
    while position < len(script):
        character = script[position]
        if character == "\\" and quote != "'":
            done.append(script[position : position + 2])
            position += 2
            continue
        part = _COMMENT.match(script, position) or _REDIRECTION.match(script, position) if not quote else None
        variable = _VARIABLE.match(script, position) if quote != "'" else None
        if part:
            position = part.end()
        elif variable and (value := _value(variable, known)) is not None:
            done.append(_quoted(value, quote))
            position = variable.end()
        else:
            if character in ("'", '"') and quote in ("", character):
                quote = "" if quote else character
            done.append(character)
            position += 1
    return "".join(done)


def commands(script: str) -> Iterator[list[str]]:
    """The words of each command of a script, what parts commands left out. Raises ValueError on unbalanced quotes."""
    lexer = shlex.shlex(script.replace("\\\n", " "), posix=True, punctuation_chars=";&|\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, "#"
    command: list[str] = []
    for word in lexer:
        if re.fullmatch(r"[;&|\n]+", word):
            yield command
            command = []
        else:
            command.append(word)
    yield command


def _value(variable: re.Match[str], known: Mapping[str, str | None]) -> str | None:
    braced, operator, default, plain = variable.groups()
    value = known.get(braced or plain)
    # An unknown variable may be set: what stands behind :- is only what it is otherwise.
    if (braced or plain) not in known or (value == "" and operator == ":-"):
        return default if operator else None
    return value


def _quoted(value: str, quote: str) -> str:
    if quote == '"':
        return re.sub(r'([\\"$`])', r"\\\1", value)
    # Outside of quotes white space parts words, from what stands beside the variable too.
    return "".join(" " if part.isspace() else shlex.quote(part) for part in re.split(r"(\s+)", value) if part)


def _assigned(script: str, env: Mapping[str, str | None]) -> dict[str, str | None]:
    """What the script gives its variables; None for one that it gives two values, or something that has to be run."""
    found: dict[str, str | None] = {}
    for name, written in _ASSIGNMENT.findall(script):
        text = written[1:-1] if written[:1] in ("'", '"') else written
        if not written.startswith("'"):
            text = _VARIABLE.sub(lambda match: _value(match, {**env, **found}) or match.group(0), text)
            text = re.sub(r'\\(["\\$`])', r"\1", text)
        runs = not written.startswith("'") and ("$" in text or "`" in text)
        found[name] = None if runs or (name in found and found[name] != text) else text
    return found

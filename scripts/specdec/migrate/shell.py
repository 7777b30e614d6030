"""Command lines as a person keeps them: a shell's text, a script, the unit of a service."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from specdec import engine_args, shell
from specdec.errors import SpecdecError

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
QUOTED = re.compile(r"""('[^']*'|"(?:\\.|[^"\\])*")""", re.DOTALL)
REDIRECTION = re.compile(r"(?<!\S)(?:\d|&)?(?:>>?|<)\s*(?:&\d|[^\s;|&]+)")
SECTION = re.compile(r"^\s*(\[(Unit|Service|Install)\]|ExecStart\s*=)", re.MULTILINE)


def commands(text: str, file: str, env: dict[str, str | None]) -> list[list[str]]:
    """The commands of a shell's text, each as its words; what it assigns and exports goes into `env`.

    Raises SpecdecError for quotes that do not end.
    """
    plain = "".join(
        part if part.startswith(("'", '"')) else REDIRECTION.sub("", part)
        for part in QUOTED.split(text.replace("\r\n", "\n").replace("\\\n", " "))
    )
    try:
        found = list(shell.commands(plain))
    except ValueError as error:
        raise _unreadable(error, file) from None
    return [command for command in (_assigned(each, env) for each in found) if command]


def words(text: str, file: str) -> list[str]:
    """One command's words where no shell reads them. Raises SpecdecError for quotes that do not end."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise _unreadable(error, file) from None


def _unreadable(error: ValueError, file: str) -> SpecdecError:
    return SpecdecError(
        f"not a command line: {error}", code="migrate-unreadable", file=file, fix="JSON in single quotes"
    )


def _assigned(command: list[str], env: dict[str, str | None]) -> list[str]:
    """The command behind its assignments, `export` and `env`."""
    while command and (ASSIGNMENT.match(command[0]) or command[0] in ("export", "env", "declare", "-x")):
        word, *command = command
        if ASSIGNMENT.match(word):
            name, _, value = word.partition("=")
            env[name] = value
    return command


def unwrapped(argv: list[str], file: str, env: dict[str, str | None]) -> list[str]:
    """The engine's command out of `sh -c SCRIPT`; any other command as it is."""
    script = engine_args.shell_script(argv)
    if script is None:
        return argv
    return next((each for each in commands(script, file, env) if engine_args.is_engine_command(each)), argv)


def unit(text: str, file: str) -> tuple[list[str], dict[str, str | None]]:
    """What a systemd unit starts, each a command line, and its variables."""
    env: dict[str, str | None] = {}
    lines = []
    for line in text.replace("\\\n", " ").splitlines():
        key, equals, value = line.strip().partition("=")
        key = key.strip()
        if not equals or key.startswith(("#", ";")):
            continue
        if key == "ExecStart":
            lines.append(value.strip().lstrip("@-:+!"))
        elif key == "Environment":
            env |= {name: told for name, _, told in (word.partition("=") for word in words(value, file))}
    return lines, env


VARIABLE = re.compile(r"\$(?:\{(\w+)(?:(:?[-?])([^}]*))?\}|\((\w+)\)|([A-Za-z_]\w*))")


def expanded(argv: list[str], env: Mapping[str, str | None]) -> list[str]:
    """The words with the variables whose values are known; one that is a word of its own may hold several words."""
    found: list[str] = []
    for word in argv:
        whole = VARIABLE.fullmatch(word)
        text = VARIABLE.sub(lambda match: _value(match, env), word)
        found += shlex.split(text) if whole and text != word and " " in text and text[0] not in "{[" else [text]
    return found


def _value(match: re.Match[str], env: Mapping[str, str | None]) -> str:
    braced, operator, default, in_parentheses, plain = match.groups()
    value = env.get(braced or in_parentheses or plain)
    if value is None or (value == "" and operator == ":-"):
        return str(default) if operator in ("-", ":-") and default is not None else match.group(0)
    return value


def unknown(word: str) -> list[str]:
    """The variables that are left in a word."""
    return [next(name for name in (m[1], m[4], m[5]) if name) for m in VARIABLE.finditer(word)]

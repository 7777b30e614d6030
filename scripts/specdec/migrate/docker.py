"""`docker run`, `podman run` and the like: image, variables, and what comes behind the image."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# Options without a value; any other takes one. Source: docker run --help.
SWITCHES = re.compile(
    r"-[ditPq]+|--(detach|interactive|tty|rm|init|privileged|read-only|publish-all|no-healthcheck|oom-kill-disable"
    r"|quiet|sig-proxy|disable-content-trust|use-api-socket|replace|tls-verify)"
)


@dataclass
class Run:
    """mounts: what -v and --mount say. variable_files: what --env-file says. command: entrypoint and arguments."""

    image: str
    command: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    name: str = ""
    env: dict[str, str | None] = field(default_factory=dict)
    mounts: list[str] = field(default_factory=list)
    variable_files: list[str] = field(default_factory=list)


def run(words: list[str]) -> Run | None:
    """The container that a command line starts; None where it starts none."""
    tools = [n for n, word in enumerate(words[:4]) if word.rsplit("/", 1)[-1] in ("docker", "podman", "nerdctl")]
    if not tools or "run" not in words[tools[0] : tools[0] + 4]:
        return None
    position = words.index("run", tools[0]) + 1
    made = Run("")
    while position < len(words) and words[position].startswith("-"):
        name, equals, value = words[position].partition("=")
        position += 1
        if SWITCHES.fullmatch(name) and (not equals or name.startswith("--")):
            continue
        if not equals and re.fullmatch(r"-[evp].+", name) and not name.startswith("--"):
            name, value = name[:2], name[2:]
        elif name.startswith("-") and not name.startswith("--") and len(name) > 2:
            name, value = name[:2], f"{name[2:]}={value}" if equals else name[2:]
        elif not equals:
            value = words[position] if position < len(words) else ""
            position += 1
        _option(made, name, value)
    if position >= len(words):
        return None
    made.image = words[position]
    made.command = words[position + 1 :]
    return made


def _option(made: Run, name: str, value: str) -> None:
    if name in ("-e", "--env"):
        variable, equals, told = value.partition("=")
        made.env[variable] = told if equals else None
    elif name == "--env-file":
        made.variable_files.append(value)
    elif name in ("-v", "--volume", "--mount"):
        made.mounts.append(value)
    elif name == "--entrypoint":
        made.entrypoint = [value]
    elif name == "--name":
        made.name = value

"""Where engines are read from: a command line, a manifest, a compose file."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from specdec import engine_args, facts, manifests
from specdec.errors import SpecdecError


@dataclass
class Engine:
    """One engine as it was found: its arguments and what its container adds to them."""

    name: str
    argv: list[str]
    image: str = ""
    replicas: int = 1
    env: dict[str, str | None] = field(default_factory=dict)
    token_secret: tuple[str, str] | None = None
    resources: dict[str, Any] = field(default_factory=dict)

    @property
    def version(self) -> str | None:
        """What the image's tag says."""
        return facts.version_of_tag(manifests.image_tag(self.image) or "")


def read(text: str, file: str) -> list[Engine]:
    """The engines in the text: YAML with manifests or compose services, else one command line.

    Raises SpecdecError where there is none.
    """
    if _is_yaml(text):
        _check_yaml(text, file)
        found = _of_manifests(text, file) or _of_compose(text, file)
    else:
        found = [Engine("", _words(text, file))] if text.strip() else []
    if not found:
        raise SpecdecError(
            "no vLLM engine in it", code="migrate-nothing", file=file, fix="a `vllm serve` command line or a manifest"
        )
    return found


def _is_yaml(text: str) -> bool:
    """Manifests and compose files by their keys; anything else by how its first line starts."""
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return bool(
        re.search(r"^\s*(kind|services)\s*:", text, re.MULTILINE)
        or re.match(r"""\s*(---|%YAML|- |[{\[]|["']?[\w./-]+["']?:(\s|$))""", next(lines, ""))
    )


def _check_yaml(text: str, file: str) -> None:
    """Raises SpecdecError with line and column where the YAML is broken."""
    import yaml

    try:
        for _ in yaml.compose_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            pass
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        hint = "a Helm template: render it first" if "{{" in text else "a command line starts with vllm serve or python"
        raise SpecdecError(
            f"the YAML is broken: {error.problem or error.context}",
            code="unreadable-yaml",
            file=f"{file}{where}",
            fix=hint,
        ) from None


def _words(text: str, file: str) -> list[str]:
    """A command line as a shell splits it, line ends behind a backslash and comments left out."""
    try:
        lines = [line for line in text.replace("\\\n", " ").splitlines() if not line.lstrip().startswith("#")]
        return shlex.split(" ".join(lines))
    except ValueError as error:
        raise SpecdecError(
            f"not a command line: {error}", code="migrate-unreadable", file=file, fix="JSON in single quotes"
        ) from None


def _of_manifests(text: str, file: str) -> list[Engine]:
    return [
        Engine(
            name=engine.label or engine.name,
            argv=engine.argv,
            image=engine.image,
            replicas=engine.replicas,
            env=engine.env,
            token_secret=_token(engine.container),
            resources=manifests.mapping(engine.container.get("resources")),
        )
        for engine in manifests.engines(manifests.parse(text, file))
    ]


def _token(container: dict[str, Any]) -> tuple[str, str] | None:
    """Name and key of the Secret that the Hub's token comes from."""
    for variable in manifests.sequence(container.get("env")):
        entry = manifests.mapping(variable)
        reference = manifests.mapping(manifests.mapping(entry.get("valueFrom")).get("secretKeyRef"))
        if entry.get("name") in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN") and reference:
            return str(reference.get("name", "")), str(reference.get("key", ""))
    return None


def _of_compose(text: str, file: str) -> list[Engine]:
    import yaml

    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SpecdecError(f"not readable as YAML: {error}", code="unreadable-yaml", file=file) from None
    found = []
    for name, service in manifests.mapping(manifests.mapping(document).get("services")).items():
        entry = manifests.mapping(service)
        argv = [*_command(entry.get("entrypoint"), file), *_command(entry.get("command"), file)]
        if manifests.is_engine({"image": entry.get("image")}, argv) or engine_args.is_engine_command(argv):
            env = entry.get("environment")
            pairs = (
                [str(each).partition("=")[::2] for each in env] if isinstance(env, list) else list((env or {}).items())
            )
            literal = {str(key): str(value) for key, value in pairs}
            found.append(Engine(str(name), argv, image=str(entry.get("image") or ""), env=dict(literal)))
    return found


def _command(value: Any, file: str) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list) else _words(str(value or ""), file)

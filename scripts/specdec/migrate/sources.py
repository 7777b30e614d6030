"""Where engines are read from: command lines, manifests, compose files, units of systemd."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from specdec import engine_args, manifests
from specdec.errors import SpecdecError
from specdec.migrate import docker, shell


@dataclass
class Engine:
    """One engine as it was found: its arguments and what its container adds to them.

    stated: the version that the caller says it is. dropped: what stood beside it and is in no value.
    """

    name: str
    argv: list[str]
    image: str = ""
    replicas: int = 1
    env: dict[str, str | None] = field(default_factory=dict)
    token_secret: tuple[str, str] | None = None
    resources: dict[str, Any] = field(default_factory=dict)
    stated: str | None = None
    dropped: list[dict[str, str]] = field(default_factory=list)

    @property
    def version(self) -> str | None:
        """What the caller says, else the image's tag."""
        return self.stated or manifests.version_of_image(self.image)


def read(text: str, file: str, known: Mapping[str, str] | None = None) -> list[Engine]:
    """The engines in the text: manifests, compose services, systemd units, else command lines, `docker run` among them.

    known: variables that the text does not tell. Raises SpecdecError where there is no engine.
    """
    if shell.SECTION.search(text):
        found = _of_unit(text, file)
    elif _is_yaml(text):
        _check_yaml(text, file)
        found = _of_manifests(text, file) or _of_compose(text, file)
    else:
        found = _of_shell(text, file, {})
    if not found:
        fix = "a vllm serve or docker run command line, a manifest, a compose file or a systemd unit"
        raise SpecdecError("there is no vLLM engine in it", code="migrate-nothing", file=file, fix=fix)
    for engine in found:
        _expand(engine, file, known or {})
    return found


def _expand(engine: Engine, file: str, known: Mapping[str, str]) -> None:
    """The engine's own words, out of a shell's script, with the values of their variables."""
    inherited = dict(engine.env)
    told = {**engine.env, **known}
    engine.argv = shell.unwrapped(engine.argv, file, told)
    told |= known
    used = {name for word in engine.argv for name in shell.unknown(word)}
    engine.argv = shell.expanded(engine.argv, told)
    engine.image = "".join(shell.expanded([engine.image], known))
    # What a container's variables hold for the command line alone, the chart's engine does not need.
    engine.env = {name: value for name, value in inherited.items() if name not in used}
    for name, value in engine.env.items():
        if value is not None and shell.unknown(value):
            engine.env[name] = None if shell.unknown(one := shell.expanded([value], known)[0]) else one


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
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        what = getattr(error, "problem", None) or getattr(error, "context", None) or " ".join(str(error).split())
        hint = "a Helm template: render it first" if "{{" in text else "a command line starts with vllm serve or python"
        raise SpecdecError(
            f"the YAML is broken: {what}", code="unreadable-yaml", file=f"{file}{where}", fix=hint
        ) from None


def _of_shell(text: str, file: str, env: dict[str, str | None]) -> list[Engine]:
    """The engines that the commands start; flags alone are one engine's."""
    assigned = dict(env)
    found = []
    for words in shell.commands(text, file, assigned):
        container = docker.run(words)
        if container is not None:
            found += _of_container(container)
        elif _is_engine(words):
            found.append(Engine("", words, env=dict(assigned)))
    return found


def _is_engine(words: list[str]) -> bool:
    if engine_args.is_engine_command(words) or engine_args.shell_script(words):
        return manifests.is_engine({}, words)
    # The arguments alone, as a manifest's args has them.
    if words[0].startswith("--"):
        return True
    return bool(re.fullmatch(r"/?[\w.-]+(/[\w.-]+)+", words[0])) and words[1:2] != [] and words[1].startswith("--")


def _of_container(container: docker.Run) -> list[Engine]:
    argv = [*container.entrypoint, *container.command]
    described = {"image": container.image} | ({"command": container.entrypoint} if container.entrypoint else {})
    if not manifests.is_engine(described, argv) and not engine_args.is_engine_command(argv):
        return []
    mounts = [
        {
            "argument": f"-v {mount}",
            "why": "the chart's modelCache holds the models",
            "instead": "extraVolumes for more",
        }
        for mount in container.mounts
    ]
    files = [
        {"argument": f"--env-file {name}", "why": "it is not read", "instead": "engine.extraEnv"}
        for name in container.variable_files
    ]
    engine = Engine(container.name, argv, image=container.image, env=dict(container.env), dropped=[*mounts, *files])
    return [engine]


def _of_unit(text: str, file: str) -> list[Engine]:
    lines, env = shell.unit(text, file)
    return [engine for line in lines for engine in _of_shell(line, file, env)]


def _of_manifests(text: str, file: str) -> list[Engine]:
    found = manifests.engines(manifests.parse(text, file))
    ours = [engine.container for engine in found]
    names = [engine.label or engine.name for engine in found]
    return [
        Engine(
            # Two engines of one pod differ by their containers' names.
            name=name if names.count(name) == 1 else f"{name}-{engine.container.get('name', '')}",
            argv=engine.argv,
            image=engine.image,
            replicas=engine.replicas,
            env=_unused(engine.env, engine.container),
            token_secret=_token(engine.container),
            resources=manifests.mapping(engine.container.get("resources")),
            dropped=[_beside(other, part) for other, part in _others(engine.pod_spec, ours)],
        )
        for name, engine in zip(names, found, strict=True)
    ]


def _unused(env: dict[str, str | None], container: dict[str, Any]) -> dict[str, str | None]:
    """Without what the arguments alone use."""
    words = [str(word) for key in ("command", "args") for word in manifests.sequence(container.get(key))]
    used = {name for word in words for name in re.findall(r"\$\(([\w.-]+)\)", word)}
    return {name: value for name, value in env.items() if name not in used}


def _others(pod: dict[str, Any], ours: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    for key, part in (("initContainers", "extraInitContainers"), ("containers", "extraContainers")):
        for container in manifests.sequence(pod.get(key)):
            if isinstance(container, dict) and not any(container is engine for engine in ours):
                yield container, part


def _beside(container: dict[str, Any], part: str) -> dict[str, str]:
    name = f"container {container.get('name', '')} ({container.get('image', 'no image')})"
    return {"argument": name, "why": "it runs no engine", "instead": f"{part}, where it is still needed"}


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

    documents = yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    services = [
        pair
        for document in documents
        for pair in manifests.mapping(manifests.mapping(document).get("services")).items()
    ]
    found = []
    for name, service in services:
        entry = manifests.mapping(service)
        container = docker.Run(
            image=str(entry.get("image") or ""),
            command=_command(entry.get("command"), file),
            entrypoint=_command(entry.get("entrypoint"), file),
            name=str(name),
            env=_environment(entry.get("environment")),
            mounts=[_mount(each) for each in manifests.sequence(entry.get("volumes"))],
        )
        found += _of_container(container)
    return found


def _environment(value: Any) -> dict[str, str | None]:
    """A map, or a list of NAME=VALUE; a name alone comes from the place where compose runs."""
    if isinstance(value, dict):
        return {str(name): None if told is None else str(told) for name, told in value.items()}
    pairs = [str(each).partition("=") for each in manifests.sequence(value)]
    return {name: told if equals else None for name, equals, told in pairs}


def _mount(value: Any) -> str:
    return f"{value.get('source', '')}:{value.get('target', '')}" if isinstance(value, dict) else str(value)


def _command(value: Any, file: str) -> list[str]:
    if isinstance(value, list):
        return [str(word) for word in value]
    return shell.words(str(value or ""), file)

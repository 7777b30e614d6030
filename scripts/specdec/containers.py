"""What a container's process sees: its variables, and its command line with them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from specdec import engine_args
from specdec.objects import Manifest, mapping, sequence
from specdec.shell import resolved

# By namespace and name.
ConfigMaps = dict[str | None, dict[str, dict[str, Any]]]


def config_maps(manifests: Sequence[Manifest]) -> ConfigMaps:
    """The data of the ConfigMaps among the objects."""
    found: ConfigMaps = {}
    for manifest in manifests:
        if manifest.kind == "ConfigMap":
            found.setdefault(manifest.namespace, {})[manifest.name] = mapping(manifest.data.get("data"))
    return found


def environment(
    container: Mapping[str, Any], maps: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, str | None]:
    """The variables of a container, None where the value stands in no manifest. `maps`: ConfigMaps of its namespace.

    A variable of its own wins over one of envFrom, as in Kubernetes.
    """
    maps = maps or {}
    variables: dict[str, str | None] = {}
    for source in sequence(container.get("envFrom")):
        prefix = str(mapping(source).get("prefix") or "")
        data = maps.get(str(mapping(mapping(source).get("configMapRef")).get("name")), {})
        variables |= {f"{prefix}{key}": _word(value) for key, value in data.items()}
    for variable in sequence(container.get("env")):
        if isinstance(variable, dict) and variable.get("name") is not None:
            value = variable.get("value")
            if value is None:
                reference = mapping(mapping(variable.get("valueFrom")).get("configMapKeyRef"))
                value = maps.get(str(reference.get("name")), {}).get(str(reference.get("key")))
            variables[str(variable["name"])] = None if value is None else _word(value)
    return variables


def arguments(container: Mapping[str, Any], env: Mapping[str, str | None]) -> list[str]:
    """Command and arguments as the process sees them: $(NAME) of known variables expanded, $$ undone, and in the
    script of a shell the variables that are known."""

    def expand(word: str) -> str:
        def put(match: re.Match[str]) -> str:
            if match.group(0).startswith("$$"):
                return match.group(0)[1:]
            return env.get(match.group(1)) or match.group(0)

        return re.sub(r"\$\$(?:\(\w+\))?|\$\(([\w.-]+)\)", put, word) if "$" in word else word

    words = [*sequence(container.get("command")), *sequence(container.get("args"))]
    argv = [expand(_word(word)) for word in words]
    script = engine_args.shell_script(argv)
    return argv if script is None else [resolved(word, env) if word == script else word for word in argv]


def _word(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)

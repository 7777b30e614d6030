"""JSON schemas of Kubernetes' own kinds, for kubeconform, out of the OpenAPI document that k8s.io/kubernetes carries.

Each file stands alone and is strict: a field that the API does not know is an error. Use:
kubeconform -strict -schema-location '.tools/schemas/{{.ResourceKind}}{{.KindSuffix}}.json'
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from setup.dag import SetupError, Step, Work
from setup.paths import HOME, MODULES
from setup.tools import KUBERNETES, go_command, go_environment

PREFIX = "#/definitions/"
Schema = dict[str, Any]


def strict(schema: Any) -> Any:
    """The schema with unknown fields refused, and with what the API takes as number or string taken as either."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "int-or-string":
        return {"oneOf": [{"type": "string"}, {"type": "integer"}]}
    made = {key: strict(value) for key, value in schema.items() if not key.startswith("x-") and key != "description"}
    if "properties" in schema and isinstance(schema["properties"], dict) and schema.get("type", "object") == "object":
        made.setdefault("additionalProperties", False)
    return made


def references(schema: Any) -> set[str]:
    """Names of the definitions that a schema refers to directly."""
    if isinstance(schema, list):
        return set().union(*map(references, schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    found = set().union(*map(references, schema.values())) if schema else set()
    target = schema.get("$ref")
    return found | {target.removeprefix(PREFIX)} if isinstance(target, str) else found


def standalone(definitions: dict[str, Schema]) -> dict[str, Schema]:
    """One schema a kind, by the file name that kubeconform asks for: `deployment-apps-v1.json`."""
    closed = {name: strict(definition) for name, definition in definitions.items()}
    for name, definition in closed.items():
        if name.endswith("api.resource.Quantity"):
            definition.clear()
            definition["oneOf"] = [{"type": "string"}, {"type": "number"}]
    files: dict[str, Schema] = {}
    for name, definition in definitions.items():
        kinds = definition.get("x-kubernetes-group-version-kind", [])
        if len(kinds) != 1 or "kind" not in definition.get("properties", {}):
            continue
        group, version, kind = (kinds[0][key] for key in ("group", "version", "kind"))
        seen: set[str] = set()
        pending = references(closed[name])
        while pending:
            seen |= pending
            pending = set().union(*(references(closed[item]) for item in pending)) - seen
        schema = json.loads(json.dumps(closed[name]))
        schema["properties"]["kind"] = {"enum": [kind]}
        schema["properties"]["apiVersion"] = {"enum": [f"{group}/{version}" if group else version]}
        schema["required"] = sorted({*schema.get("required", []), "apiVersion", "kind"})
        schema["definitions"] = {item: closed[item] for item in sorted(seen)}
        middle = f"-{group.split('.')[0]}" if group else ""
        files[f"{kind.lower()}{middle}-{version}.json"] = schema
    return files


def step(needs: tuple[str, ...]) -> Step:
    place = HOME / "schemas"

    def run(work: Work) -> None:
        words = [go_command(), "mod", "download", "-json", "k8s.io/kubernetes"]
        work.command(*words, env=go_environment(), cwd=MODULES / "kubernetes", attempts=4)
        listed = subprocess.run(
            words, env=go_environment(), cwd=MODULES / "kubernetes", capture_output=True, check=True
        )
        document = Path(json.loads(listed.stdout)["Dir"]) / "api/openapi-spec/swagger.json"
        if not document.is_file():
            raise SetupError(f"{document} is missing")
        made = work.scratch / "schemas"
        made.mkdir()
        for name, schema in standalone(json.loads(document.read_text())["definitions"]).items():
            (made / name).write_text(json.dumps(schema, separators=(",", ":"), sort_keys=True))
        work.put(made, place)

    return Step(
        "schemas", "network", run, (KUBERNETES, Path(__file__)), (place / "deployment-apps-v1.json",), needs, gib=0.3
    )

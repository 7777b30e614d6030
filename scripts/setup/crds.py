"""JSON schemas of custom resources, for kubeconform, out of the CRDs that their projects' Go modules carry.

Files are called as kubeconform asks for them, `httproute-gateway-v1.json`, and strict like those of schemas.py. Use:
kubeconform -schema-location '.tools/crds/{{.ResourceKind}}{{.KindSuffix}}.json'
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setup.dag import SetupError, Step, Work
from setup.paths import HOME, REPO
from setup.tools import go_command, go_environment

Schema = dict[str, Any]
PLACE = HOME / "crds"


@dataclass(frozen=True)
class Source:
    """A Go module at a version, the checksum that go.sum would have for it, and where its CRDs lie."""

    module: str
    version: str
    checksum: str
    files: tuple[str, ...]


SOURCES = (
    Source(
        "sigs.k8s.io/gateway-api", "v1.6.3", "h1:lKpJa5bGlraC/QeACvCpsHLdmO6y0iKfzVl6gzaFEYc=",
        ("config/crd/standard/*_httproutes.yaml", "config/crd/standard/*_gateways.yaml"),
    ),
    Source(
        "sigs.k8s.io/gateway-api-inference-extension", "v1.5.0", "h1:w9Awt60cmI1vM7Y6N81h8wDCBP0WkmxpdI7GKY0v070=",
        ("config/crd/bases/inference.networking.k8s.io_inferencepools.yaml",),
    ),
    Source(
        "github.com/kserve/kserve", "v0.19.0", "h1:8Pbdm9Ekn1JEuHrobqJhZI4uRHyf5bk1ofb5+3kEI14=",
        ("config/crd/full/*_inferenceservices.yaml", "config/crd/full/llmisvc/*_llminferenceservices.yaml"),
    ),
    Source(
        "github.com/kedacore/keda/v2", "v2.21.0", "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=",
        ("config/crd/bases/keda.sh_scaledobjects.yaml", "config/crd/bases/keda.sh_triggerauthentications.yaml"),
    ),
    Source(
        "github.com/prometheus-operator/prometheus-operator", "v0.90.1",
        "h1:n/+FkLB6WpftBxJC8IEHrWXSA6uzNTocFmwU/ACkfeg=",
        ("example/prometheus-operator-crd/*monitors.yaml", "example/prometheus-operator-crd/*rules.yaml"),
    ),
    Source(
        "github.com/GoogleCloudPlatform/prometheus-engine", "v0.17.2",
        "h1:b4Sau/04Xn0wqGyGABUzLVOSlM7BxsZHbcYEXP3EDeg=",
        ("charts/operator/crds/*.com_podmonitorings.yaml", "charts/operator/crds/*_rules.yaml"),
    ),
)  # fmt: skip


def strict(schema: Any) -> Any:
    """The schema with unknown fields refused where the API server would prune them."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"oneOf": [{"type": "string"}, {"type": "integer"}]}
    made = {key: strict(value) for key, value in schema.items() if not key.startswith("x-") and key != "description"}
    if schema.get("nullable") and isinstance(schema.get("type"), str):
        made["type"] = [schema["type"], "null"]
    closed = isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
    if closed and not schema.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    return made


def of(document: Schema) -> dict[str, Schema]:
    """The schemas of one CustomResourceDefinition, by file name: one for each version that is served."""
    group, kind = document["spec"]["group"], document["spec"]["names"]["kind"]
    found: dict[str, Schema] = {}
    for version in document["spec"]["versions"]:
        if not version["served"]:
            continue
        schema = strict(version["schema"]["openAPIV3Schema"])
        schema["properties"] |= {
            "apiVersion": {"enum": [f"{group}/{version['name']}"]},
            "kind": {"enum": [kind]},
            # What stands in metadata is the API machinery's, not the CRD's.
            "metadata": {"type": "object"},
        }
        schema["required"] = sorted({*schema.get("required", []), "apiVersion", "kind"})
        found[f"{kind.lower()}-{group.split('.')[0]}-{version['name']}.json"] = schema
    return found


def fetch(source: Source) -> Path:
    """The folder of the module in Go's cache. Raises SetupError where it cannot be had or is not what it was."""
    words = [str(go_command()), "mod", "download", "-json", f"{source.module}@{source.version}"]
    done = subprocess.run(words, env=go_environment(), cwd=HOME, capture_output=True, text=True, check=False)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {"Error": done.stderr.strip()}
    if answer.get("Error"):
        raise SetupError(f"{source.module}: {answer['Error']}", "`go env GOPROXY` says where modules come from")
    if answer["Sum"] != source.checksum:
        raise SetupError(f"{source.module} {source.version} has checksum {answer['Sum']}, not {source.checksum}")
    return Path(answer["Dir"])


def make(place: Path) -> None:
    """Write the schemas of all sources into a folder that exists."""
    import yaml  # of .venv: set-up itself starts with Python alone

    for source in SOURCES:
        folder = fetch(source)
        for pattern in source.files:
            paths = sorted(folder.glob(pattern))
            if not paths:
                raise SetupError(f"{source.module} {source.version} has no {pattern}")
            for path in paths:
                for name, schema in of(yaml.safe_load(path.read_text())).items():
                    (place / name).write_text(json.dumps(schema, separators=(",", ":"), sort_keys=True))


def step(needs: tuple[str, ...]) -> Step:
    """The step that makes PLACE. It needs "python", and "go" where the machine has none."""

    def run(work: Work) -> None:
        made = work.scratch / "crds"
        made.mkdir()
        environment = {**go_environment(), "PYTHONPATH": str(REPO / "scripts")}
        work.command(REPO / ".venv/bin/python", "-m", "setup.crds", made, env=environment, cwd=HOME, attempts=2)
        work.put(made, PLACE)

    inputs: tuple[Path | str, ...] = (Path(__file__), *(f"{one.module}@{one.version}" for one in SOURCES))
    return Step("crds", "network", run, inputs, (PLACE / "httproute-gateway-v1.json",), needs, gib=1.0)


if __name__ == "__main__":
    make(Path(sys.argv[1]))

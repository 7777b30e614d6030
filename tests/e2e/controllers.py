"""Controllers beside the release, from programs and manifests that `python3 scripts/setup controllers` brings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from machine import run
from specdec import local
from specdec.local import layers
from specdec.local.containerd import Containerd, Image

PLACE = local.TOOLS / "controllers"
TRAEFIK = Path(__file__).with_name("traefik.yaml")
METRICS_API = "apiservice/v1beta1.external.metrics.k8s.io"


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skips a module's stories where these controllers were not built."""
    steps = ("controllers", *(f"image-{program}" for program in programs))
    lacking = [step for step in steps if not (local.TOOLS / "stamp" / step).is_file()]
    return pytest.mark.skipif(bool(lacking), reason=f"{', '.join(lacking)} not built: make e2e-controllers")


def kubectl(*arguments: str) -> str:
    """kubectl on the local cluster, in whatever namespace an object names."""
    return run("kubectl", *arguments, KUBECONFIG=str(local.kubeconfig())).stdout


def socket() -> Path:
    """Of the local cluster's containerd."""
    return local.state_dir() / "run/containerd.sock"


@contextmanager
def applied(documents: list[dict[str, Any]], file: Path) -> Iterator[None]:
    """Objects that are there while the block runs."""
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    try:
        # Server-side: a large CRD does not fit into the annotation that kubectl keeps otherwise.
        kubectl("apply", "--server-side", "--filename", str(file))
        yield
    finally:
        kubectl("delete", "--filename", str(file), "--ignore-not-found", "--wait=true", "--timeout=120s")


def manifests(project: str) -> list[dict[str, Any]]:
    """A project's own, CRDs and namespaces first."""
    texts = [path.read_text() for path in sorted((PLACE / project).rglob("*.yaml"))]
    documents = [document for text in texts for document in yaml.safe_load_all(text) if document]
    order = ("CustomResourceDefinition", "Namespace")
    return sorted(documents, key=lambda one: order.index(one["kind"]) if one["kind"] in order else len(order))


def rollout(deployment: str) -> None:
    kubectl("rollout", "status", f"deployment/{deployment}", "--namespace=keda", "--timeout=300s")


@contextmanager
def keda(scratch: Path) -> Iterator[None]:
    """KEDA as its own manifests install it: the operator, and the adapter that serves its metrics to Kubernetes."""
    image = Image("localhost/vllm-speculative/keda:test", (layers.layer("base"), layers.layer("keda")),
                  layers.config("/keda"))  # fmt: skip
    Containerd(socket()).load(image)
    documents = manifests("keda")
    for document in documents:
        if document["kind"] == "Deployment":
            container = document["spec"]["template"]["spec"]["containers"][0]
            container |= {"image": image.name, "imagePullPolicy": "Never"}
            if document["metadata"]["name"] == "keda-operator":
                # Its webhooks are not installed.
                container["args"].append("--enable-webhook-patching=false")
    # One after the other: an adapter that finds no operator asks again after ever longer pauses, two minutes at last.
    adapter = [one for one in documents if one["kind"] == "Deployment" and one["metadata"]["name"] != "keda-operator"]
    first = [one for one in documents if one not in adapter]
    with applied(first, scratch / "operator.json"):
        rollout("keda-operator")
        with applied(adapter, scratch / "adapter.json"):
            rollout("keda-metrics-apiserver")
            kubectl("wait", "--for=condition=Available", METRICS_API, "--timeout=300s")
            try:
                yield
            finally:
                # They hold a finalizer, which the operator alone lets go.
                kubectl("delete", "scaledobjects", "--all", "--all-namespaces", "--timeout=60s")


@contextmanager
def traefik(scratch: Path) -> Iterator[None]:
    """Traefik with a Gateway at port 8001 and an Ingress class at port 8000 of the Service traefik/traefik."""
    image = Image("localhost/vllm-speculative/traefik:test", (layers.layer("base"), layers.layer("traefik")),
                  layers.config("/traefik"))  # fmt: skip
    Containerd(socket()).load(image)
    own = [document for document in yaml.safe_load_all(TRAEFIK.read_text()) if document]
    # The Gateway is gone before the definition of its kind is.
    with applied(manifests("gateway-api"), scratch / "gateway-api.json"):
        kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/gateways.gateway.networking.k8s.io")
        with applied(own, scratch / "traefik.json"):
            kubectl("rollout", "status", "deployment/traefik", "--namespace=traefik", "--timeout=180s")
            kubectl("wait", "--for=condition=Programmed", "gateway/models", "--namespace=traefik", "--timeout=60s")
            yield

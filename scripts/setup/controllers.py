"""Controllers that end-to-end tests start beside the release: KEDA, and Traefik for Ingress and Gateway API.

Their programs become layers of images, their manifests and CRDs come out of the Go modules that the programs are built
from. Ten minutes and more to build, so nothing but their own tests asks for them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setup.crds import SOURCES, fetch
from setup.dag import SetupError, Step, Work
from setup.paths import HOME
from setup.tools import go, go_build

PLACE = HOME / "controllers"
# The definition of every kind that the chart can render, where a Go module carries it.
CRDS = PLACE / "crds"
KEDA, TRAEFIK = "v2.21.0", "v3.6.12"
# What each controller is installed with, by the module that has it.
MANIFESTS = {
    "github.com/kedacore/keda/v2": (
        "config/crd/bases/*.yaml", "config/general/namespace.yaml", "config/service_account/service_account.yaml",
        "config/rbac/role.yaml", "config/rbac/role_binding.yaml", "config/manager/manager.yaml",
        "config/manager/service.yaml", "config/metrics-server/role.yaml", "config/metrics-server/role_binding.yaml",
        "config/metrics-server/deployment.yaml", "config/metrics-server/service.yaml",
        "config/metrics-server/api_service.yaml",
    ),
    "sigs.k8s.io/gateway-api": tuple(
        f"config/crd/standard/*_{kind}.yaml"
        for kind in ("backendtlspolicies", "gatewayclasses", "gateways", "grpcroutes", "httproutes", "referencegrants")
    ),
}  # fmt: skip


def folder(module: str) -> Path:
    """Where a module's manifests are put."""
    return PLACE / module.removesuffix("/v2").rpartition("/")[2]


def _manifests_step() -> Step:
    def run(work: Work) -> None:
        crds = work.scratch / "crds"
        crds.mkdir()
        for source in SOURCES:
            for pattern in source.files:
                for path in fetch(source).glob(pattern):
                    shutil.copyfile(path, crds / path.name)
            made = work.scratch / "made"
            for pattern in MANIFESTS.get(source.module, ()):
                found = sorted(fetch(source).glob(pattern))
                if not found:
                    raise SetupError(f"{source.module} {source.version} has no {pattern}")
                for path in found:
                    target = made / path.relative_to(fetch(source))
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, target)
            if made.exists():
                work.put(made, folder(source.module))
        work.put(crds, CRDS)

    inputs = (Path(__file__), *(f"{source.module}@{source.version}" for source in SOURCES))
    needs = () if go() else ("go",)
    return Step("controllers", "network", run, inputs, (*map(folder, MANIFESTS), CRDS), needs)


def steps() -> list[Step]:
    keda, traefik = "github.com/kedacore/keda/v2", "github.com/traefik/traefik/v3"
    return [
        _manifests_step(),
        *go_build(
            "image-keda", "keda", {"keda": f"{keda}/cmd/operator", "keda-adapter": f"{keda}/cmd/adapter"},
            f"-X {keda}/version.Version={KEDA}", HOME / "images/keda", gib=6,
        ),
        *go_build(
            "image-traefik", "traefik", {"traefik": f"{traefik}/cmd/traefik"},
            f"-X {traefik}/pkg/version.Version={TRAEFIK}", HOME / "images/traefik", gib=5,
        ),
    ]  # fmt: skip

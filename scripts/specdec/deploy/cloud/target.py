"""An environment with Terraform: which root, which variables, where its states are kept."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from specdec.deploy.cloud import tfvars
from specdec.environments import Environment
from specdec.errors import SpecdecError

VARIABLES, PLATFORM_VARIABLES = "terraform.tfvars", "platform.tfvars"
CLOUDS = ("gke", "eks")


@dataclass(frozen=True)
class Pool:
    """One GPU pool of the variables. `zones` None: all of the cluster's."""

    name: str
    machine: str
    provisioning: str
    zones: tuple[str, ...] | None
    max_nodes: int
    gpus_per_engine: int


@dataclass(frozen=True)
class Target:
    """`cloud` is gke or eks, which is the root's name too."""

    env: Environment
    cloud: str

    @classmethod
    def of(cls, env: Environment) -> Target | None:
        """None for an environment without Terraform. Raises SpecdecError where its folder contradicts itself."""
        if not (env.directory / VARIABLES).is_file():
            return None
        found = [cloud for cloud in CLOUDS if (env.directory / f"backend.{cloud}.hcl").is_file()]
        if len(found) != 1:
            names = " and ".join(f"backend.{cloud}.hcl" for cloud in found or CLOUDS)
            raise SpecdecError(
                f"{env.name} has {names}: which cloud is it for?" if found else f"{env.name} has neither {names}",
                code="SD851",
                file=str(env.directory),
                fix="one file backend.gke.hcl or backend.eks.hcl that says where the cluster's state is kept",
            )
        return cls(env, found[0])

    @property
    def file(self) -> Path:
        return self.env.directory / VARIABLES

    @property
    def platform_file(self) -> Path:
        return self.env.directory / PLATFORM_VARIABLES

    def backend_file(self, root: str) -> Path:
        return self.env.directory / f"backend.{root}.hcl"

    @cached_property
    def variables(self) -> dict[str, Any]:
        return tfvars.load(self.file)

    @cached_property
    def platform_variables(self) -> dict[str, Any]:
        return tfvars.load(self.platform_file) if self.platform_file.is_file() else {}

    def backend(self, root: str) -> dict[str, Any]:
        """Settings of a root's backend. Raises SpecdecError (SD872) where there are none."""
        return tfvars.load(self.backend_file(root))

    @property
    def name(self) -> str:
        """The cluster's."""
        return self._required("name")

    @property
    def region(self) -> str:
        return self._required("region")

    @property
    def project(self) -> str:
        """On Google Cloud alone."""
        return self._required("project_id")

    def _required(self, key: str) -> str:
        value = self.variables.get(key)
        if not isinstance(value, str) or not value:
            raise SpecdecError("is missing", code="SD872", file=str(self.file), path=key, fix=f'{key} = "..."')
        return value

    @cached_property
    def pools(self) -> list[Pool]:
        """Raises SpecdecError (SD872) for a pool without a machine type. Defaults are those of the roots' variables."""
        pools = self.variables.get("gpu_pools") or {}
        if not isinstance(pools, dict):
            raise SpecdecError("is a map of pools", code="SD872", file=str(self.file), path="gpu_pools")
        found = []
        for name, pool in pools.items():
            machine = pool.get("machine_type") if isinstance(pool, dict) else None
            if not isinstance(machine, str):
                where = f"gpu_pools.{name}.machine_type"
                raise SpecdecError("is missing", code="SD872", file=str(self.file), path=where, fix="a machine type")
            zones = pool.get("zones") or (self.variables.get("zones") if self.cloud == "eks" else None)
            found.append(
                Pool(
                    name,
                    machine,
                    str(pool.get("provisioning") or "on_demand"),
                    tuple(map(str, zones)) if zones else None,
                    int(pool.get("max_nodes", 2)),
                    int(pool.get("gpus_per_engine", 1)),
                )
            )
        return found

    @property
    def folder(self) -> Path:
        """Where this machine keeps what belongs to the environment: plans, logs, the kubeconfig, how far it came."""
        base = os.environ.get("SPECDEC_STATE")
        return Path(base) / self.env.name if base else self.env.directory / ".specdec"


def made(folder: Path) -> Path:
    """The folder, there, closed to others and unknown to git: plans may hold what is nobody else's business."""
    ignore = folder / ".gitignore"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not ignore.exists():
            ignore.write_text("*\n")
    except OSError as error:
        fix = "set SPECDEC_STATE to a folder that may be written"
        raise SpecdecError(f"cannot be written: {error}", code="SD872", file=str(folder), fix=fix) from None
    return folder

"""A deployed environment: its cluster and the manifests that Helm holds of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specdec.deploy import targets
from specdec.deploy.cluster import Cluster, connect
from specdec.environments import Environment
from specdec.errors import FoundWrong
from specdec.manifests import Manifest, parse


@dataclass(frozen=True)
class Live:
    """One environment as it runs."""

    env: Environment
    cluster: Cluster
    kubeconfig: Path | None

    @classmethod
    def of(
        cls, name: str, context: str | None = None, release: str | None = None, namespace: str | None = None
    ) -> Live:
        """Raises SpecdecError for an unknown environment and where no cluster is configured."""
        env = Environment.named(name, release, namespace, context)
        kubeconfig = None
        if env.name == "local":
            from specdec.deploy import local_cluster

            where = local_cluster.running(env)
            kubeconfig, env = where.kubeconfig, replace(env, kubecontext=where.context)
        elif env.kubecontext is None:
            from specdec.deploy.cloud import kubeconfig as own

            if found := own.of(env):
                kubeconfig, env = found[0], replace(env, kubecontext=found[1])
        return cls(env, connect(env.namespace, kubeconfig=kubeconfig, context=env.kubecontext), kubeconfig)

    def status(self) -> dict[str, Any] | None:
        """Helm's release, None where there is none. Asks the cluster first, whose error is the clearer one."""
        from specdec import helm

        self.cluster.get("/version")
        return helm.release_status(
            self.env.release, self.env.namespace, kubecontext=self.env.kubecontext, kubeconfig=self.kubeconfig
        )

    def manifests(self) -> list[Manifest]:
        """What is deployed. Raises FoundWrong where nothing is."""
        from specdec import helm

        self.cluster.get("/version")
        text = helm.manifest(
            self.env.release, self.env.namespace, kubecontext=self.env.kubecontext, kubeconfig=self.kubeconfig
        )
        if text is None:
            raise FoundWrong(
                f"there is no release {self.env.release} in namespace {self.env.namespace}",
                code="not-deployed",
                fix=f"specdec deploy {self.env.name}",
            )
        return parse(text, f"{self.env.name} (deployed)")

    def rendered(self, values: Sequence[Path], set_values: Sequence[str]) -> list[Manifest]:
        """What the values say now, deployed or not."""
        from specdec import helm

        files = [*self.env.values, *values]
        return parse(
            helm.render(files, set_values, self.env.release, self.env.namespace), f"{self.env.name} (rendered)"
        )

    def release(self, manifests: Sequence[Manifest] | None = None) -> targets.Release:
        return targets.of(self.manifests() if manifests is None else manifests)

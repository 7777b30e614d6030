"""The way back: chart, platform, cluster; then what still costs money."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specdec.deploy import lock
from specdec.deploy import removal as release
from specdec.deploy.cloud import clouds, finalizers, kubeconfig
from specdec.deploy.cloud.finalizers import Hanging
from specdec.deploy.cloud.record import Record
from specdec.deploy.cloud.roots import Root
from specdec.deploy.cloud.target import Target, made
from specdec.deploy.cluster import Cluster, Unreachable, connect
from specdec.deploy.progress import Progress
from specdec.errors import FoundWrong, SpecdecError, unknown

CLUSTERS = ("google_container_cluster", "aws_eks_cluster")
STAGES = ("chart", "platform", "cluster")


@dataclass(frozen=True)
class DestroyOptions:
    """`force_finalizers`: None asks on a terminal. `timeout`: seconds that objects may take to go."""

    force_finalizers: bool | None = None
    timeout: float = 300
    start: str | None = None
    unlock: str | None = None


class CloudDestroy:
    """`ask` raises where the answer is no; `may_force` says whether hanging objects may lose their finalizers."""

    def __init__(
        self, target: Target, options: DestroyOptions, progress: Progress, *,
        ask: Callable[[str], None], may_force: Callable[[str], bool], cloud: clouds.Cloud | None = None,
        reach: Callable[[Path, str, str], Cluster] | None = None,
    ) -> None:  # fmt: skip
        if options.start and options.start not in STAGES:
            raise unknown("stage", options.start, STAGES, path="--from")
        self.target, self.options, self.progress = target, options, progress
        self.ask, self.may_force = ask, may_force
        self.cloud = cloud or clouds.connect(target)
        self.reach = reach or (lambda file, context, space: connect(space, kubeconfig=file, context=context))
        self.record = Record(made(target.folder))
        # Noted while the cluster stands, for a run that only finds it gone.
        self.addresses: list[str] = list(self.record.facts.get("addresses") or [])

    def run(self) -> dict[str, Any]:
        """What was removed and what stays. Raises SpecdecError: nothing was touched; FoundWrong: part of it is gone."""
        env = self.target.env
        with lock.on_machine(f"cloud {env.name} ({self.target.name} in {self.target.region})"):
            root = Root(self.target, self.target.cloud, self.progress, self.cloud.offers)
            root.terraform.await_survivor()
            with self.progress.step("look"):
                held = self._look(root)
            if not held:
                with self.progress.step("platform"):
                    self._platform(None, there=False)
                return self._end(root, removed=False)
            self.ask(f"Destroy {self.target.name}: the release, the platform and {len(held)} resources?")
            if not self.record.is_done("destroy platform", ""):
                self._contents(root, held)
            with self.record.stage("destroy cluster", ""), self.progress.step("cluster"):
                root.plan(destroy=True)
                self.progress.note(str(root.apply()))
            if not self._runs("platform"):
                with self.progress.step("platform"):
                    self._platform(None, there=False)
            (self.target.folder / "kubeconfig").unlink(missing_ok=True)
            self.record.clear()
            return self._end(root, removed=True)

    def state(self) -> str:
        """What an interruption at this moment leaves behind."""
        again = f"`specdec destroy {self.target.env.name}` goes on"
        stage = self.record.unfinished or ""
        gone = f"stopped at {stage}: part of it is gone" if stage.startswith("destroy") else "nothing is gone"
        return f"{gone}; {again}"

    def _runs(self, stage: str) -> bool:
        return STAGES.index(stage) >= STAGES.index(self.options.start or STAGES[0])

    def _contents(self, root: Root, held: list[dict[str, Any]]) -> None:
        """What is in the cluster: the release and the platform. A run that comes after it begins at the cluster."""
        # Nothing of what a deploy noted holds any more: a later one begins at its beginning, and asks again.
        self.record.clear()
        self.record.put(addresses=self.addresses)
        outputs = dict(root.outputs().get("platform") or {})
        stands = bool(outputs) and any(one["type"] in CLUSTERS for one in held)
        cluster = self._reach(outputs) if stands and self._runs("platform") else None
        if cluster:
            self.addresses = list(dict.fromkeys([*self.addresses, *finalizers.addresses(cluster)]))
            self.record.put(addresses=self.addresses)
            if self._runs("chart"):
                with self.record.stage("destroy chart", ""), self.progress.step("chart"):
                    self._chart(cluster)
        if self._runs("platform"):
            with self.record.stage("destroy platform", ""), self.progress.step("platform"):
                self._platform(cluster, there=stands)

    def _look(self, root: Root) -> list[dict[str, Any]]:
        """What the state holds. Raises SpecdecError where it is protected: before anything is touched."""
        root.init()
        if self.options.unlock:
            root.unlock(self.options.unlock)
        held = root.resources()
        self.progress.note(f"{len(held)} resources in the state")
        if guarded := protected(held):
            name = self.target.env.name
            raise SpecdecError(
                f"protected from deletion, and nothing was touched: {', '.join(guarded)}",
                code="SD870",
                file=str(self.target.file),
                path="deletion_protection, allow_gpu_pool_replacement",
                fix=f"two steps: set deletion_protection = false and allow_gpu_pool_replacement = true, "
                f"`specdec deploy {name} --to apply --allow SD804`; then `specdec destroy {name}`",
            )
        return held

    def _reach(self, outputs: dict[str, Any]) -> Cluster:
        env = self.target.env
        file, context = kubeconfig.write(self.target.folder, env.name, outputs)
        cluster = self.reach(file, context, env.namespace)
        try:
            cluster.get("/version")
        except Unreachable as error:
            raise SpecdecError(
                f"{error.message}; the release and the platform cannot be removed in order",
                code=error.code,
                fix=f"where it is gone for good: specdec destroy {env.name} --from cluster",
            ) from None
        return cluster

    def _chart(self, cluster: Cluster) -> None:
        """The release; what scales or exposes anything; and all that hangs on the way."""
        found = kubeconfig.of(self.target.env)
        env = replace(self.target.env, kubecontext=found[1] if found else None)
        # KEDA itself has to see its objects go: they wait for it, and nobody waits for them afterwards.
        finalizers.delete(cluster, finalizers.SCALERS, self.progress.note)
        self._wait(cluster, finalizers.SCALERS)
        try:
            kept = found[0] if found else None
            release.uninstall(env, cluster, kubeconfig=kept, timeout=self.options.timeout, report=self.progress.note)
        except FoundWrong as error:
            if error.code != "not-gone":
                raise
            self.progress.warn(error.message)
        # A load balancer outlives its cluster unless the cluster's own controller takes it away.
        finalizers.delete(cluster, finalizers.EXPOSED, self.progress.note)
        self._wait(cluster, finalizers.ALL)

    def _wait(self, cluster: Cluster, kinds: tuple[finalizers.KindOf, ...]) -> None:
        hanging = finalizers.wait(cluster, kinds, self.options.timeout, self.progress.note)
        if not hanging:
            return
        text = "; ".join(map(str, hanging))
        if not self._forced(hanging, text):
            raise FoundWrong(
                f"still there after {self.options.timeout:.0f} s, held by finalizers: {text}",
                code="SD871",
                fix="let their controllers run, or --force-finalizers: what they would have cleaned up then stays",
            )
        for one in hanging:
            finalizers.release(cluster, one)
            self.progress.warn(f"finalizers taken off: {one}")

    def _forced(self, hanging: list[Hanging], text: str) -> bool:
        if self.options.force_finalizers is not None:
            return self.options.force_finalizers
        return self.may_force(f"{len(hanging)} objects do not go: {text}\nTake their finalizers off?")

    def _platform(self, cluster: Cluster | None, *, there: bool) -> None:
        root = Root(self.target, "platform", self.progress)
        root.init()
        if self.options.unlock:
            root.unlock(self.options.unlock)
        held = root.resources()
        if not held:
            self.progress.note("nothing there")
            return
        if not there:
            # Its objects went with their cluster; a destroy would ask a cluster that is gone.
            root.terraform.forget([one["address"] for one in held])
            self.progress.warn(f"the cluster is gone: {len(held)} entries of the platform's state are forgotten")
            return
        root.plan(destroy=True)
        try:
            self.progress.note(str(root.apply()))
        except FoundWrong:
            if cluster is None or not finalizers.hanging(cluster, finalizers.ALL):
                raise
            # Something in a namespace hangs: what it is, and once more without it.
            self._wait(cluster, finalizers.ALL)
            root.plan(destroy=True)
            self.progress.note(str(root.apply()))

    def _end(self, root: Root, *, removed: bool) -> dict[str, Any]:
        with self.progress.step("remains"):
            found = [str(one) for one in self.cloud.remains(self.addresses)]
            self.progress.note(f"{len(found)} things that still cost money")
        bucket = self.target.backend(root.name).get("bucket")
        return {"removed": removed, "remains": [*found, f"the bucket of the state, {bucket}: it holds the history"]}


def protected(held: list[dict[str, Any]]) -> list[str]:
    """Addresses of resources that refuse to be deleted, by what their state says."""
    found = []
    for one in held:
        values = one.get("values") or {}
        if values.get("deletion_protection") is True or values.get("deletion_policy") == "PREVENT":
            found.append(str(one["address"]))
    return found

"""The deploy: preflight, Helm, wait, smoke test, table. One instance is one run."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from specdec.deploy import lock, measure, preflight, smoke, targets
from specdec.deploy import pods as pod_states
from specdec.deploy.cluster import Cluster, Object, connect
from specdec.deploy.metrics import Counters
from specdec.deploy.problems import PreflightFailed, Problem
from specdec.deploy.progress import Progress
from specdec.deploy.release import recover
from specdec.deploy.wait import Waiter, budget
from specdec.deploy.workloads import pod_templates
from specdec.environments import Environment
from specdec.errors import FoundWrong, SpecdecError
from specdec.manifests import Manifest, parse

LEVELS: tuple[Literal["error", "warning"], ...] = ("error", "warning")


@dataclass(frozen=True)
class Options:
    """What the command line says beyond the environment. `timeout` in seconds; None: by the startup probes."""

    set_values: list[str] = field(default_factory=list)
    timeout: float | None = None
    smoke: bool = True
    measure: bool | None = None
    create_namespace: bool = False
    min_acceptance: float = 0.1
    repeats: int = 5
    max_tokens: int = 96


class Deploy:
    """`run` goes through the steps; `state` says, at any moment, what an interruption leaves behind."""

    def __init__(self, env: Environment, options: Options, progress: Progress) -> None:
        self.env, self.options, self.progress = env, options, progress
        self.kubeconfig: Path | None = None
        self.extra_values: list[Path] = []
        self.revision: int | None = None
        self.is_local = env.name == "local"

    def run(self) -> dict[str, Any]:
        """The result, as JSON has it. Raises SpecdecError: nothing was applied; FoundWrong: what was applied fails."""
        env = self.env
        with ExitStack() as held:
            held.enter_context(lock.on_machine(lock.key_of(env)))
            if self.is_local:
                self._local_cluster()
            with self.progress.step("preflight"):
                manifests = self.render()
                cluster = self._connect(held)
                exists = self._preflight(cluster, manifests)
            if not exists:
                self._create_namespace(cluster)
            # A connection of its own: the lock is renewed by another thread, and an HTTP/2 connection is for one.
            lease = lock.ClusterLock(self._connect(held), env.release, report=self.progress.warn)
            cluster_lock = held.enter_context(lease)
            with self.progress.step("helm"):
                self._apply(cluster_lock)
            with self.progress.step("wait"):
                ready = self._wait(cluster, manifests)
            return self._prove(cluster, manifests, ready)

    def _connect(self, held: ExitStack) -> Cluster:
        cluster = connect(self.env.namespace, kubeconfig=self.kubeconfig, context=self.env.kubecontext)
        held.callback(cluster.close)
        return cluster

    def render(self) -> list[Manifest]:
        """The manifests that will be applied."""
        from specdec import helm

        self.progress.note("rendering")
        values = [*self.env.values, *self.extra_values]
        text = helm.render(values, self.options.set_values, self.env.release, self.env.namespace)
        return parse(text, f"{self.env.name} (rendered)")

    def state(self) -> str:
        """What stands where, and how to go on: for an interruption at this moment."""
        env, again = self.env, f"specdec deploy {self.env.name}"
        if self.progress.current == "helm":
            return f"Helm was applying release {env.release}; `{again}` puts right what it left and goes on"
        if self.revision is not None:
            doing = (
                "its pods go on loading"
                if self.progress.current == "wait"
                else "it serves; only the tests were stopped"
            )
            return (
                f"release {env.release} is applied as revision {self.revision} and {doing}: "
                f"`specdec status {env.name}` shows it, `{again}` goes on, `specdec destroy {env.name}` removes it"
            )
        if self.progress.current == "cluster":
            return f"the local cluster may be half up; `{again}` goes on, `specdec destroy {env.name}` removes it"
        return f"nothing was changed in the cluster; `{again}` starts again"

    def _local_cluster(self) -> None:
        from specdec.deploy import local_cluster

        with self.progress.step("cluster"):
            ready = local_cluster.ensure(self.env, self.progress.note)
            self.kubeconfig, self.extra_values = ready.kubeconfig, ready.values
            self.env = replace(self.env, kubecontext=ready.context)

    def _preflight(self, cluster: Cluster, manifests: list[Manifest]) -> bool:
        """Whether the namespace exists. Raises PreflightFailed with all that is wrong; SpecdecError: no cluster."""
        may_create = self.options.create_namespace or self.is_local
        try:
            result = preflight.run(
                cluster,
                manifests,
                self.env.release,
                create_namespace=may_create,
                findings=rule_findings(manifests),
                report=self.progress.note,
            )
        except FoundWrong as error:  # nothing is applied yet: a precondition failed
            raise SpecdecError(error.message, code=error.code, fix=error.fix) from error
        if result.errors:
            raise PreflightFailed(result.problems)
        for problem in result.problems:
            self.progress.warn(str(problem))
        self.progress.note(f"{len(manifests)} objects checked, nothing against them")
        return result.namespace_exists

    def _create_namespace(self, cluster: Cluster) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.env.namespace}}
        cluster.request("POST", "/api/v1/namespaces", json=body)

    def _apply(self, cluster_lock: lock.ClusterLock) -> None:
        from specdec import helm

        recovered = recover(self.env, self.kubeconfig, self.progress.warn)
        if cluster_lock.lost:
            raise FoundWrong(f"another deploy took over: {cluster_lock.lost}", code="locked")
        self.progress.note("upgrade --install")
        release = helm.install_or_upgrade(
            self.env, self.options.set_values, extra_values=self.extra_values, kubeconfig=self.kubeconfig
        )
        self.revision = int(release.get("version") or 0)
        self.progress.note(f"revision {self.revision}" + (f"; before: {recovered}" if recovered else ""))

    def _wait(self, cluster: Cluster, manifests: list[Manifest]) -> list[Object]:
        templates = pod_templates(manifests)
        seconds = self.options.timeout if self.options.timeout is not None else budget(templates)
        return Waiter(cluster, templates, show=self.progress.pods, report=self.progress.note).run(seconds)

    def _prove(self, cluster: Cluster, manifests: list[Manifest], ready: list[Object]) -> dict[str, Any]:
        release = targets.of(manifests)
        result: dict[str, Any] = {
            "schema_version": 1,
            "ok": True,
            "environment": self.env.name,
            "release": self.env.release,
            "namespace": self.env.namespace,
            "revision": self.revision,
            "pods": [pod_row(pod) for pod in ready],
            "answer": None,
            "smoke": None,
            "measurement": None,
        }
        if self.options.smoke:
            with self.progress.step("smoke"):
                result |= self._smoke(cluster, release)
        wanted = self.is_local if self.options.measure is None else self.options.measure
        if wanted and release.pair and result["ok"]:
            with self.progress.step("measure"):
                result["measurement"] = self._measure(cluster, release.pair)
        return result | {"warnings": self.progress.warnings, "steps": self.progress.steps}

    def _smoke(self, cluster: Cluster, release: targets.Release) -> dict[str, Any]:
        documents, answer = [], None
        for target in smoke_targets(cluster, release):
            found = []
            for check in smoke.run(replace(target, min_acceptance=self.options.min_acceptance)):
                found.append(check)
                self.progress.note(f"{target.endpoint.label}, {check.name}: {'ok' if check.ok else 'FAILED'}")
            documents.append(smoke.as_dict(target, found))
            answer = answer or target.found.get("answer")
        result = smoke.joined(documents)
        passed = sum(check["ok"] for check in result["checks"])
        self.progress.note(f"{passed} of {len(result['checks'])} checks passed")
        return {"ok": result["ok"], "smoke": result, "answer": answer}

    def _measure(self, cluster: Cluster, pair: tuple[targets.Engine, targets.Engine]) -> dict[str, Any]:
        comparison = measure.compare(
            arm(cluster, "speculative", pair[0]),
            arm(cluster, "baseline", pair[1]),
            repeats=self.options.repeats,
            max_tokens=self.options.max_tokens,
            report=self.progress.note,
        )
        self.progress.note(f"ratio {comparison.ratio:.2f}")
        return comparison.as_dict() | {"note": measure.LOCAL_NOTE if self.is_local else None}


def arm(cluster: Cluster, name: str, engine: targets.Engine) -> measure.Arm:
    """One engine as an arm of a comparison, asked through its own Service."""
    return measure.Arm(
        name, cluster.service(engine.service, engine.port), engine.model, lambda: engine.counters(cluster)
    )


def smoke_targets(cluster: Cluster, release: targets.Release) -> list[smoke.Target]:
    """Whom to test: each router, as clients see it, and each engine that none stands for."""
    routed = [(router, router.behind(release.engines)) for router in release.routers]
    reached = {engine.name for _, behind in routed for engine in behind}
    others = [engine for engine in release.engines if engine.name not in reached]
    return [
        *(smoke_target(cluster, behind, router.service, router.port) for router, behind in routed if behind),
        *(smoke_target(cluster, [engine], engine.service, engine.port) for engine in others),
    ]


def smoke_target(cluster: Cluster, behind: list[targets.Engine], service: str, port: int) -> smoke.Target:
    """One Service and the engines that answer through it."""
    positions = [limit for engine in behind if (limit := targets.draft_positions(engine.workload))]
    return smoke.Target(
        endpoint=cluster.service(service, port),
        model=behind[0].model,
        speculation=any(engine.speculates for engine in behind),
        counters=lambda: sum((engine.counters(cluster) for engine in behind), Counters()),
        draft_positions=max(positions, default=None),
        max_model_len=behind[0].workload.args.max_model_len,
    )


def rule_findings(manifests: list[Manifest]) -> list[Problem]:
    """What the rules say of the manifests: errors stop, warnings are shown, notes are for `specdec validate`."""
    from specdec import rules

    return [
        Problem(level, found.code, f"{found.resource} {found.path}".strip(), found.message, found.fix)
        for found in rules.check(manifests)
        for level in LEVELS
        if found.severity == level
    ]


def pod_row(pod: Object) -> dict[str, Any]:
    return {
        "name": pod["metadata"]["name"],
        "engine": pod_states.engine_of(pod),
        "seconds_to_ready": pod_states.seconds_to_ready(pod),
        "restarts": pod_states.restarts(pod),
    }

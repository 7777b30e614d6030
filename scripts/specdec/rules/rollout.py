"""SD413, SD430 to SD434: disruption, rollouts and how many GPUs they need."""

from __future__ import annotations

from collections.abc import Iterator

from specdec.manifests import EngineWorkload
from specdec.objects import mapping, sequence
from specdec.rules.graceful import pre_stop_seconds
from specdec.rules.model import Edit, Problem, Severity, World, each_engine, rule
from specdec.rules.resources import ROLLOUT, surge

POOL = "vllm-speculative/pool-gpus"
DISRUPTION = "https://kubernetes.io/docs/tasks/run-application/configure-pdb/"


def deployment(strategy: str, replicas: int = 1, gpus: int = 1, annotations: str = "{}") -> str:
    """An example that is a Deployment with that strategy."""
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: engine, annotations: {annotations}}}
spec:
  replicas: {replicas}
  strategy: {strategy}
  template:
    metadata: {{labels: {{app: engine}}}}
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.32.0
          args: [/models/target]
          resources: {{limits: {{nvidia.com/gpu: "{gpus}"}}}}
          readinessProbe: {{httpGet: {{path: /health, port: 8000}}}}
"""


def quota(gpus: int) -> str:
    return f"""---
apiVersion: v1
kind: ResourceQuota
metadata: {{name: gpus}}
spec: {{hard: {{requests.nvidia.com/gpu: "{gpus}"}}}}
"""


@rule(
    "SD413",
    "requests-arrive-while-stopping",
    Severity.warning,
    reason="A pod leaves its Service's endpoints at the same time as it gets SIGTERM, and proxies hear of it seconds "
    "later. Without a preStop hook requests of those seconds meet a server that takes no more.",
    fix="lifecycle: {preStop: {sleep: {seconds: 15}}}, and a grace period that has room for it",
    source="https://kubernetes.io/docs/tutorials/services/pods-and-endpoint-termination-flow/; llm-d/llm-d#927",
    bad="""
containers:
  - lifecycle: null
""",
    good="""
containers:
  - lifecycle: {preStop: {sleep: {seconds: 15}}}
""",
)
@each_engine
def requests_arrive_while_stopping(engine: EngineWorkload) -> Iterator[Problem]:
    hook = mapping(mapping(engine.container.get("lifecycle")).get("preStop"))
    serves = engine.manifest.kind in ("Deployment", "StatefulSet") and engine.args.shutdown_timeout
    if serves and (not hook or ("sleep" in hook and not pre_stop_seconds(engine.container))):
        path = (*engine.container_path, "lifecycle")
        yield Problem(engine.manifest, path, f"{engine.name} drains, and takes no new requests from its first second")


@rule(
    "SD430",
    "rollout-that-cannot-move",
    Severity.error,
    reason="With neither a pod more nor a pod less a rollout can do nothing; the API server refuses the Deployment.",
    fix="maxUnavailable: 1",
    source=ROLLOUT,
    bad=deployment("{type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}"),
    good=deployment("{type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}"),
)
def rollout_that_cannot_move(world: World) -> Iterator[Problem]:
    for manifest in world.of_kind("Deployment"):
        update = mapping(manifest.get("spec.strategy.rollingUpdate"))
        values = [str(update.get(key)).rstrip("%") for key in ("maxSurge", "maxUnavailable")]
        if values == ["0", "0"]:
            path = ("spec", "strategy", "rollingUpdate")
            edits = (Edit((*path, "maxUnavailable"), 1),)
            yield Problem(manifest, path, "maxSurge and maxUnavailable are both 0", None, edits)


def gpu_quotas(world: World, namespace: str | None) -> Iterator[tuple[str, int]]:
    """(where it stands, GPUs) of every quota on the namespace's GPUs."""
    for manifest in world.of_kind("ResourceQuota"):
        hard = mapping(manifest.get("spec.hard"))
        amount = hard.get("requests.nvidia.com/gpu", hard.get("limits.nvidia.com/gpu"))
        if manifest.namespace == namespace and str(amount).isdigit():
            yield manifest.resource, int(str(amount))


@rule(
    "SD431",
    "more-gpus-than-there-are",
    Severity.error,
    reason="Replicas and the pods that a rollout starts beside them need more GPUs than the pool or the namespace's "
    "quota has: pods stay Pending, and where the old ones wait for the new the rollout never ends.",
    fix=f"maxSurge: 0, fewer replicas, or a larger pool; the annotation {POOL} says how many GPUs the pool has",
    source="defilantech/LLMKube#192, bayesimpact/bayes-platform#776",
    bad=deployment("{rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}", replicas=2, gpus=4) + quota(8),
    good=deployment("{rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}", replicas=2, gpus=4) + quota(8),
)
def more_gpus_than_there_are(world: World) -> Iterator[Problem]:
    from specdec.rules.scheduling import controller

    needed: dict[tuple[str | None, str], int] = {}
    for engine in world.engines:
        if not engine.gpus:
            continue
        spec = mapping(engine.manifest.data.get("spec"))
        above = surge(spec, engine.replicas)[0] if engine.manifest.kind == "Deployment" else 0
        gpus = (engine.replicas + above) * engine.gpus
        pools = [(f"the pool ({POOL})", engine.manifest.annotations.get(POOL))]
        pools += [(name, str(amount)) for name, amount in gpu_quotas(world, engine.manifest.namespace)]
        for name, amount in pools:
            if not str(amount).isdigit():
                continue
            # A quota is shared by every engine of the namespace, a pool by those that are said to be on it.
            key = (engine.manifest.namespace, name)
            needed[key] = needed.get(key, 0) + gpus
            if needed[key] > int(str(amount)):
                during = f", {above * engine.gpus} of them during a rollout" if above else ""
                message = f"{needed[key]} GPUs are needed{during}, and {name} has {amount}"
                yield Problem(engine.manifest, controller(engine), message)


@rule(
    "SD432",
    "disruption-budget-that-blocks",
    Severity.warning,
    reason="A budget that allows no pod to be away keeps every node drain, upgrade and autoscaler waiting for ever.",
    fix="maxUnavailable: 1, or minAvailable below the number of replicas",
    source=DISRUPTION,
    bad=deployment("{type: Recreate}", replicas=1)
    + """---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: engine}
spec: {minAvailable: 1, selector: {matchLabels: {app: engine}}}
""",
    good=deployment("{type: Recreate}", replicas=2)
    + """---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: engine}
spec: {minAvailable: 1, selector: {matchLabels: {app: engine}}}
""",
)
def disruption_budget_that_blocks(world: World) -> Iterator[Problem]:
    for budget in world.of_kind("PodDisruptionBudget"):
        wanted = mapping(budget.get("spec.selector.matchLabels"))
        chosen = [
            engine
            for engine in world.engines
            if wanted.items() <= mapping(engine.pod_metadata.get("labels")).items()
            and engine.manifest.namespace == budget.namespace
        ]
        least, most = budget.get("spec.minAvailable"), budget.get("spec.maxUnavailable")
        pods = sum(engine.replicas for engine in chosen)
        if not wanted or not chosen:
            continue
        if str(most).rstrip("%") == "0" or least == "100%" or (isinstance(least, int) and least >= pods > 0):
            key = "maxUnavailable" if most is not None else "minAvailable"
            message = f"of {pods} pods none may be away ({key}: {budget.get(('spec', key))})"
            yield Problem(budget, ("spec", key), message)


@rule(
    "SD433",
    "one-pod-after-the-other",
    Severity.warning,
    reason="A StatefulSet starts its pods one after the other by default, each when the one before is Ready: with "
    "minutes of loading for each, the last of many engines serves an hour later. Engines do not need each other.",
    fix="podManagementPolicy: Parallel",
    source="https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#pod-management-policies",
    bad="""
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: engine}
spec:
  replicas: 4
  template:
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.32.0
          args: [/models/target]
          readinessProbe: {httpGet: {path: /health, port: 8000}}
""",
    good="""
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: engine}
spec:
  replicas: 4
  podManagementPolicy: Parallel
  template:
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.32.0
          args: [/models/target]
          readinessProbe: {httpGet: {path: /health, port: 8000}}
""",
)
@each_engine
def one_pod_after_the_other(engine: EngineWorkload) -> Iterator[Problem]:
    policy = engine.manifest.get("spec.podManagementPolicy")
    if engine.manifest.kind == "StatefulSet" and engine.replicas > 2 and policy != "Parallel":
        message = f"{engine.replicas} engines load one after the other"
        yield Problem(engine.manifest, ("spec", "podManagementPolicy"), message)


@rule(
    "SD434",
    "selector-without-its-pods",
    Severity.error,
    reason="A workload's selector has to match the labels of its own pods, and the API server refuses it otherwise.",
    fix="the same labels in spec.selector.matchLabels and spec.template.metadata.labels",
    source="https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#selector; vllm-project/vllm#38340",
    bad="""
apiVersion: apps/v1
kind: Deployment
metadata: {name: router}
spec:
  selector: {matchLabels: {app: router}}
  template: {metadata: {labels: {app: gateway}}, spec: {containers: [{name: a}]}}
""",
    good="""
apiVersion: apps/v1
kind: Deployment
metadata: {name: router}
spec:
  selector: {matchLabels: {app: router}}
  template: {metadata: {labels: {app: router}}, spec: {containers: [{name: a}]}}
""",
)
def selector_without_its_pods(world: World) -> Iterator[Problem]:
    for manifest in world.of_kind("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"):
        wanted = mapping(manifest.get("spec.selector.matchLabels"))
        labels = mapping(manifest.get("spec.template.metadata.labels"))
        missing = [f"{key}={value}" for key, value in wanted.items() if labels.get(key) != value]
        if missing and sequence(manifest.get("spec.template.spec.containers")):
            message = f"the selector asks for {', '.join(missing)}, which its pods do not have"
            yield Problem(manifest, ("spec", "selector", "matchLabels"), message)

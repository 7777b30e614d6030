"""Do an environment's pools and its values mean the same machines? Checked from files, before any cloud is asked."""

from __future__ import annotations

from collections.abc import Sequence

from specdec import facts
from specdec.deploy.cloud.target import Pool, Target
from specdec.deploy.problems import Problem, error
from specdec.errors import SpecdecError, nearest
from specdec.manifests import EngineWorkload, Manifest, engines, mapping, sequence

ZONE_KEY = "topology.kubernetes.io/zone"
SPOT = "cloud.google.com/gke-spot"
MACHINE_KEYS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
# What stands in for a GPU that a cloud does not have.
INSTEAD = {("gke", "a10g"): "l4 (machines g2-standard-*)", ("eks", "l4"): "l4 (machines g6.*), or a10g (g5.*)"}
BACKENDS = {"gke": "gcs", "eks": "s3"}


def check(target: Target, manifests: Sequence[Manifest]) -> list[Problem]:
    """Errors for machines that the cloud lacks, pools that no engine fits, and states that point elsewhere."""
    problems = [*machines(target), *states(target)]
    wanted = [engine for engine in engines(manifests) if engine.gpus]
    for engine in wanted:
        problems += fits(target, engine)
    problems += room(target, wanted)
    return list(dict.fromkeys(problems))


def machines(target: Target) -> list[Problem]:
    """Each pool's machine exists on this cloud, can be bought that way, and in the zones' region."""
    known = facts.machines().get(target.cloud, {})
    problems = []
    for pool in target.pools:
        where, shape = f"{target.file}: gpu_pools.{pool.name}", known.get(pool.machine)
        if shape is None:
            problems.append(_unknown(target, pool, where, list(known)))
            continue
        if pool.provisioning not in shape["provisioning"]:
            ways = ", ".join(shape["provisioning"])
            text = f"{pool.machine} cannot be bought as {pool.provisioning}"
            problems.append(error("SD860", f"{where}.provisioning", text, f"one of {ways}"))
        if pool.gpus_per_engine > shape["count"]:
            text = f"an engine of {pool.gpus_per_engine} GPUs, and {pool.machine} has {shape['count']}"
            problems.append(
                error("SD860", f"{where}.gpus_per_engine", text, "a larger machine, or fewer GPUs an engine")
            )
        foreign = [zone for zone in pool.zones or () if not zone.startswith(target.region)]
        if foreign:
            text = f"{', '.join(foreign)}: not in region {target.region}"
            problems.append(error("SD857", f"{where}.zones", text, f"zones of {target.region}, or another region"))
    return problems


def _unknown(target: Target, pool: Pool, where: str, known: list[str]) -> Problem:
    for cloud, shapes in facts.machines().items():
        if pool.machine in shapes:
            gpu = str(shapes[pool.machine]["accelerator"])
            instead = INSTEAD.get((target.cloud, gpu))
            text = f"{pool.machine} with {gpu} is a machine of {cloud}, and this is {target.cloud}"
            return error("SD861", f"{where}.machine_type", text, f"on {target.cloud}: {instead or 'another machine'}")
    guess = nearest(pool.machine, known)
    fix = f"did you mean {guess}?" if guess else "specdec accelerators lists what is known"
    return error("SD861", f"{where}.machine_type", f"{target.cloud} has no {pool.machine}", fix)


def states(target: Target) -> list[Problem]:
    """The platform reads the cluster's state from the place where the cluster's root writes it."""
    problems = []
    try:
        own, platform = target.backend(target.cloud), target.backend("platform")
    except SpecdecError as missing:
        return [error("SD851", str(missing.file), missing.message, "bucket and prefix (GCS) or key and region (S3)")]
    if not own.get("bucket"):
        problems.append(error("SD851", str(target.backend_file(target.cloud)), "names no bucket", 'bucket = "..."'))
    if _place(own) == _place(platform):
        text = "the cluster and the platform would share one state"
        problems.append(error("SD876", str(target.backend_file("platform")), text, "another prefix or key"))
    if not target.platform_file.is_file():
        return problems
    try:
        state = target.platform_variables.get("cluster_state")
    except SpecdecError as broken:
        return [*problems, error("SD872", str(broken.file), broken.message, broken.fix)]
    if isinstance(state, dict):
        config = state.get("config") or {}
        if state.get("backend") != BACKENDS[target.cloud] or _place(config) != _place(own):
            text = f"cluster_state is {_place(config)}, and {target.backend_file(target.cloud).name} says {_place(own)}"
            problems.append(
                error("SD876", f"{target.platform_file}: cluster_state", text, "the same bucket and prefix or key")
            )
    return problems


def _place(settings: dict[str, object]) -> str:
    return f"{settings.get('bucket')}/{settings.get('prefix') or settings.get('key') or ''}"


def fits(target: Target, engine: EngineWorkload) -> list[Problem]:
    """An engine finds a pool with its GPU, its machine type, enough GPUs a node and enough zones."""
    known, where = facts.machines().get(target.cloud, {}), f"engine {engine.name}"
    pools = [pool for pool in target.pools if pool.machine in known]
    if not pools:
        text = f"wants {engine.gpus} × {engine.accelerator}, and {target.file.name} has no GPU pool for it"
        return [error("SD860", where, text, "a pool in gpu_pools")]
    selector = mapping(engine.pod_spec.get("nodeSelector"))
    if target.cloud == "eks" and (foreign := [key for key in selector if key.startswith("cloud.google.com/")]):
        text = f"selects nodes by {foreign[0]}, a label of GKE, and {target.env.name} is on EKS"
        return [error("SD860", where, text, "cloud: eks in values.yaml")]
    machine = next((str(selector[key]) for key in MACHINE_KEYS if key in selector), None)
    with_gpu = [pool for pool in pools if known[pool.machine]["accelerator"] == engine.accelerator]
    if not with_gpu:
        have = ", ".join(f"{pool.name}: {known[pool.machine]['accelerator']} ({pool.machine})" for pool in pools)
        there = {shape["accelerator"] for shape in known.values()}
        if engine.accelerator and engine.accelerator not in there:
            instead = INSTEAD.get((target.cloud, engine.accelerator), ", ".join(sorted(there)))
            return [
                error("SD861", where, f"{target.cloud} has no {engine.accelerator}", f"accelerator.type: {instead}")
            ]
        text = f"wants {engine.accelerator}, and the pools have {have}"
        return [error("SD860", where, text, f"accelerator.type in values.yaml, or machine_type in {target.file.name}")]
    if machine and machine not in {pool.machine for pool in with_gpu}:
        have = ", ".join(f"{pool.name}: {pool.machine}" for pool in with_gpu)
        text = f"wants machine {machine}, and the pools have {have}"
        return [
            error(
                "SD860", where, text, f"accelerator.machineType in values.yaml, or machine_type in {target.file.name}"
            )
        ]
    largest = max(with_gpu, key=lambda pool: int(known[pool.machine]["count"]))
    if engine.gpus > known[largest.machine]["count"]:
        text = f"wants {engine.gpus} GPUs in one machine, and {largest.machine} has {known[largest.machine]['count']}"
        return [error("SD860", where, text, "a larger machine, or a smaller tensorParallelSize")]
    if selector.get(SPOT) == "true" and not any(pool.provisioning == "spot" for pool in with_gpu):
        ways = ", ".join(f"{pool.name}: {pool.provisioning}" for pool in with_gpu)
        return [
            error("SD860", where, f"wants spot nodes, and the pools are {ways}", "provisioning, or the node selector")
        ]
    return _zones(engine, with_gpu, where)


def _zones(engine: EngineWorkload, pools: list[Pool], where: str) -> list[Problem]:
    """Spreads that refuse a pod need as many zones as they name; a selected zone has to be one of a pool's."""
    have = sorted({zone for pool in pools for zone in pool.zones or ()})
    if not have or any(pool.zones is None for pool in pools):
        return []
    problems = []
    for spread in sequence(engine.pod_spec.get("topologySpreadConstraints")):
        strict = mapping(spread).get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
        least = int(mapping(spread).get("minDomains") or 0)
        if mapping(spread).get("topologyKey") == ZONE_KEY and strict and least > len(have):
            text = f"has to spread over {least} zones, and its pools have {len(have)}: {', '.join(have)}"
            problems.append(error("SD860", where, text, "more zones in gpu_pools, or a smaller minDomains"))
    asked = mapping(engine.pod_spec.get("nodeSelector")).get(ZONE_KEY)
    if asked and asked not in have:
        text = f"wants zone {asked}, and its pools have {', '.join(have)}"
        problems.append(error("SD860", where, text, "a zone of the pool's"))
    return problems


def room(target: Target, wanted: Sequence[EngineWorkload]) -> list[Problem]:
    """All replicas together find enough nodes, even where every pool is at its largest."""
    known, problems = facts.machines().get(target.cloud, {}), []
    for gpu in sorted({str(engine.accelerator) for engine in wanted}):
        pools = [pool for pool in target.pools if known.get(pool.machine, {}).get("accelerator") == gpu]
        slots = {pool.name: pool.max_nodes * int(known[pool.machine]["count"]) for pool in pools}
        need = sum(engine.replicas * engine.gpus for engine in wanted if engine.accelerator == gpu)
        if pools and need > sum(slots.values()):
            text = f"the engines want {need} × {gpu}, and the pools hold {sum(slots.values())} at max_nodes"
            where = f"{target.file}: gpu_pools." + " and ".join(f"{name}.max_nodes" for name in slots)
            problems.append(error("SD860", where, text, "more max_nodes, or fewer replicas"))
    return problems

"""Engines of the benchmark's own, one for each K: a release beside the environment's, which goes when the run ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from specdec import helm
from specdec.bench.placement import CLAIM, SHARED, modes_of
from specdec.deploy import removal
from specdec.deploy.cluster import CORE, ApiError, Cluster
from specdec.deploy.live import Live
from specdec.deploy.pipeline import Deploy, Options
from specdec.deploy.progress import Progress
from specdec.environments import Environment
from specdec.errors import SpecdecError
from specdec.manifests import Manifest, engines, mapping, sequence

FILE = "sweep-values.yaml"
SUFFIX = "-bench"


def numbers_of_tokens(text: str) -> list[int]:
    """ "0,2,4,6", each once, in order; 0 is the target alone. Raises SpecdecError for what is no such list."""
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or min(values) < 0:
        raise SpecdecError(
            f"{text!r}", code="bad-number", path="--k", fix="whole numbers with commas, 0 for no speculation: 0,2,4,6"
        )
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise SpecdecError(f"{text!r} names K={twice} twice", code="bad-number", path="--k", fix="each once: 0,2,4,6")
    if len(set(values)) < 2:
        raise SpecdecError(f"{text!r}: there is nothing to compare with", code="one-arm", path="--k", fix="--k 0,4")
    return sorted(values)


def values(ks: Sequence[int], *, gpus: bool = True) -> dict[str, Any]:
    """What comes on top of the environment's values: an engine for each K, and none of what serves clients.

    Without `gpus` engines share the node's cores, of which one at a time needs them.
    """
    arms: dict[str, Any] = {
        f"k{k}": {"speculative": {"numTokens": k, "schedule": []} if k else {"enabled": False}} for k in ks
    }
    return {
        "engines": arms,
        "engine": {"replicas": 1} | ({} if gpus else {"resources": {"requests": {"cpu": "100m"}}}),
        "baseline": {"enabled": False},
        "autoscaling": {"kind": "none"},
        "podDisruptionBudget": {"enabled": False},
        # The directory is the release's, and so are the disks in it.
        "modelCache": {"hostPath": {"prepare": {"enabled": False}}},
        "router": {"enabled": False},
        "traffic": {
            "hosts": [],
            "ingress": {"enabled": False},
            "gateway": {"enabled": False},
            "inferencePool": {"enabled": False},
        },
        "kserve": {"enabled": False},
        # No alert rings for an engine that lives for an hour.
        "monitoring": {"rules": {"kind": "none"}, "scrape": {"kind": "none"}, "dashboards": {"enabled": False}},
        "tests": {"enabled": False},
        "extraObjects": [],
    }


def check(env: Environment, manifests: Sequence[Manifest], cluster: Cluster) -> list[str]:
    """What the sweep means for models and claims, in words. `manifests`: the environment's own.

    Raises SpecdecError where further engines beside the release cannot have its models.
    """
    serving = [one for one in engines(manifests) if not one.name.endswith("-baseline")]
    if len(serving) != 1:
        raise SpecdecError(
            f"{env.name} has {len(serving)} engines: --k would not know which of them to vary",
            code="many-engines",
            path="engines",
            fix="an environment with the one engine, or deploy the engines to compare and leave --k out",
        )
    (engine,) = serving
    if engine.args.speculative is None:
        raise SpecdecError(
            f"{env.name} does not speculate", code="not-speculative", path="speculative.enabled", fix="true"
        )
    if engine.args.speculative.num_speculative_tokens is None:
        raise SpecdecError(
            f"{env.name} leaves K to the engine, method {engine.args.speculative.method}: there is no K to vary",
            code="no-k",
            path="speculative.numTokens",
            fix="leave --k out",
        )
    made = {manifest.name: manifest for manifest in manifests if manifest.kind == "PersistentVolumeClaim"}
    for volume in sequence(mapping(engine.pod_spec).get("volumes")):
        name = mapping(volume.get(CLAIM)).get("claimName")
        if not name or name in made:
            continue
        modes = modes_of(cluster, str(name))
        if not modes & SHARED:
            raise SpecdecError(
                f"claim {name} can be mounted on one node alone ({', '.join(sorted(modes)) or 'it does not exist'}), "
                "where the release's engine is: the engines of --k cannot have its models",
                code="claim-of-one-node",
                path="modelCache.pvc.existingClaim",
                fix="a claim that is ReadWriteMany or ReadOnlyMany; or leave --k out and compare what is deployed",
            )
    if made or sequence(engine.manifest.get("spec.volumeClaimTemplates")):
        return ["every engine of the sweep gets a claim of its own and fetches the models; the claims go with the run"]
    if any("emptyDir" in volume and volume.get("name") == "models" for volume in sequence(engine.pod_spec["volumes"])):
        return ["every engine of the sweep fetches the models into a cache of its own"]
    return []


def need_gpus(manifests: Sequence[Manifest]) -> bool:
    return any(engine.gpus for engine in engines(manifests))


def environment_of(env: Environment, file: Path) -> Environment:
    """The environment as the sweep deploys it."""
    return replace(env, release=env.release + SUFFIX, values=[*env.values, file])


@contextmanager
def deployed(
    live: Live,
    ks: Sequence[int],
    directory: Path,
    progress: Progress,
    *,
    gpus: bool = True,
    keep: bool = False,
    again: bool = False,
    timeout: float | None = None,
) -> Iterator[Environment]:
    """The release, Ready, for as long as the run lasts; `keep` leaves it. `timeout` of the deploy in seconds.

    Raises SpecdecError where there is one and it is not gone on with (`again`): its engines are somebody's.
    """
    file = directory / FILE
    env = environment_of(live.env, file)
    if not again and helm.release_status(
        env.release, env.namespace, kubecontext=env.kubecontext, kubeconfig=live.kubeconfig
    ):
        raise SpecdecError(
            f"there is a release {env.release} already: another sweep runs, or one was kept",
            code="sweep-exists",
            fix=f"--resume its run, --keep to take it over, or helm uninstall -n {env.namespace} {env.release}",
        )
    file.write_text(yaml.safe_dump(values(ks, gpus=gpus), sort_keys=False), encoding="utf-8")
    try:
        deploy = Deploy(env, Options(smoke=False, measure=False, timeout=timeout), progress)
        # Of a cluster that this environment made itself.
        deploy.kubeconfig = live.kubeconfig
        deploy.run()
        yield env
    finally:
        if keep:
            progress.warn(f"release {env.release} is kept: helm uninstall -n {env.namespace} {env.release}")
        else:
            remove(env, live, progress.note)


def remove(env: Environment, live: Live, report: Callable[[str], None]) -> None:
    """Take the sweep's release away with the claims of its engines."""
    report(f"removing release {env.release}")
    try:
        removal.uninstall(env, live.cluster, kubeconfig=live.kubeconfig, report=report)
        labelled = f"app.kubernetes.io/instance={env.release}"
        for claim in live.cluster.items(live.cluster.path(CORE, "persistentvolumeclaims"), labelSelector=labelled):
            path = live.cluster.path(CORE, "persistentvolumeclaims", claim["metadata"]["name"])
            try:
                live.cluster.request("DELETE", path)
            except ApiError as error:
                if error.status != 404:
                    raise
    except BaseException:
        report(f"release {env.release} is still there: helm uninstall -n {env.namespace} {env.release}")
        raise

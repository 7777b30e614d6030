"""Two people deploy at once; one of them is told who the other is. A killed deploy does not block for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from specdec.deploy import lock
from specdec.deploy.cluster import Cluster

from .conftest import NAMESPACE, ApiServer, cluster_of

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/specdec-deploy-speculative"


def held_by(holder: str, age: float) -> dict[str, Any]:
    """A Lease of 30 s that was renewed `age` seconds ago."""
    at = (datetime.now(UTC) - timedelta(seconds=age)).isoformat().replace("+00:00", "Z")
    return {
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 30,
            "acquireTime": "2026-01-02T03:04:05.000000Z",
            "renewTime": at,
        }
    }


def test_a_second_deploy_on_this_machine_is_told_who_holds_it_and_since_when(tmp_path: Path) -> None:
    file = tmp_path / "x.lock"
    with lock.on_machine("prod", file), pytest.raises(lock.Locked) as refused, lock.on_machine("prod", file):
        pass
    assert refused.value.exit_code == 2
    assert f"process {os.getpid()}" in refused.value.message
    assert f"since {datetime.now(UTC):%Y-%m-%dT}" in refused.value.message


def test_the_machines_lock_is_free_again_after_a_deploy(tmp_path: Path) -> None:
    file = tmp_path / "x.lock"
    for _ in range(2):
        with lock.on_machine("prod", file):
            pass


def test_the_machines_lock_dies_with_a_killed_deploy(tmp_path: Path) -> None:
    file = tmp_path / "x.lock"
    script = (
        "import sys, time; from pathlib import Path; from specdec.deploy import lock\n"
        "with lock.on_machine('prod', Path(sys.argv[1])):\n    print('held', flush=True); time.sleep(60)"
    )
    scripts = str(Path(lock.__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", script, str(file)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": scripts},
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(lock.Locked, match=f"process {other.pid}"), lock.on_machine("prod", file):
            pass
        other.send_signal(signal.SIGKILL)
        other.wait()
        with lock.on_machine("prod", file):
            pass


def test_environments_do_not_lock_each_other() -> None:
    assert lock.lock_file("prod") != lock.lock_file("staging")


def test_a_deploy_holds_a_lease_and_gives_it_back(api: ApiServer, cluster: Cluster) -> None:
    with lock.ClusterLock(cluster, "speculative"):
        spec = api.objects[LEASE]["spec"]
        assert spec["holderIdentity"] == lock.identity()
        assert spec["leaseDurationSeconds"] == 30
    assert LEASE not in api.objects


def test_a_deploy_elsewhere_is_named_with_its_begin(api: ApiServer, cluster: Cluster) -> None:
    api.put(LEASE, held_by("ada@build-7 (process 12)", age=5))
    with pytest.raises(lock.Locked) as refused:
        lock.ClusterLock(cluster, "speculative").acquire()
    assert "ada@build-7 (process 12), since 2026-01-02T03:04:05" in refused.value.message
    assert api.objects[LEASE]["spec"]["holderIdentity"] == "ada@build-7 (process 12)"


def test_the_lease_of_a_deploy_that_was_killed_elsewhere_expires(api: ApiServer, cluster: Cluster) -> None:
    api.put(LEASE, held_by("ada@build-7 (process 12)", age=31))
    with lock.ClusterLock(cluster, "speculative"):
        assert api.objects[LEASE]["spec"]["holderIdentity"] == lock.identity()


def test_after_a_kill_here_the_next_deploy_waits_out_the_rest_and_goes_on(api: ApiServer, cluster: Cluster) -> None:
    me = lock.identity().split(" (")[0]
    api.put(LEASE, held_by(f"{me} (process 1)", age=10))
    said: list[str] = []
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        api.put(LEASE, held_by(f"{me} (process 1)", age=10 + seconds))

    held = lock.ClusterLock(cluster, "speculative", report=said.append, sleep=sleep)
    held.acquire()
    assert held.held
    assert slept == [pytest.approx(21, abs=1)]
    assert "expires in" in said[0]


def test_clocks_that_differ_do_no_harm(api: ApiServer) -> None:
    # The cluster's clock is an hour ahead: by it the Lease, renewed at our 5 s ago, is long over.
    cluster = cluster_of(api)
    cluster._skew = 3600
    api.put(LEASE, held_by("ada@build-7 (process 12)", age=5))
    lock.ClusterLock(cluster, "speculative").acquire()
    assert api.objects[LEASE]["spec"]["holderIdentity"] == lock.identity()


def test_of_two_that_come_at_the_same_moment_one_gets_it(api: ApiServer, cluster: Cluster) -> None:
    def other_is_quicker(request: Any) -> None:
        if request.method == "POST" and LEASE not in api.objects:
            api.put(LEASE, held_by("ada@build-7 (process 12)", age=0))

    api.hooks.append(other_is_quicker)
    with pytest.raises(lock.Locked, match="ada@build-7"):
        lock.ClusterLock(cluster, "speculative").acquire()


def test_the_lease_is_renewed_while_the_deploy_runs(api: ApiServer, cluster: Cluster) -> None:
    with lock.ClusterLock(cluster, "speculative", renew_every=0.01):
        first = api.objects[LEASE]["spec"]["renewTime"]
        begin = time.monotonic()
        while api.objects[LEASE]["spec"]["renewTime"] == first and time.monotonic() - begin < 30:
            time.sleep(0.01)
        renewed = api.objects[LEASE]["spec"]
        assert renewed["renewTime"] > first
        assert renewed["acquireTime"] <= first


def test_a_deploy_notices_that_another_took_its_lease_and_leaves_it_alone(api: ApiServer, cluster: Cluster) -> None:
    with lock.ClusterLock(cluster, "speculative", renew_every=0.01) as held:
        api.put(LEASE, held_by("ada@build-7 (process 12)", age=0))
        begin = time.monotonic()
        while held.lost is None and time.monotonic() - begin < 30:
            time.sleep(0.01)
        assert held.lost == "ada@build-7 (process 12)"
    assert LEASE in api.objects


def test_without_the_right_to_leases_a_deploy_warns_and_goes_on(api: ApiServer, cluster: Cluster) -> None:
    api.refusals["GET", "leases/specdec-deploy-speculative"] = (403, "leases is forbidden")
    said: list[str] = []
    with lock.ClusterLock(cluster, "speculative", report=said.append) as held:
        assert not held.held
    assert "no right to Leases" in said[0]


def test_a_cluster_that_died_has_no_lock_to_give_back(api: ApiServer, cluster: Cluster) -> None:
    with lock.ClusterLock(cluster, "speculative"):
        api.down = True

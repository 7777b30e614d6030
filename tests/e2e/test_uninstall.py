"""The end: nothing stays."""

from __future__ import annotations

import time
from pathlib import Path

from machine import RELEASE, Machine, helm, run
from specdec import local
from specdec.deploy import removal
from specdec.deploy.cluster import Cluster


def test_uninstall_and_destroy_leave_nothing_on_the_machine(cluster: Cluster, before: Machine) -> None:
    # Helm waits for what it deleted itself; pods go after their StatefulSet unless it is told to wait for them.
    helm("uninstall", RELEASE, "--wait", "--cascade=foreground")
    deadline = time.monotonic() + 120
    while (left := removal.present(cluster, RELEASE)) and time.monotonic() < deadline:
        time.sleep(1)
    assert left == []
    run("specdec", "destroy", "local", "--yes")
    assert Machine.now().left_since(before) == {}
    assert not Path(local.state_dir()).exists()
    assert run("specdec", "destroy", "local", "--yes").returncode == 0, "a second destroy has nothing to do"

"""One deploy of a release at a time: a file lock on this machine, and in the cluster a Lease that expires."""

from __future__ import annotations

import fcntl
import getpass
import hashlib
import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from specdec.deploy.cluster import ApiError, Cluster, Unreachable
from specdec.environments import Environment
from specdec.errors import SpecdecError

GROUP = "/apis/coordination.k8s.io/v1"
LEASE_SECONDS = 30


class Locked(SpecdecError):
    """Another deploy of the same release runs."""


def identity() -> str:
    """Who holds the lock, for people: user@host, process."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's random user has no name
        user = f"user {os.getuid()}"
    return f"{user}@{socket.gethostname()} (process {os.getpid()})"


def key_of(env: Environment) -> str:
    """What a deploy locks on its machine."""
    return f"{env.name} (release {env.release} in namespace {env.namespace})"


def same_place(holder: str) -> bool:
    """Whether a holder is this user on this machine: then the file lock, which we have, says that it is gone."""
    return holder.split(" (")[0] == identity().split(" (")[0]


def lock_file(key: str) -> Path:
    """Where the lock of `key` (environment, release, namespace) lies: per user, in its cache or a scratch folder."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specdec"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"specdec-{os.getuid()}"
        folder.mkdir(parents=True, exist_ok=True)
    return folder / f"deploy-{hashlib.sha256(key.encode()).hexdigest()[:16]}.lock"


@contextmanager
def on_machine(key: str, file: Path | None = None) -> Iterator[None]:
    """Hold the machine's lock. Raises Locked, with the holder and since when. The kernel frees it when we die."""
    file = file or lock_file(key)
    with file.open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.seek(0)
            raise locked(key, *holder_in(handle.read())) from None
        handle.truncate(0)
        json.dump({"holder": identity(), "since": datetime.now(UTC).isoformat(timespec="seconds")}, handle)
        handle.flush()
        yield


def holder_in(text: str) -> tuple[str, str | None]:
    try:
        entry = json.loads(text)
        return entry["holder"], entry["since"]
    except (ValueError, KeyError):
        return "another process", None


def locked(what: str, holder: str, since: str | None) -> Locked:
    return Locked(
        f"a deploy of {what} runs already: {holder}{f', since {since}' if since else ''}",
        code="locked",
        fix="wait until it ends, or stop it there with Ctrl-C",
    )


class ClusterLock:
    """The Lease `specdec-deploy-<release>`. Times are the API server's, so that skewed clocks do no harm."""

    def __init__(
        self, cluster: Cluster, release: str, *, report: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] = time.sleep, renew_every: float = LEASE_SECONDS / 3,
    ) -> None:  # fmt: skip
        self.cluster, self.release, self.report, self.sleep = cluster, release, report, sleep
        self.renew_every = renew_every
        self.holder = identity()
        self.lost: str | None = None  # who took it over, should that happen
        self.held = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def _path(self) -> str:
        return self.cluster.path(GROUP, "leases", f"specdec-deploy-{self.release}")

    def __enter__(self) -> ClusterLock:
        self.acquire()
        if self.held:
            self._thread = threading.Thread(target=self._renew, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join(timeout=5)
        self.release_lease()

    def acquire(self) -> None:
        """Take the lock, over an expired one too. Raises Locked. Without the right to Leases it only warns."""
        while True:
            try:
                if self._try():
                    self.held = True
                    return
            except ApiError as error:
                if error.status == 403:
                    self.report("no right to Leases here: other machines are not kept from deploying at the same time")
                    return
                raise

    def _try(self) -> bool:
        """One attempt. False: try again at once."""
        lease = self.cluster.get(self._path)
        try:
            if lease is None:
                body = {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": f"specdec-deploy-{self.release}"},
                    "spec": self._spec(),
                }
                self.cluster.request("POST", self.cluster.path(GROUP, "leases"), json=body)
                return True
            spec = lease.get("spec") or {}
            left = seconds_left(spec, self.cluster.now())
            if spec.get("holderIdentity") and left > 0:
                holder = spec["holderIdentity"]
                if not same_place(holder):
                    raise locked(self.release, holder, spec.get("acquireTime"))
                self.report(f"a deploy that was killed left its lock; it expires in {left:.0f} s")
                self.sleep(min(left, LEASE_SECONDS) + 1)
                return False
            self.cluster.request("PUT", self._path, json={**lease, "spec": self._spec()})
            return True
        except ApiError as error:
            if error.status == 409:  # someone else was quicker: look again who
                return False
            raise

    def _spec(self, acquired: str | None = None) -> dict[str, Any]:
        now = datetime.fromtimestamp(self.cluster.now(), UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": acquired or now,
            "renewTime": now,
        }

    def _renew(self) -> None:
        while not self._stop.wait(self.renew_every):
            try:
                lease = self.cluster.get(self._path)
                holder = ((lease or {}).get("spec") or {}).get("holderIdentity")
                if lease is None or holder != self.holder:
                    self.lost = holder or "someone who deleted it"
                    return
                spec = self._spec(lease["spec"].get("acquireTime"))
                self.cluster.request("PUT", self._path, json={**lease, "spec": spec})
            except (ApiError, Unreachable):
                continue  # the next round tries again; the wait for pods reports a dead cluster

    def release_lease(self) -> None:
        """Give the lock back, if it is still ours. A cluster that is gone has no lock to give back."""
        if not self.held:
            return
        self.held = False
        try:
            lease = self.cluster.get(self._path)
            if lease and (lease.get("spec") or {}).get("holderIdentity") == self.holder:
                keep = {"preconditions": {"resourceVersion": lease["metadata"].get("resourceVersion")}}
                self.cluster.request("DELETE", self._path, json=keep)
        except (ApiError, Unreachable):
            return


def seconds_left(spec: dict[str, Any], now: float) -> float:
    """Until a Lease expires; 0 and less: it has, or was never renewed."""
    renewed = spec.get("renewTime") or spec.get("acquireTime")
    if not renewed:
        return 0
    at = datetime.fromisoformat(renewed.replace("Z", "+00:00")).timestamp()
    return at + float(spec.get("leaseDurationSeconds") or LEASE_SECONDS) - now

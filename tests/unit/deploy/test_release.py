"""A deploy that was killed left its release pending; the next one puts that right first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from specdec import helm
from specdec.deploy.release import recover
from specdec.environments import Environment

ENV = Environment("prod", Path(), [], "speculative", "ai-inference", "ctx")


class FakeHelm:
    """A release with a history; what is done to it is written down."""

    def __init__(self, *statuses: str) -> None:
        self.statuses, self.done = statuses, list[str]()

    def release_status(self, *_: Any, **where: Any) -> dict[str, Any] | None:
        assert where["kubecontext"] == "ctx"
        return {"info": {"status": self.statuses[-1]}} if self.statuses else None

    def history(self, *_: Any, **__: Any) -> list[dict[str, Any]]:
        return [{"revision": number, "status": status} for number, status in enumerate(self.statuses, 1)]

    def rollback(self, release: str, namespace: str, revision: int, **_: Any) -> None:
        self.done.append(f"rollback {release} {namespace} {revision}")

    def uninstall(self, release: str, namespace: str, *, wait: bool, **_: Any) -> bool:
        assert wait
        self.done.append(f"uninstall {release} {namespace}")
        return True


@pytest.mark.parametrize(
    ("statuses", "done"),
    [
        ((), []),
        (("deployed",), []),
        (("failed",), []),
        (("superseded", "deployed", "pending-upgrade"), ["rollback speculative ai-inference 2"]),
        (("superseded", "failed", "deployed", "failed", "pending-rollback"), ["rollback speculative ai-inference 3"]),
        (("pending-install",), ["uninstall speculative ai-inference"]),
        (("failed", "pending-upgrade"), ["uninstall speculative ai-inference"]),
        (("deployed", "uninstalling"), ["uninstall speculative ai-inference"]),
    ],
    ids=["none", "deployed", "failed", "killed in an upgrade", "killed in a rollback", "killed in the first install",
         "killed after a failed install", "killed in an uninstall"],
)  # fmt: skip
def test_a_pending_release_goes_back_to_what_last_worked_or_away(
    monkeypatch: pytest.MonkeyPatch, statuses: tuple[str, ...], done: list[str]
) -> None:
    fake = FakeHelm(*statuses)
    for name in ("release_status", "history", "rollback", "uninstall"):
        monkeypatch.setattr(helm, name, getattr(fake, name))
    said: list[str] = []
    result = recover(ENV, report=said.append)
    assert fake.done == done
    assert bool(result) == bool(done) == bool(said)

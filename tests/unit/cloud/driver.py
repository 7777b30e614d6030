"""`specdec deploy` and `destroy` with a cloud that has nothing against it and a fake Helm, in a process that may die.

KILL_AT and KILL_AFTER name a stage at whose beginning or end the process kills itself, as a machine that dies would.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from specdec import helm
from specdec.deploy.cloud import removal
from specdec.deploy.cloud.pipeline import CloudDeploy, CloudOptions
from specdec.deploy.cloud.record import Record
from specdec.deploy.cloud.target import Target
from specdec.deploy.pipeline import Options
from specdec.deploy.progress import Progress
from specdec.environments import Environment
from specdec.errors import SpecdecError

recorded = Record.stage


@contextmanager
def deadly(self: Record, name: str, inputs: str) -> Iterator[dict[str, Any]]:
    with recorded(self, name, inputs) as entry:
        if os.environ.get("KILL_AT") == name:
            os.kill(os.getpid(), signal.SIGKILL)
        yield entry
    if os.environ.get("KILL_AFTER") == name:
        os.kill(os.getpid(), signal.SIGKILL)


def folder() -> Path:
    return Path(os.environ["FAKE_CLOUD"])


class Cloud:
    def check(self, report: Any) -> list[Any]:
        report("asking nobody")
        return []

    def offers(self, _: str) -> list[str] | None:
        return ["us-central1-a", "us-central1-b", "us-central1-f"]

    def remains(self, _: Any = ()) -> list[Any]:
        return []


def chart(_env: Environment, kubeconfig: Path, _options: Options, _progress: Progress) -> dict[str, Any]:
    assert kubeconfig.is_file()
    with (folder() / "releases").open("a") as releases:
        releases.write("upgrade --install\n")
    return {"ok": True, "release": "speculative", "revision": 1, "pods": [], "namespace": "ai-inference"}


def reach(_outputs: dict[str, Any]) -> None:
    """There is no API server behind the fake cloud; that one was looked for is noted."""
    with (folder() / "reached").open("a") as reached:
        reached.write("once\n")


def refuse(question: str) -> None:
    raise SystemExit(f"asked: {question}")


def main(what: str, name: str, options: dict[str, Any]) -> int:
    """One run; its document on standard output. The exit status."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    # Rendered once for all runs: Helm is the slow part, and not what is tested here.
    helm.render = lambda *_: (folder() / "manifests.yaml").read_text()  # type: ignore[assignment]
    Record.stage = deadly  # type: ignore[method-assign]
    run: Any = None
    try:
        target = Target.of(Environment.named(name))
        assert target
        if what == "deploy":
            chosen = CloudOptions(**{"yes": True, **options, "allow": tuple(options.get("allow", ()))})
            run = CloudDeploy(target, chosen, Options(), Progress(), ask=refuse, cloud=Cloud(), chart=chart)
        else:
            run = removal.CloudDestroy(
                target, removal.DestroyOptions(**options), Progress(),
                ask=lambda _: None, may_force=lambda _: False, cloud=Cloud(),
            )  # fmt: skip
            run._reach = reach
        print(json.dumps(run.run()))
    except SpecdecError as error:
        print(json.dumps(error.as_dict()))
        return error.exit_code
    except KeyboardInterrupt:
        print(json.dumps({"interrupted": run.state()}))
        return 130
    return 0

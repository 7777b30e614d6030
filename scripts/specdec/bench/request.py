"""What a run measures, from the command line or from the directory of an earlier run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from specdec.bench import load as prompts_of
from specdec.bench.document import FILE, Load, Point, Run
from specdec.bench.load import Prompts
from specdec.deploy.live import Live
from specdec.deploy.targets import Engine
from specdec.errors import SpecdecError
from specdec.manifests import Manifest


def load_of(
    sharegpt: Path | None, jsonl: Path | None, task: str | None, **asked: object
) -> tuple[Load, Prompts | None]:
    """The load and its prompts. Raises SpecdecError for a dataset that cannot be read or is empty."""
    count, seed = int(str(asked["num_prompts"])), int(str(asked["seed"]))
    if sharegpt:
        prompts, kind, source = (
            prompts_of.of_file(sharegpt, "sharegpt", count, seed),
            "sharegpt",
            f"ShareGPT {sharegpt.name}",
        )
    elif jsonl:
        prompts, kind, source = prompts_of.of_file(jsonl, "custom", count, seed), "custom", jsonl.name
    elif task:
        prompts, kind, source = prompts_of.of_task(task), "custom", f"built-in prompts, {task}"
    else:
        return Load.model_validate(asked), None
    more = {"dataset": kind, "source": source, "prompts_sha256": prompts.sha256}
    return Load.model_validate({**asked, **more}), prompts


def points_of(
    concurrency: str | None, rate: str | None, usual: list[int] | None, usual_rate: list[float] | None
) -> list[Point]:
    """Every number of requests at once with every rate. Raises SpecdecError for what is no number above 0."""
    at_once: Sequence[int | None] = usual or ([1] if rate is None else [None])
    if concurrency is not None:
        at_once = [int(one) for one in numbers(concurrency, "--concurrency", whole=True)]
    rates: Sequence[float | None] = numbers(rate, "--rate") if rate is not None else usual_rate or [None]
    return [Point(concurrency=c, rate=r) for r in rates for c in at_once]


def numbers(text: str, option: str, *, whole: bool = False) -> list[float]:
    """ "1,4,8", each once."""
    try:
        values = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        values = []
    if not values or not all(0 < one < float("inf") and (not whole or one == int(one)) for one in values):
        raise SpecdecError(f"{text!r}", code="bad-number", path=option, fix="numbers above 0, with commas: 1,4,8")
    return list(dict.fromkeys(values))


def digest(manifests: list[Manifest]) -> str:
    """Of what is deployed."""
    text = json.dumps([manifest.data for manifest in manifests], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def new(
    live: Live,
    manifests: list[Manifest],
    engines: list[Engine],
    load: Load,
    points: list[Point],
    repeats: int,
    sweep: list[int],
) -> Run:
    """A run that has yet to be made."""
    versions = {f"{one.name} vLLM": str(one.workload.engine_version) for one in engines}
    if len(set(versions.values())) == 1:
        versions = {"vLLM": versions.popitem()[1]}
    kubernetes = (live.cluster.get("/version") or {}).get("gitVersion")
    return Run(
        environment=live.env.name,
        release=live.env.release,
        namespace=live.env.namespace,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        sweep=sweep,
        repeats=repeats,
        load=load,
        points=points,
        versions=versions | {"Kubernetes": str(kubernetes)},
        values_sha256={file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in live.env.values},
        manifests_sha256=digest(manifests),
        target=str(engines[0].workload.args.model),
        engines=[engine.name for engine in engines],
    )


def directory_of(out: Path | None, environment: str) -> Path:
    """Where a new run's files go. Raises SpecdecError for a place that holds a run."""
    directory = out or Path("runs") / environment / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    if (directory / FILE).exists():
        raise SpecdecError(
            "this directory holds a run already", code="run-exists", file=str(directory), fix=f"--resume {directory}"
        )
    return directory


def keep(prompts: Prompts | None, directory: Path) -> None:
    """The prompts go with the run, so that it can go on and be repeated."""
    if prompts:
        (directory / prompts.name).write_text(prompts.text, encoding="utf-8")


def resumed(earlier: Run, deployed: str, directory: Path, repeats: int | None) -> tuple[Run, Prompts | None]:
    """The run as it goes on, with more repeats where they are asked for, and its prompts.

    Raises SpecdecError where something else is deployed now: its figures would not belong to the others.
    """
    if earlier.manifests_sha256 != deployed:
        raise SpecdecError(
            "what is deployed is not what this run measured so far",
            code="manifests-differ",
            file=str(directory),
            fix="deploy that again, or start a new run",
        )
    if repeats is not None and repeats < earlier.repeats:
        raise SpecdecError(
            f"the run began with {earlier.repeats} repeats", code="bad-number", path="--repeats", fix="as many or more"
        )
    return earlier.model_copy(update={"repeats": repeats or earlier.repeats}), kept_prompts(earlier, directory)


def kept_prompts(run: Run, directory: Path) -> Prompts | None:
    """The prompts that the run began with. Raises SpecdecError where they are gone or changed."""
    if run.load.prompts_sha256 is None:
        return None
    file = directory / ("prompts.json" if run.load.dataset == "sharegpt" else "prompts.jsonl")
    prompts = Prompts(file.name, file.read_text(encoding="utf-8") if file.is_file() else "")
    if prompts.sha256 != run.load.prompts_sha256:
        raise SpecdecError("not the prompts that the run began with", code="dataset", file=str(file))
    return prompts

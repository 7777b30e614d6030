"""`specdec bench`: every engine of a release that serves one target, measured under the same load, in turn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from specdec.errors import SpecdecError
from specdec.output import Format

if TYPE_CHECKING:
    from specdec.bench.document import Load, Point, Run
    from specdec.bench.load import Prompts
    from specdec.deploy.live import Live
    from specdec.deploy.targets import Engine
    from specdec.manifests import Manifest


class Profile(StrEnum):
    seed = "seed"


def bench(
    environment: str = typer.Argument(..., metavar="ENV", help="A folder of environments/, deployed."),
    profile: Profile | None = typer.Option(None, help="seed: 50 users, 512 in, 256 out, 500 prompts, 10 a second."),
    arm: list[str] = typer.Option([], "--arm", help="Engines to compare. Default: all that serve the first's target."),
    any_version: bool = typer.Option(False, "--any-version", help="Compare arms of different engine versions."),
    concurrency: str | None = typer.Option(None, help="Requests at once, a sweep: 1,4,8. Default: 1."),
    rate: str | None = typer.Option(None, help="Requests a second, a sweep: 2,5,10. Default: no bound."),
    input_len: int | None = typer.Option(None, min=1, help="Tokens of a random prompt. Default: 512."),
    output_len: int | None = typer.Option(None, min=2, help="Tokens of an answer. Default: 256."),
    num_prompts: int | None = typer.Option(None, min=1, help="Requests a run. Default: 100."),
    sharegpt: Path | None = typer.Option(None, help="Prompts of a ShareGPT file instead of random tokens."),
    jsonl: Path | None = typer.Option(None, help='Prompts of a file with {"prompt": "..."} on every line.'),
    task: str | None = typer.Option(None, help="Built-in prompts: code, chat, translation or json."),
    chat_template: bool = typer.Option(False, help="Put the model's chat template around --jsonl and --task prompts."),
    temperature: float = typer.Option(0, min=0, help="0: greedy."),
    ignore_eos: bool = typer.Option(True, help="Answers of full length, the same for all arms."),
    repeats: int = typer.Option(5, min=1, help="Runs of each arm under each load."),
    seed: int = typer.Option(0, min=0, help="Of random prompts and samples."),
    timeout: float = typer.Option(3600, min=1, help="Seconds that one run may take."),
    out: Path | None = typer.Option(None, help="Directory of the run. Default: runs/ENV/TIME."),
    resume: Path | None = typer.Option(None, help="Go on with the run in this directory; its load holds."),
    context: str | None = typer.Option(None, help="Context of the kubeconfig."),
    release: str | None = typer.Option(None, help="Name of the release."),
    namespace: str | None = typer.Option(None, help="Namespace of the release."),
    format: Format = typer.Option(Format.text, help="text or json."),
) -> None:
    """Measure a deployed environment's engines against each other; the report is an HTML page beside the figures."""
    from specdec.bench.arms import arms_of
    from specdec.bench.document import FILE, read_run
    from specdec.bench.load import PROFILES
    from specdec.bench.report import page
    from specdec.bench.run import Benchmark
    from specdec.deploy.live import Live
    from specdec.deploy.progress import Progress
    from specdec.output import print_json

    if resume and out:
        raise SpecdecError("--resume and --out name the directory twice", code="usage", fix="give one of them")
    if sum(one is not None for one in (sharegpt, jsonl, task)) > 1:
        raise SpecdecError("--sharegpt, --jsonl and --task exclude each other", code="usage", fix="give one of them")
    given = PROFILES[profile.value] if profile else {}
    load, prompts = load_of(
        sharegpt,
        jsonl,
        task,
        input_len=input_len or given.get("input_len", 512),
        output_len=output_len or given.get("output_len", 256),
        num_prompts=num_prompts or given.get("num_prompts", 100),
        temperature=temperature,
        ignore_eos=ignore_eos,
        chat_template=chat_template,
        seed=seed,
    )
    points = points_of(concurrency, rate, given.get("concurrency"), given.get("rate"))
    earlier = read_run(resume) if resume else None
    live = Live.of(environment, context, release, namespace)
    manifests = live.manifests()
    engines = arms_of(live.release(manifests), earlier.engines if earlier else arm, any_version=any_version)
    if earlier and resume:
        run, directory = resumed(earlier, digest(manifests), resume), resume
        prompts = kept_prompts(run, resume)
    else:
        run = new(live, manifests, engines, load, points, repeats)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        directory = out or Path("runs") / environment / stamp
        if (directory / FILE).exists():
            raise SpecdecError(
                "this directory holds a run already",
                code="run-exists",
                file=str(directory),
                fix=f"--resume {directory}",
            )
        if prompts:
            directory.mkdir(parents=True, exist_ok=True)
            (directory / prompts.name).write_text(prompts.text, encoding="utf-8")
    progress = Progress(quiet=format == Format.json)
    with progress.step("benchmark"):
        benchmark = Benchmark(
            live.cluster, directory, run, engines, prompts, timeout, say=progress.line, note=progress.note
        )
        run = benchmark.execute()
        progress.note(str(directory))
    report = directory / "report.html"
    report.write_text(page(run), encoding="utf-8")
    if format == Format.json:
        print_json(run.model_dump(mode="json", exclude={"arms": {"__all__": {"raw_tpot_ms"}}}))
    else:
        show(run, report)


def load_of(
    sharegpt: Path | None, jsonl: Path | None, task: str | None, **asked: object
) -> tuple[Load, Prompts | None]:
    """The load and its prompts. Raises SpecdecError for a dataset that cannot be read or is empty."""
    from specdec.bench import load
    from specdec.bench.document import Load

    count, seed = int(str(asked["num_prompts"])), int(str(asked["seed"]))
    if sharegpt:
        prompts, kind, source = load.of_file(sharegpt, "sharegpt", count, seed), "sharegpt", f"ShareGPT {sharegpt.name}"
    elif jsonl:
        prompts, kind, source = load.of_file(jsonl, "custom", count, seed), "custom", jsonl.name
    elif task:
        prompts, kind, source = load.of_task(task), "custom", f"built-in prompts, {task}"
    else:
        return Load.model_validate(asked), None
    more = {"dataset": kind, "source": source, "prompts_sha256": prompts.sha256}
    return Load.model_validate({**asked, **more}), prompts


def points_of(
    concurrency: str | None, rate: str | None, usual: list[int] | None, usual_rate: list[float] | None
) -> list[Point]:
    """Every number of requests at once with every rate. Raises SpecdecError for what is no number above 0."""
    from specdec.bench.document import Point

    at_once: Sequence[int | None] = usual or ([1] if rate is None else [None])
    if concurrency:
        at_once = [int(one) for one in numbers(concurrency, "--concurrency", whole=True)]
    rates: Sequence[float | None] = numbers(rate, "--rate") if rate else usual_rate or [None]
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
    live: Live, manifests: list[Manifest], engines: list[Engine], load: Load, points: list[Point], repeats: int
) -> Run:
    from specdec.bench.document import Run

    versions = {f"{one.name} vLLM": str(one.workload.engine_version) for one in engines}
    if len(set(versions.values())) == 1:
        versions = {"vLLM": versions.popitem()[1]}
    kubernetes = (live.cluster.get("/version") or {}).get("gitVersion")
    return Run(
        environment=live.env.name,
        release=live.env.release,
        namespace=live.env.namespace,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        repeats=repeats,
        load=load,
        points=points,
        versions=versions | {"Kubernetes": str(kubernetes)},
        values_sha256={file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in live.env.values},
        manifests_sha256=digest(manifests),
        target=str(engines[0].workload.args.model),
        engines=[engine.name for engine in engines],
    )


def resumed(earlier: Run, deployed: str, directory: Path) -> Run:
    """Raises SpecdecError where something else is deployed now: its figures would not belong to the others."""
    if earlier.manifests_sha256 != deployed:
        raise SpecdecError(
            "what is deployed is not what this run measured so far",
            code="manifests-differ",
            file=str(directory),
            fix="deploy that again, or start a new run",
        )
    return earlier


def kept_prompts(run: Run, directory: Path) -> Prompts | None:
    """The prompts that the run began with. Raises SpecdecError where they are gone or changed."""
    from specdec.bench.load import Prompts

    if run.load.prompts_sha256 is None:
        return None
    file = directory / ("prompts.json" if run.load.dataset == "sharegpt" else "prompts.jsonl")
    prompts = Prompts(file.name, file.read_text(encoding="utf-8") if file.is_file() else "")
    if prompts.sha256 != run.load.prompts_sha256:
        raise SpecdecError("not the prompts that the run began with", code="dataset", file=str(file))
    return prompts


def show(run: Run, report: Path) -> None:
    from rich.table import Table

    from specdec.bench.report import label, sentence
    from specdec.output import console

    table = Table("arm", "K", "ms a token", "95 %", "p99", "first token, ms", "tokens/s", "acceptance")
    for arm in run.arms:
        table.add_row(
            arm.name + label(arm, run),
            str(arm.k or "-"),
            f"{arm.tpot_ms:.2f}",
            f"{arm.interval[0]:.2f} to {arm.interval[1]:.2f}",
            f"{arm.tpot.p99:.2f}",
            f"{arm.ttft.p50:,.0f}",
            f"{arm.output_tokens_per_second:,.0f}",
            "-" if arm.acceptance_rate is None else f"{arm.acceptance_rate:.3f}",
        )
    out = console()
    out.print(table)
    for one in run.ratios:
        out.print(f"{one.arm}: {sentence(one, run)}", markup=False)
    for text in run.warnings:
        out.print(f"! {text}", markup=False)
    out.print(f"report: {report}", markup=False)

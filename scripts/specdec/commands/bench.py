"""`specdec bench`: every engine of a release that serves one target, measured under the same load, in turn."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from specdec.errors import SpecdecError
from specdec.output import Format, make_folder

if TYPE_CHECKING:
    from types import FrameType

    from specdec.bench.document import Run
    from specdec.bench.run import Benchmark


class Profile(StrEnum):
    seed = "seed"


def bench(
    environment: str = typer.Argument(..., metavar="ENV", help="A folder of environments/, deployed."),
    profile: Profile | None = typer.Option(None, help="seed: 50 users, 512 in, 256 out, 500 prompts, 10 a second."),
    k: str | None = typer.Option(
        None,
        "--k",
        help="Start engines with these K beside the release, 0 without speculation, and compare them: 0,2,4.",
    ),
    keep: bool = typer.Option(False, "--keep", help="Leave the engines of --k running."),
    arm: list[str] = typer.Option([], "--arm", help="Engines to compare. Default: all that serve the first's target."),
    any_version: bool = typer.Option(False, "--any-version", help="Compare arms of different engine versions."),
    live: bool = typer.Option(False, "--live", help="Measure engines even while they answer others."),
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
    repeats: int | None = typer.Option(
        None, min=1, help="Runs of each arm under each load. Default: 5; of fewer no difference is called one."
    ),
    seed: int = typer.Option(0, min=0, help="Of random prompts and samples."),
    timeout: float = typer.Option(3600, min=1, help="Seconds that one run may take."),
    out: Path | None = typer.Option(None, help="Directory of the run. Default: runs/ENV/TIME."),
    resume: Path | None = typer.Option(
        None, help="Go on with the run in this directory; its load holds. More --repeats make it longer."
    ),
    yes: bool = typer.Option(False, "--yes", "-y", help="Start the engines of --k without asking."),
    context: str | None = typer.Option(None, help="Context of the kubeconfig."),
    release: str | None = typer.Option(None, help="Name of the release."),
    namespace: str | None = typer.Option(None, help="Namespace of the release."),
    format: Format = typer.Option(Format.text, help="text or json."),
) -> None:
    """Measure a deployed environment's engines against each other; the report is an HTML page beside the figures."""
    from specdec.bench import request, sweep
    from specdec.bench.arms import arms_of
    from specdec.bench.document import read_run
    from specdec.bench.load import PROFILES, check_points
    from specdec.bench.run import Benchmark
    from specdec.deploy.live import Live
    from specdec.deploy.progress import Progress

    exclude({"--resume": resume, "--out": out})
    exclude({"--sharegpt": sharegpt, "--jsonl": jsonl, "--task": task})
    exclude({"--k": k, "--arm": arm or None})
    load_options = {"--profile": profile, "--k": k, "--arm": arm or None, "--concurrency": concurrency, "--rate": rate,
                    "--input-len": input_len, "--output-len": output_len, "--num-prompts": num_prompts,
                    "--sharegpt": sharegpt, "--jsonl": jsonl, "--task": task}  # fmt: skip
    if resume:
        for option, value in load_options.items():
            exclude({"--resume": resume, option: value}, "the load of the run holds; start a new one for another")
    given = PROFILES[profile.value] if profile else {}
    load, prompts = request.load_of(
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
    points = request.points_of(concurrency, rate, given.get("concurrency"), given.get("rate"))
    check_points(load, points)
    ks = sweep.numbers_of_tokens(k) if k is not None else []
    earlier = read_run(resume) if resume else None
    if earlier and earlier.environment != environment:
        raise SpecdecError(
            f"this is a run of {earlier.environment}, not of {environment}", code="bad-run", file=str(resume)
        )
    if earlier:
        ks, namespace = earlier.sweep, namespace or earlier.namespace
        release = release or earlier.release.removesuffix(sweep.SUFFIX if ks else "")
    where = Live.of(environment, context, release, namespace)
    directory = resume or request.directory_of(out, environment)
    progress = Progress(quiet=format == Format.json and not sys.stderr.isatty())
    signal.signal(signal.SIGTERM, interrupt)
    with ExitStack() as held:
        if ks:
            own, again = where.rendered([], []), keep or earlier is not None
            for text in sweep.check(where.env, own, where.cluster):
                progress.warn(text)
            if not yes and where.env.name != "local" and sys.stdin.isatty():
                what = f"Start {len(ks)} engines of {environment} as release {where.env.release}{sweep.SUFFIX}?"
                typer.confirm(what, abort=True, err=True)
            make_folder(directory, "--out")
            env = held.enter_context(
                sweep.deployed(where, ks, directory, progress, gpus=sweep.need_gpus(own), keep=keep, again=again)
            )
            where = Live.of(environment, context, env.release, namespace)
        manifests = where.manifests()
        engines = arms_of(where.release(manifests), earlier.engines if earlier else arm, any_version=any_version)
        if earlier:
            run, prompts = request.resumed(earlier, request.digest(manifests), directory, repeats)
        else:
            run = request.new(where, manifests, engines, load, points, repeats or 5, ks)
            make_folder(directory, "--out")
            request.keep(prompts, directory)
        benchmark = Benchmark(
            where.cluster, directory, run, engines, prompts, timeout, say=progress.line, note=progress.note, live=live
        )
        with progress.step("benchmark"):
            measure(benchmark)
            progress.note(str(directory))
        finish(benchmark.run, directory, format)


def exclude(options: dict[str, object], fix: str = "give one of them") -> None:
    """Raises SpecdecError where more than one of these options is given."""
    given = [name for name, value in options.items() if value is not None]
    if len(given) > 1:
        raise SpecdecError(f"{' and '.join(given)} exclude each other", code="usage", fix=fix)


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM ends a benchmark as Ctrl-C does: what it made in the cluster is removed, what it measured is kept."""
    raise KeyboardInterrupt


def measure(benchmark: Benchmark) -> None:
    """Run it to its end. Where it ends before that, what there is becomes a report, and how to go on is said."""
    from specdec.bench.report import write_page
    from specdec.output import console

    try:
        benchmark.execute()
    except BaseException:
        run = benchmark.run
        if run.made:
            write_page(run, benchmark.directory)
            console(stderr=True).print(
                f"{run.made} of {run.wanted} runs are kept in {benchmark.directory}, with a report that says so; "
                f"specdec bench {run.environment} --resume {benchmark.directory} makes the rest",
                markup=False,
            )
        raise


def finish(run: Run, directory: Path, format: Format) -> None:
    from specdec.bench.report import write_page
    from specdec.output import print_json

    report = write_page(run, directory)
    if format == Format.json:
        print_json(run.model_dump(mode="json"))
    else:
        show(run, report)


def show(run: Run, report: Path) -> None:
    from rich.table import Table

    from specdec.bench.report import label, sentence, short
    from specdec.output import console

    table = Table("arm", "K", "ms a token", "95 %", "p99", "first token, ms", "tokens/s", "acceptance")
    for arm in run.arms:
        table.add_row(
            short(arm.name, run) + label(arm, run),
            str(arm.k or "-"),
            f"{arm.tpot_ms:.2f}",
            f"{arm.interval[0]:.2f} to {arm.interval[1]:.2f}",
            f"{arm.tpot.p99:.2f}",
            f"{arm.ttft_ms:,.0f}",
            f"{arm.output_tokens_per_second:,.0f}",
            "-" if arm.acceptance_rate is None else f"{arm.acceptance_rate:.3f}",
        )
    out = console()
    if not run.complete:
        out.print(f"not finished: {run.made} of {run.wanted} runs", markup=False)
    out.print(table)
    for one in run.ratios:
        out.print(f"{short(one.arm, run)}: {sentence(one, run)}", markup=False)
    for text in run.warnings:
        out.print(f"! {text}", markup=False)
    out.print(f"report: {report}", markup=False)

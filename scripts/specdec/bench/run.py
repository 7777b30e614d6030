"""The whole benchmark: arms in turn, loads, repeats; each run's figures on disk as it ends, so that one can go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec.bench import job, load, summary
from specdec.bench.document import FILE, Cell, Counted, Load, Point, Run, read_cell, write
from specdec.deploy import pods
from specdec.deploy.cluster import Cluster
from specdec.deploy.endpoint import EndpointError
from specdec.deploy.metrics import Counters
from specdec.deploy.targets import Engine, Release
from specdec.errors import FoundWrong, SpecdecError, unknown

ATTEMPTS = 3
WARM_UP = 8


@dataclass(frozen=True)
class Order:
    """One run that has to be made. Repeat 0 is the warm-up of an arm: made, and not kept."""

    repeat: int
    point: Point
    engine: Engine

    @property
    def file(self) -> str:
        return f"raw/{self.repeat:02d}-{self.point.key}-{self.engine.name}.json"


def arms_of(release: Release, names: Sequence[str] = (), *, any_version: bool = False) -> list[Engine]:
    """The engines that serve the same target, those without speculation first, then by K.

    Raises SpecdecError for fewer than two, for unknown names and for arms of different engine versions.
    """
    every = [*release.engines, *release.baselines.values()]
    known = {engine.name: engine for engine in every}
    for name in names:
        if name not in known:
            raise unknown("engine", name, known, path="--arm")
    chosen = [known[name] for name in names] if names else every
    target = chosen[0].workload.args.model
    arms = [engine for engine in chosen if engine.workload.args.model == target]
    if names and len(arms) < len(chosen):
        other = next(engine for engine in chosen if engine not in arms)
        raise SpecdecError(
            f"{chosen[0].name} serves {target} and {other.name} {other.workload.args.model}: they do not compare",
            code="targets-differ",
            path="--arm",
            fix="arms of one target",
        )
    if len(arms) < 2:
        raise SpecdecError(
            f"only engine {arms[0].name} serves {target}: there is nothing to compare with",
            code="one-arm",
            path="baseline.enabled",
            fix="specdec deploy ENV --set baseline.enabled=true",
        )
    versions = {engine.workload.engine_version for engine in arms}
    if len(versions) > 1 and not any_version:
        told = ", ".join(f"{engine.name} {engine.workload.engine_version}" for engine in arms)
        raise SpecdecError(
            f"the arms run different versions of vLLM: {told}",
            code="versions-differ",
            fix="deploy one version, or say that you mean it: --any-version",
        )
    return sorted(
        {engine.name: engine for engine in arms}.values(), key=lambda e: (e.speculates, summary.k_of(e), e.name)
    )


def orders(engines: Sequence[Engine], points: Sequence[Point], repeats: int) -> Iterator[Order]:
    """Every repeat asks all arms under all loads; the arm that begins changes from repeat to repeat."""
    for repeat in range(1, repeats + 1):
        shift = (repeat - 1) % len(engines)
        turn = [*engines[shift:], *engines[:shift]]
        for point in points:
            for engine in turn:
                yield Order(repeat, point, engine)


@dataclass
class Benchmark:
    """What stays the same over a run. `say` gets a line for each thing that happens; `timeout` is one run's."""

    cluster: Cluster
    directory: Path
    run: Run
    engines: list[Engine]
    prompts: load.Prompts | None
    timeout: float = 3600
    say: Callable[[str], None] = lambda _: None
    note: Callable[[str], None] = lambda _: None
    pause: float = 1

    def check(self) -> None:
        """Raises SpecdecError for what no run could pass: a load that is too long, an engine that is down or wrong."""
        for engine in self.engines:
            args = engine.workload.args
            load.check(self.run.load, engine.workload.engine_version, args.max_model_len, engine.name)
            try:
                served = [str(entry.get("id")) for entry in self.cluster.service(engine.service, engine.port).models()]
            except EndpointError as error:
                raise SpecdecError(
                    f"engine {engine.name} does not answer: {error}",
                    code="endpoint-down",
                    fix=f"specdec status {self.run.environment}",
                ) from error
            if engine.model not in served:
                raise SpecdecError(
                    f"engine {engine.name} serves {', '.join(served) or 'nothing'} and not {engine.model}",
                    code="wrong-model",
                    fix="specdec deploy brings what runs to what the values say",
                )

    def execute(self) -> Run:
        """Make what is missing. What is made stays on disk whatever happens after it."""
        self.check()
        todo = [one for one in orders(self.engines, self.run.points, self.run.repeats) if not self.has(one)]
        write(self.directory / FILE, self.run)
        for engine in {one.engine.name: one.engine for one in todo}.values():
            self.note(f"warming up {engine.name}")
            self.measure(Order(0, self.run.points[0], engine))
        done = self.run.repeats * len(self.run.points) * len(self.engines) - len(todo)
        for number, one in enumerate(todo, done + 1):
            where = f"{number} of {done + len(todo)}: repeat {one.repeat}, {one.point.key}, {one.engine.name}"
            self.note(where)
            cell = self.measure(one)
            write(self.directory / one.file, cell)
            self.say(f"{where}: {summary.median(cell.tpot_ms):.2f} ms a token")
        self.run = summary.summarise(self.run, self.engines, self.cells())
        write(self.directory / FILE, self.run)
        return self.run

    def has(self, one: Order) -> bool:
        cell = read_cell(self.directory / one.file)
        return cell is not None and (cell.arm, cell.repeat, cell.point) == (one.engine.name, one.repeat, one.point)

    def cells(self) -> list[tuple[str, Cell]]:
        """Every run's figures, with its file."""
        found = []
        for one in orders(self.engines, self.run.points, self.run.repeats):
            cell = read_cell(self.directory / one.file)
            if cell is None:
                raise SpecdecError(
                    "a run's file is missing or cut",
                    code="bad-run",
                    file=str(self.directory / one.file),
                    fix=f"--resume {self.directory}",
                )
            found.append((one.file, cell))
        return found

    def measure(self, one: Order) -> Cell:
        """One run, made again where a pod of the engine restarted while it took place."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self.once(one)
            except FoundWrong as error:
                if error.code != "restarted" or attempt == ATTEMPTS:
                    raise
                self.say(f"{one.engine.name}: a pod restarted during the run: it is made again")
        raise AssertionError("unreachable")

    def once(self, one: Order) -> Cell:
        engine, asked = one.engine, self.run.load
        if one.repeat == 0:
            asked = asked.model_copy(update={"num_prompts": min(asked.num_prompts, WARM_UP)})
        key = f"{self.directory.resolve()}/{one.file}"
        name = f"{self.run.release[:40]}-bench-{load.Prompts('', key).sha256[:10]}"
        before, pods_before = engine.counters(self.cluster), self.identities(engine)
        result = job.run(
            self.cluster,
            job.manifest(
                name,
                self.run.release,
                engine,
                self.words(one, asked),
                name if self.prompts else None,
                int(self.timeout),
            ),
            job.config_map(name, self.run.release, self.prompts) if self.prompts else None,
            timeout=self.timeout,
            report=lambda text: self.note(f"{engine.name}: {text}"),
            pause=self.pause,
        )
        job.refuse_failures(result, asked.num_prompts, engine.name)
        if self.identities(engine) != pods_before:
            raise FoundWrong(f"a pod of engine {engine.name} restarted during the run", code="restarted")
        counted = engine.counters(self.cluster) - before
        self.refuse_wrong_arm(engine, counted)
        return cell_of(one, result, counted)

    def words(self, one: Order, asked: Load) -> list[str]:
        args = one.engine.workload.args
        return load.arguments(
            asked,
            one.point,
            version=str(one.engine.workload.engine_version),
            model=one.engine.model,
            tokenizer=args.value("--tokenizer") or str(args.model),
            url=f"http://{one.engine.service}:{one.engine.port}",
            trust_remote_code=args.trust_remote_code,
        )

    def identities(self, engine: Engine) -> set[tuple[str, int]]:
        """The engine's pods and how often they restarted: counters that fell and rose again would not show it."""
        return {(pod["metadata"].get("uid", pod["metadata"]["name"]), pods.restarts(pod))
                for pod in self.cluster.pods(engine.selector)}  # fmt: skip

    def refuse_wrong_arm(self, engine: Engine, counted: Counters) -> None:
        """Raises FoundWrong for a speculative arm that drafted nothing and for a baseline that drafted."""
        if engine.speculates and not counted.moved:
            raise FoundWrong(
                f"engine {engine.name} made no draft under this load: it is no speculative arm",
                code="off",
                fix=f"specdec smoke {self.run.environment} says why; a schedule may turn speculation off at this load",
            )
        if not engine.speculates and counted.moved:
            raise FoundWrong(f"engine {engine.name} drafted: it is no baseline", code="on")


def cell_of(one: Order, result: dict[str, Any], counted: Counters) -> Cell:
    """Latencies by request from the benchmark's detailed result.

    Time per output token is decode time ÷ tokens after the first; gaps between chunks are no measure of it, as a chunk
    of a speculative engine carries several tokens. Raises job.JobFailed where the result lacks what this needs.
    """
    try:
        rows = [
            (int(tokens), float(first) * 1000, sum(map(float, gaps)) * 1000)
            for tokens, first, gaps in zip(result["output_lens"], result["ttfts"], result["itls"], strict=True)
        ]
        timed = [(tokens, first, decode) for tokens, first, decode in rows if tokens > 1 and decode > 0]
        return Cell(
            arm=one.engine.name,
            repeat=one.repeat,
            point=one.point,
            duration_s=float(result["duration"]),
            completed=int(result["completed"]),
            output_tokens=int(result["total_output_tokens"]),
            input_lens=[int(tokens) for tokens in result["input_lens"]],
            output_lens=[tokens for tokens, _, _ in rows],
            tpot_ms=[round(decode / (tokens - 1), 4) for tokens, _, decode in timed],
            ttft_ms=[round(first, 3) for _, first, _ in rows],
            e2e_ms=[round(first + decode, 3) for _, first, decode in rows],
            counted=Counted(
                drafts=counted.drafts,
                drafted=counted.drafted,
                accepted=counted.accepted,
                by_position=list(counted.by_position),
                generated=counted.generated,
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise job.JobFailed(
            f"the benchmark's result lacks what a comparison needs: {error}", code="bench-cut"
        ) from error

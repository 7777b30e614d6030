"""The whole benchmark: arms in turn, loads, repeats; each run's figures on disk as it ends, so that one can go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec.bench import generator, job, load, placement, summary
from specdec.bench.arms import Order, orders
from specdec.bench.document import FILE, Cell, Counted, Load, Run, read_cell, write
from specdec.deploy import pods
from specdec.deploy.cluster import Cluster
from specdec.deploy.endpoint import EndpointError
from specdec.deploy.metrics import Counters
from specdec.deploy.targets import Engine
from specdec.errors import FoundWrong, SpecdecError
from specdec.manifests import mapping

ATTEMPTS = 3
WARM_UP = 8


@dataclass
class Benchmark:
    """What stays the same over a run. `say` gets a line for each thing that happens; `timeout` is one run's.

    `live`: engines may be measured while they answer others.
    """

    cluster: Cluster
    directory: Path
    run: Run
    engines: list[Engine]
    prompts: load.Prompts | None
    timeout: float = 3600
    say: Callable[[str], None] = lambda _: None
    note: Callable[[str], None] = lambda _: None
    pause: float = 1
    live: bool = False

    def check(self) -> None:
        """Raises SpecdecError for what no run could pass: a load that is too long, an engine that is down or wrong."""
        for engine in self.engines:
            args = engine.workload.args
            load.check(self.run.load, engine.workload.engine_version, args.max_model_len, engine.name)
            try:
                served = [str(entry.get("id")) for entry in self.cluster.service(engine.service, engine.port).models()]
            except EndpointError as error:
                if error.code == "http-401":
                    continue  # It asks for a key, which only its own pods have: the Job's is one.
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

    def refuse_busy(self) -> None:
        """Raises FoundWrong where an engine answers others right now: the load would be theirs to bear."""
        before = {engine.name: engine.counters(self.cluster).generated for engine in self.engines}
        time.sleep(3 * self.pause)
        for engine in self.engines:
            if engine.counters(self.cluster).generated != before[engine.name]:
                raise FoundWrong(
                    f"engine {engine.name} answers others at this moment: a benchmark would slow them, and they it",
                    code="in-use",
                    fix="wait, measure another release of the same values, or say that you mean it: --live",
                )

    def execute(self) -> Run:
        """Make what is missing. What is made stays on disk whatever happens after it, with a summary of it."""
        self.check()
        todo = [one for one in orders(self.engines, self.run.points, self.run.repeats) if not self.has(one)]
        if todo and not self.live:
            self.refuse_busy()
        # Written first: a directory that cannot be written is found before an hour is spent.
        write(self.directory / FILE, self.run)
        try:
            self.make(todo)
        finally:
            self.run = summary.summarise(self.run, self.engines, self.cells())
            write(self.directory / FILE, self.run)
        return self.run

    def make(self, todo: Sequence[Order]) -> None:
        for engine in {one.engine.name: one.engine for one in todo}.values():
            self.note(f"warming up {engine.name}")
            self.measure(Order(0, self.run.points[0], engine))
        done = self.run.repeats * len(self.run.points) * len(self.engines) - len(todo)
        begin = time.monotonic()
        for number, one in enumerate(todo):
            where = (
                f"{done + number + 1} of {done + len(todo)}: repeat {one.repeat}, {one.point.key}, {one.engine.name}"
            )
            left = (time.monotonic() - begin) / number * (len(todo) - number) if number else None
            self.note(where + (f", about {left / 60:.0f} minutes left" if left and left > 90 else ""))
            cell = self.measure(one)
            write(self.directory / one.file, cell)
            self.say(f"{where}: {summary.median(cell.tpot_ms):.2f} ms a token")

    def has(self, one: Order) -> bool:
        return self.cell(one) is not None

    def cell(self, one: Order) -> Cell | None:
        """The run's figures, where it was made."""
        cell = read_cell(self.directory / one.file)
        if cell and (cell.arm, cell.repeat, cell.point) == (one.engine.name, one.repeat, one.point):
            return cell
        return None

    def cells(self) -> list[tuple[str, Cell]]:
        """The figures of every run that was made, with its file."""
        every = orders(self.engines, self.run.points, self.run.repeats)
        return [(one.file, cell) for one in every if (cell := self.cell(one)) is not None]

    def measure(self, one: Order) -> Cell:
        """One run, made again where a pod of the engine restarted while it took place."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self.once(one)
            except FoundWrong as error:
                if error.code != "restarted" or attempt == ATTEMPTS:
                    raise
                self.say(f"{one.engine.name}: a pod restarted during the run: it is made again")
                self.recover(one.engine)
                if one.repeat:
                    self.note(f"warming up {one.engine.name}")
                    self.once(Order(0, one.point, one.engine))
        raise AssertionError("unreachable")

    def recover(self, engine: Engine) -> None:
        """Wait until the engine answers again. Raises FoundWrong with the end of its log where it does not."""
        end = time.monotonic() + self.timeout
        while True:
            try:
                self.cluster.service(engine.service, engine.port).models()
                return
            except EndpointError as error:
                trouble = self.trouble(engine)
                if (trouble and not trouble.patient) or time.monotonic() > end:
                    lines = "".join(f"\n    {line}" for line in trouble.lines) if trouble else ""
                    why = f"{trouble.reason}: {trouble.message}" if trouble else str(error)
                    raise FoundWrong(
                        f"engine {engine.name} went down during the run and does not come back: {why}{lines}",
                        code="engine-died",
                        fix=f"specdec status {self.run.environment}; then --resume {self.directory}",
                    ) from error
            self.note(f"{engine.name}: waiting until it answers again")
            time.sleep(self.pause)

    def trouble(self, engine: Engine) -> pods.Trouble | None:
        """The first thing that keeps one of its pods from answering."""
        for pod in self.cluster.pods(engine.selector):
            found = pods.trouble_of(pod, self.cluster.events(pod["metadata"]["name"]), self.cluster.logs)
            if found:
                return found
        return None

    def once(self, one: Order) -> Cell:
        engine, asked = one.engine, self.run.load
        if one.repeat == 0:
            asked = asked.model_copy(update={"num_prompts": min(asked.num_prompts, WARM_UP)})
        key = f"{self.directory.resolve()}/{one.file}"
        name = f"{self.run.release[:40]}-bench-{load.Prompts('', key).sha256[:10]}"
        before, pods_before = engine.counters(self.cluster), self.identities(engine)
        body = job.manifest(
            name,
            self.run.release,
            engine,
            self.words(one, asked),
            name if self.prompts else None,
            int(self.timeout),
            placement.affinity(self.cluster, engine),
        )
        try:
            result = generator.run(
                self.cluster,
                body,
                job.config_map(name, self.run.release, self.prompts) if self.prompts else None,
                timeout=self.timeout,
                report=lambda text: self.note(f"{engine.name}: {text}"),
                pause=self.pause,
            )
            generator.refuse_failures(result, asked.num_prompts, engine.name)
        except SpecdecError as error:
            # Requests that fail because the engine died are no fault of the load.
            if self.identities(engine) != pods_before:
                raise FoundWrong(f"a pod of engine {engine.name} restarted during the run", code="restarted") from error
            raise
        if self.identities(engine) != pods_before:
            raise FoundWrong(f"a pod of engine {engine.name} restarted during the run", code="restarted")
        counted = engine.counters(self.cluster) - before
        self.refuse_wrong_arm(engine, counted)
        return cell_of(one, self.seed(one), result, counted)

    def words(self, one: Order, asked: Load) -> list[str]:
        args = one.engine.workload.args
        return load.arguments(
            asked,
            one.point,
            seed=self.seed(one),
            version=str(one.engine.workload.engine_version),
            model=one.engine.model,
            tokenizer=args.value("--tokenizer") or str(args.model),
            url=f"http://{one.engine.service}:{one.engine.port}",
            trust_remote_code=args.trust_remote_code,
        )

    def seed(self, one: Order) -> int:
        """The same for all arms of a repeat, another in each repeat and load: prompts seen before are in the cache."""
        return self.run.load.seed + 1000 * one.repeat + self.run.points.index(one.point)

    def identities(self, engine: Engine) -> set[tuple[str, int, bool]]:
        """The engine's pods, how often they restarted and whether they run.

        Counters that fell and rose again would not show a restart, and a container that has just died not yet one.
        """
        return {
            (
                pod["metadata"].get("uid", pod["metadata"]["name"]),
                pods.restarts(pod),
                any({"terminated", "waiting"} & mapping(entry.get("state")).keys() for entry in pods.statuses(pod)[1]),
            )
            for pod in self.cluster.pods(engine.selector)
        }

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


def cell_of(one: Order, seed: int, result: dict[str, Any], counted: Counters) -> Cell:
    """Latencies by request from the benchmark's detailed result.

    Time per output token is decode time ÷ tokens after the first; gaps between chunks are no measure of it, as a chunk
    of a speculative engine carries several tokens. Raises generator.JobFailed where the result lacks what this needs.
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
            seed=seed,
            duration_s=float(result["duration"]),
            completed=int(result["completed"]),
            output_tokens=int(result["total_output_tokens"]),
            input_lens=[int(tokens) for tokens in result["input_lens"]],
            output_lens=[tokens for tokens, _, _ in rows],
            tpot_ms=[round(decode / (tokens - 1), 4) for tokens, _, decode in timed],
            ttft_ms=[round(first, 3) for _, first, _ in rows],
            e2e_ms=[round(first + decode, 3) for _, first, decode in rows],
            answers=[str(answer) for answer in result.get("answers") or []],
            counted=Counted(
                drafts=counted.drafts,
                drafted=counted.drafted,
                accepted=counted.accepted,
                by_position=list(counted.by_position),
                generated=counted.generated,
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise generator.JobFailed(
            f"the benchmark's result lacks what a comparison needs: {error}", code="bench-cut"
        ) from error

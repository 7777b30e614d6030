"""From single runs to arms and ratios."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from specdec import facts
from specdec.bench import stats
from specdec.bench.document import Arm, Cell, Point, Ratio, Repeat, Run, Times
from specdec.bench.load import READY_CHECK
from specdec.deploy.metrics import Counters
from specdec.deploy.targets import Engine
from specdec.errors import SpecdecError

# Of the tokens that the engines generated, as many may be another's before it is said.
FOREIGN = 0.02

median = statistics.median


def k_of(engine: Engine) -> int:
    speculative = engine.workload.args.speculative
    return speculative.num_speculative_tokens or 0 if speculative else 0


def times(values: Sequence[float]) -> Times:
    return Times(
        mean=round(statistics.fmean(values), 4),
        p50=round(stats.percentile(values, 0.5), 4),
        p95=round(stats.percentile(values, 0.95), 4),
        p99=round(stats.percentile(values, 0.99), 4),
    )


def counters(cells: Sequence[Cell]) -> Counters:
    every = (cell.counted for cell in cells)
    return sum(
        (Counters(c.drafts, c.drafted, c.accepted, tuple(c.by_position), c.generated) for c in every), Counters()
    )


def at_once(cells: Sequence[Cell]) -> int:
    """Requests that were under way on average: the time that they took together ÷ duration (Little's law)."""
    mean = statistics.fmean(sum(cell.e2e_ms) / 1000 / cell.duration_s for cell in cells)
    return max(1, round(mean))


def arm(engine: Engine, point: Point, runs: Sequence[tuple[str, Cell]], seed: int) -> Arm:
    """One engine under one load; `runs`: each repeat's file and figures."""
    cells = [cell for _, cell in runs]
    repeats = [
        Repeat(
            repeat=cell.repeat,
            file=file,
            tpot_ms=median(cell.tpot_ms),
            ttft_ms=median(cell.ttft_ms),
            output_tokens_per_second=cell.output_tokens / cell.duration_s,
        )
        for file, cell in runs
    ]
    counted = counters(cells)
    speculative = engine.workload.args.speculative
    tpots = [value for cell in cells for value in cell.tpot_ms]
    # With a rate, the bound on requests at once is often not reached.
    reached = at_once(cells)
    bound = point.concurrency
    return Arm(
        name=engine.name,
        k=k_of(engine),
        method=speculative.method if speculative else None,
        engine_version=engine.workload.engine_version,
        concurrency=bound if bound and point.rate is None else min(reached, bound or reached),
        max_concurrency=bound,
        request_rate=point.rate,
        input_len=statistics.fmean(count for cell in cells for count in cell.input_lens),
        output_len=statistics.fmean(count for cell in cells for count in cell.output_lens),
        tpot_ms=median(one.tpot_ms for one in repeats),
        interval=stats.median_interval([one.tpot_ms for one in repeats], seed),
        tpot=times(tpots),
        ttft=times([value for cell in cells for value in cell.ttft_ms]),
        e2e=times([value for cell in cells for value in cell.e2e_ms]),
        output_tokens_per_second=median(one.output_tokens_per_second for one in repeats),
        ttft_ms=median(one.ttft_ms for one in repeats),
        ttft_interval=stats.median_interval([one.ttft_ms for one in repeats], seed),
        throughput_interval=stats.median_interval([one.output_tokens_per_second for one in repeats], seed),
        drafts=counted.drafts,
        acceptance_rate=counted.acceptance_rate,
        acceptance_by_position=counted.acceptance_by_position,
        mean_length=counted.mean_length,
        repeats=repeats,
        raw_tpot_ms=tpots,
        raw_ttft_ms=[value for cell in cells for value in cell.ttft_ms],
        raw_e2e_ms=[value for cell in cells for value in cell.e2e_ms],
    )


def same_answers(mine: Sequence[Cell], others: Sequence[Cell]) -> float | None:
    """Share of prompts that both answered alike in the same repeat; None where nothing compares."""
    by_repeat = {cell.repeat: cell.answers for cell in others}
    pairs = [
        (one, other)
        for cell in mine
        for one, other in zip(cell.answers, by_repeat.get(cell.repeat, []), strict=False)
        if one and other
    ]
    return sum(one == other for one, other in pairs) / len(pairs) if pairs else None


def summarise(run: Run, engines: Sequence[Engine], runs: Sequence[tuple[str, Cell]]) -> Run:
    """The run with its arms and ratios: each arm against the first that does not speculate, else against the first.

    `runs` may be a part of what was asked: then the document says that it is not complete.
    """
    arms: list[Arm] = []
    ratios: list[Ratio] = []
    baseline = next((engine for engine in engines if not engine.speculates), engines[0])
    for point in run.points:
        cells = {
            engine.name: [(file, cell) for file, cell in runs if cell.arm == engine.name and cell.point == point]
            for engine in engines
        }
        by_name = {
            engine.name: arm(engine, point, cells[engine.name], run.load.seed)
            for engine in engines
            if cells[engine.name]
        }
        if run.load.temperature == 0 and cells[baseline.name]:
            reference = [cell for _, cell in cells[baseline.name]]
            for name, one in by_name.items():
                if name != baseline.name:
                    one.same_answers = same_answers([cell for _, cell in cells[name]], reference)
        arms += by_name.values()
        ratios += [
            compared(engine, baseline, by_name[engine.name], by_name[baseline.name], run)
            for engine in engines
            if engine is not baseline
            and {engine.name, baseline.name} <= by_name.keys()
            and common(by_name[engine.name], by_name[baseline.name])
        ]
    wanted = run.repeats * len(run.points) * len(engines)
    return run.model_copy(
        update={
            "complete": len(runs) == wanted,
            "made": len(runs),
            "wanted": wanted,
            "arms": arms,
            "ratios": ratios,
            "warnings": foreign(engines, [cell for _, cell in runs]),
        }
    )


def common(one: Arm, base: Arm) -> list[int]:
    """Repeats that both arms have: an interrupted run may lack one's last."""
    return sorted({repeat.repeat for repeat in one.repeats} & {repeat.repeat for repeat in base.repeats})


def compared(engine: Engine, baseline: Engine, one: Arm, base: Arm, run: Run) -> Ratio:
    both = common(one, base)
    mine, theirs = ([repeat for repeat in arm.repeats if repeat.repeat in both] for arm in (one, base))
    interval = stats.ratio_interval([r.tpot_ms for r in theirs], [r.tpot_ms for r in mine], run.load.seed)
    forecast = predicted(engine, one)
    return Ratio(
        arm=one.name,
        baseline=base.name,
        concurrency=one.concurrency,
        max_concurrency=one.max_concurrency,
        request_rate=one.request_rate,
        ratio=median(r.tpot_ms for r in theirs) / median(r.tpot_ms for r in mine),
        interval=interval,
        real=stats.is_real(interval, len(both)),
        repeats=len(both),
        throughput_ratio=one.output_tokens_per_second / base.output_tokens_per_second,
        predicted=forecast[0] if forecast and not baseline.speculates else None,
        predicted_tpot_ms=forecast[1] if forecast else None,
    )


def predicted(engine: Engine, one: Arm) -> tuple[float, float] | None:
    """The planner's (speed-up, ms a token) at this load with the acceptance that was measured; None where it does not
    know the models."""
    from specdec.plan import speed
    from specdec.plan.acceptance import Acceptance
    from specdec.plan.workloads import plan_input

    if not one.acceptance_by_position:
        return None
    try:
        setup = plan_input(engine.workload).setup
        model = speed.engine(setup, speed.Load(max(1, round(one.input_len)), max(1, round(one.output_len))))
        acceptance = Acceptance(tuple(one.acceptance_by_position))
        ms = model.speculative_ms(one.concurrency, acceptance, one.k)
        return model.baseline_ms(one.concurrency) / ms, ms
    except (SpecdecError, ArithmeticError, LookupError, ValueError):
        # A forecast that cannot be made is no reason to lose what was measured.
        return None


def checks_first(engine: Engine) -> bool:
    version = engine.workload.engine_version
    return version is not None and facts.version_key(version) < facts.version_key(READY_CHECK)


def foreign(engines: Sequence[Engine], cells: Sequence[Cell]) -> list[str]:
    """Warnings about engines that others asked while they were measured."""
    found = []
    for engine in engines:
        mine = [cell for cell in cells if cell.arm == engine.name]
        asked, generated = sum(cell.output_tokens for cell in mine), sum(cell.counted.generated for cell in mine)
        # Older benchmarks ask once before they begin, which they do not count.
        checks = sum(max(cell.output_lens, default=0) for cell in mine) if checks_first(engine) else 0
        if asked and generated > asked * (1 + FOREIGN) + checks:
            found.append(
                f"engine {engine.name} generated {generated:,.0f} tokens, the benchmark asked for {asked:,}: "
                "somebody else used it meanwhile"
            )
    return found

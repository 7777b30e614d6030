"""Which engines are compared, and in which order they are asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specdec.bench import summary
from specdec.bench.document import Point
from specdec.deploy.targets import Engine, Release
from specdec.errors import SpecdecError, unknown


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
    """Every repeat asks all arms under all loads, in turn: A B, B A, B A, A B, ...

    Each second repeat is the mirror of the one before it, so that what drifts over the run falls on all arms alike;
    the arm that begins changes from pair to pair.
    """
    for repeat in range(1, repeats + 1):
        shift = (repeat - 1) // 2 % len(engines)
        turn = [*engines[shift:], *engines[:shift]]
        for point in points:
            for engine in turn if repeat % 2 else reversed(turn):
                yield Order(repeat, point, engine)

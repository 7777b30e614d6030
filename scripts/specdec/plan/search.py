"""The cheapest engine that keeps a time per output token: over GPU, tensor parallel size, quantisation, method, draft
and K."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specdec import facts
from specdec.errors import SpecdecError
from specdec.plan import catalogue, choose, cost, heads, memory, serving, speed
from specdec.plan.acceptance import Acceptance
from specdec.plan.checks import ENDS_ON, pair_findings
from specdec.plan.setup import Accelerator, Setup, Speculation, build
from specdec.plan.tasks import assumed
from specdec.plan.verdict import fits
from specdec.plan.weights import FORMATS

if TYPE_CHECKING:
    from specdec.plan.wishes import Wishes
    from specdec.plan.workloads import Planned

LOADS = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
# Findings that rule a candidate out: the engine ends at its start, or at a long prompt.
FATAL = ENDS_ON | {"SD227"}


@dataclass(frozen=True)
class Candidate:
    """One engine that fits and keeps the time: at its best load."""

    accelerator: str
    tp: int
    quantization: str
    method: str | None
    draft: str | None
    k: int
    batch: int
    tpot_ms: float
    tokens_per_second: float
    dollars_per_million: float
    machine: str
    provisioning: str

    def as_dict(self) -> dict[str, Any]:
        return {key: round(value, 4) if isinstance(value, float) else value for key, value in self.__dict__.items()}


@dataclass(frozen=True)
class Found:
    candidates: list[Candidate]
    tried: int


def search(planned: Planned, wishes: Wishes, target_tpot_ms: float) -> Found:
    """Ranked by dollars a million output tokens, on the engine's own cloud where it says which and no other is asked.

    Acceptance that was measured counts for the method that it was measured on.
    """
    base, cloud = planned.setup, wishes.cloud or planned.cloud
    found: list[Candidate] = []
    tried = 0
    for setup in setups(base, cloud):
        plan = memory.plan(setup)
        if not fits(plan, setup) or any(code in FATAL for code, _ in pair_findings(setup)):
            tried += 1
            continue
        try:
            price = cost.price(
                setup.accelerator.key,
                setup.tp,
                cloud=cloud,
                machine=wishes.machine,
                region=wishes.region,
                provisioning=wishes.provisioning,
                dollars_per_hour=wishes.dollars_per_hour,
            )
        except SpecdecError:
            tried += 1
            continue
        engine = speed.engine(setup, wishes.load)
        most = serving.capacity(engine, plan)
        accepted = acceptance(setup, base, wishes)
        for k in range(1, choose.most_tokens(setup) + 1) if accepted else (0,):
            if not choose.allowed(setup, k):
                continue
            tried += 1
            best = best_load(engine, accepted, k, most, target_tpot_ms)
            if best is None:
                continue
            spec = setup.speculation
            found.append(
                Candidate(
                    setup.accelerator.key,
                    setup.tp,
                    setup.format.name,
                    spec.method if spec else None,
                    spec.draft.name if spec and spec.draft else None,
                    k,
                    best.batch,
                    best.tpot_ms,
                    best.tokens_per_second,
                    price.per_million(best.tokens_per_second),
                    price.machine,
                    price.provisioning,
                )
            )
    found.sort(key=lambda c: (c.dollars_per_million, c.tpot_ms))
    return Found(found, tried)


def acceptance(setup: Setup, base: Setup, wishes: Wishes) -> Acceptance | None:
    spec = setup.speculation
    if spec is None:
        return None
    if (
        wishes.acceptance
        and base.speculation
        and base.speculation.method == spec.method
        and base.speculation.draft is spec.draft
    ):
        return wishes.acceptance
    return assumed(spec.method, wishes.task)


def best_load(
    engine: speed.Engine, accepted: Acceptance | None, k: int, most: int, limit_ms: float
) -> serving.Point | None:
    """The highest load that keeps the time per token: throughput rises with it, so the largest is the cheapest."""
    kept = None
    for batch in [b for b in LOADS if b <= most]:
        ms = engine.speculative_ms(batch, accepted, k) if accepted and k else engine.baseline_ms(batch)
        if ms > limit_ms:
            break
        kept = (batch, ms)
    if kept is None:
        return None
    return serving.point(engine, accepted, kept[0], kept[0], k, kept[1], "static" if k else "baseline", 0.0)


def setups(base: Setup, cloud: str | None) -> Iterator[Setup]:
    """Every engine to try: GPUs that the cloud has, tensor parallel sizes that divide the heads, formats, drafts."""
    clouds = facts.machines()
    sold = {m["accelerator"] for name, shapes in clouds.items() if cloud in (None, name) for m in shapes.values()}
    for key, row in facts.accelerators().items():
        if key not in sold:
            continue
        gpu = Accelerator.of(key, row)
        for tp in (1, 2, 4, 8):
            if base.target.heads % tp:
                continue
            for quantization in quantizations(base, gpu):
                for spec in speculations(base):
                    yield build(
                        base.target,
                        gpu,
                        version=base.version,
                        runner=runner_for(base, spec),
                        tp=tp,
                        utilisation=base.utilisation,
                        max_model_len=base.max_model_len,
                        max_num_seqs=base.max_num_seqs,
                        kv_dtype=base.kv_dtype,
                        quantization=quantization,
                        eager=base.eager,
                        speculation=spec,
                    )


def runs(method: str, base: Setup) -> bool:
    """Whether that version runs the method, on the image that there is: suffix decoding needs a package of its own."""
    row = facts.engines()["methods"].get(method, {})
    has = facts.in_range(row.get("rows", []), base.version) and not facts.in_range(row.get("notRun", []), base.version)
    return bool(has) and (method != "suffix" or (base.speculation is not None and base.speculation.method == "suffix"))


def runner_for(base: Setup, spec: Speculation | None) -> str:
    """The runner that the version takes for a method, where the base's was not chosen against its default."""
    told = base.speculation.method if base.speculation else None
    if base.runner != facts.default_runner(base.version, told):
        return base.runner
    return facts.default_runner(base.version, spec.method if spec else None)


def quantizations(base: Setup, gpu: Accelerator) -> list[str | None]:
    if base.format.name != "none" and base.target.quantization:
        return [None]
    return [None, "fp8", "awq"] if gpu.fp8 else [None, "awq"]


def speculations(base: Setup) -> list[Speculation | None]:
    """None, lookup, the draft of the manifest, the target's own prediction layers, and every known draft with the same
    vocabulary."""
    found: list[Speculation | None] = [None, Speculation("ngram", 3), Speculation("suffix", 3)]
    if base.speculation and base.speculation.draft:
        found.append(base.speculation)
    if layer := heads.mtp(base.target):
        found.append(Speculation("mtp", 1, layer, FORMATS["none"], draft_dtype=layer.dtype))
    found = [spec for spec in found if spec is None or runs(spec.method, base)]
    seen = {base.speculation.draft.name} if base.speculation and base.speculation.draft else set()
    for name in facts.models():
        model = catalogue.load(name)
        method = model.family if model.family in ("eagle", "eagle3", "medusa") else "draft_model"
        if (
            name in seen
            or not runs(method, base)
            or model.vocab != base.target.vocab
            or model.parameters * 6 > base.target.parameters
        ):
            continue
        if model.family in ("eagle", "eagle3", "medusa"):
            if (model.config.get("target_hidden_size") or model.hidden) == base.target.hidden:
                found.append(Speculation(model.family, 3, model, FORMATS["none"], draft_dtype=model.dtype))
        elif model.family == base.target.family and not model.quantization:
            found.append(Speculation("draft_model", 3, model, FORMATS["none"], draft_dtype=model.dtype))
    return found


def print_search(planned: Planned, wishes: Wishes, target_tpot_ms: float, *, as_json: bool, rows: int = 15) -> int:
    """0 where something keeps the time, 1 where nothing does."""
    from specdec import output

    found = search(planned, wishes, target_tpot_ms)
    if as_json:
        output.print_json(
            {
                "target_tpot_ms": target_tpot_ms,
                "tried": found.tried,
                "candidates": [c.as_dict() for c in found.candidates[:200]],
            }
        )
        return 0 if found.candidates else 1
    from rich.table import Table

    table = Table(
        "$ a million", "GPU", "TP", "weights", "method", "draft", "K", "requests", "ms a token", "tokens/s", "machine"
    )
    for c in found.candidates[:rows]:
        draft = (c.draft or "").rsplit("/", 1)[-1]
        table.add_row(
            f"{c.dollars_per_million:.2f}",
            c.accelerator,
            str(c.tp),
            "16 bit" if c.quantization == "none" else c.quantization,
            c.method or "none",
            draft,
            str(c.k or ""),
            str(c.batch),
            f"{c.tpot_ms:.1f}",
            f"{c.tokens_per_second:,.0f}",
            f"{c.machine}, {c.provisioning}",
        )
    out = output.console()
    out.print(table)
    out.print(
        f"{found.tried:,} tried, {len(found.candidates):,} fit and keep {target_tpot_ms:g} ms a token; acceptance"
        " assumed where not measured",
        markup=False,
    )
    return 0 if found.candidates else 1

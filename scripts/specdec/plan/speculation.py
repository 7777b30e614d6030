"""Speculation of any method, with its draft as a Model: from the engine's arguments or from plain words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from specdec import facts
from specdec.errors import SpecdecError, unknown
from specdec.plan import catalogue, heads
from specdec.plan.models import Model
from specdec.plan.setup import HEADS, WITHOUT_WEIGHTS, Speculation
from specdec.plan.weights import chosen_format

if TYPE_CHECKING:
    from specdec.manifests import EngineWorkload

DEFAULT_SUFFIX_TOKENS = 24
# Methods that an engine takes and the chart has no value for.
OTHER_METHODS = {"pard", "p_eagle"}


def speculation(
    engine: EngineWorkload, target: Model, configs: dict[str, Path] | None
) -> tuple[Speculation | None, list[tuple[str, str]]]:
    args = engine.args.speculative
    if args is None:
        return None, []
    k = args.num_speculative_tokens or max((tokens for _, _, tokens in args.schedule), default=0)
    return make_speculation(
        args.method,
        target,
        k=k,
        draft_name=args.model,
        draft_tp=args.draft_tensor_parallel_size,
        quantization=args.quantization,
        max_len=args.max_model_len,
        schedule=tuple(args.schedule),
        configs=configs,
        file=engine.manifest.file,
    )


def make_speculation(
    method: str,
    target: Model,
    *,
    k: int,
    draft_name: str | None = None,
    draft_tp: int | None = None,
    quantization: str | None = None,
    max_len: int | None = None,
    schedule: tuple[tuple[int, int, int], ...] = (),
    configs: dict[str, Path] | None = None,
    file: str | None = None,
    usual_head: bool = False,
) -> tuple[Speculation, list[tuple[str, str]]]:
    """Speculation of any method with its draft as a Model. Raises SpecdecError where the draft or K is missing or
    impossible."""
    warnings: list[tuple[str, str]] = []
    method = canonical(method)
    if method not in (known := facts.engines()["methods"]) and method not in OTHER_METHODS:
        raise unknown("method", method, known, file=file, path="speculative.method")
    draft: Model | None = None
    if method == "mtp":
        draft = heads.mtp(target) if draft_name in (None, target.name) else catalogue.load(str(draft_name), configs)
        if draft is None:
            raise SpecdecError(
                f"{target.name} has no multi-token prediction layers",
                code="SD224",
                file=file,
                path="speculative.method",
                fix="another method, or a head",
            )
    elif method not in WITHOUT_WEIGHTS and not draft_name and usual_head and (draft := heads.usual(method, target)):
        warnings.append(("SD226", f"no head is named: one of the usual shape for {target.name}"))
    elif method not in WITHOUT_WEIGHTS:
        if not draft_name:
            raise SpecdecError(
                f"the method {method} needs a draft",
                code="draft-missing",
                file=file,
                path="speculative.model.name",
                fix="name the draft model or head",
            )
        draft = catalogue.load(draft_name, configs)
        if method == "draft_model" and draft.family in ("eagle", "eagle3", "medusa"):
            method = draft.family
        if method in ("eagle", "eagle3") and draft.family in ("eagle", "eagle3"):
            method = draft.family if draft.family == "eagle3" else method
    if method == "suffix" and not k:
        k = DEFAULT_SUFFIX_TOKENS
    if k < 1 and not schedule:
        raise SpecdecError(
            f"{k} speculative tokens", code="SD222", file=file, path="speculative.numTokens", fix="1 or more"
        )
    most = draft.layers if method == "medusa" and draft else None
    if most and k > most:
        raise SpecdecError(
            f"{k} speculative tokens from a head that proposes {most}",
            code="SD222",
            file=file,
            path="speculative.numTokens",
            fix=f"at most {most}",
        )
    if method in HEADS and draft and draft.family == "mtp" and k > 1 and draft.layers and k % draft.layers:
        warnings.append(
            ("SD225", f"{k} speculative tokens from {draft.layers} prediction layers: the engine wants a multiple")
        )
    fmt = chosen_format(draft, quantization)[0] if draft else None
    return Speculation(method, k, draft, fmt, draft_tp, draft.dtype if draft else None, max_len, schedule), warnings


def canonical(method: str) -> str:
    """One name a method: `deepseek_mtp`, `qwen3_next_mtp`... are mtp; a bracketed or plain ngram is ngram."""
    name = method.strip("[]").lower().replace("-", "_")
    if name.endswith("_mtp") or name == "mtp":
        return "mtp"
    return {"eagle_3": "eagle3", "draft": "draft_model", "p_eagle": "eagle3", "mlp": "mlp_speculator"}.get(name, name)

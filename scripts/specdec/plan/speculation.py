"""Speculation of any method, with its draft as a Model: from the engine's arguments or from plain words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from specdec import facts
from specdec.errors import SpecdecError, unknown
from specdec.facts import version_key
from specdec.plan import catalogue, heads
from specdec.plan.models import Model
from specdec.plan.setup import WITHOUT_WEIGHTS, Speculation
from specdec.plan.weights import chosen_format

if TYPE_CHECKING:
    from specdec.manifests import EngineWorkload

DEFAULT_SUFFIX_TOKENS = 24
# The most drafts of a sequence that runner V1's sampler takes: (from, number)
# (vllm/v1/sample/rejection_sampler.py: MAX_SPEC_LEN). The other runners state none, and more helps nowhere.
SAMPLER_TAKES = ((version_key("0.11.0"), 128), (version_key("0.0"), 32))
MOST_TOKENS = SAMPLER_TAKES[0][1]
# Methods that an engine takes and the chart has no value for.
OTHER_METHODS = {"pard", "p_eagle"}


def speculation(
    engine: EngineWorkload, target: Model, configs: dict[str, Path] | None
) -> tuple[Speculation | None, list[tuple[str, str]]]:
    args = engine.args.speculative
    if args is None:
        return None, []
    k = args.num_speculative_tokens
    if k is None:
        k = max((tokens for _, _, tokens in args.schedule), default=None)
    for first, last, tokens in args.schedule:
        if not (1 <= first <= last and 0 <= tokens <= MOST_TOKENS):
            words = f"a schedule of {tokens} tokens for {first} to {last} requests"
            raise bad_k(
                words, engine.manifest.file, f"[first, last, tokens]: 1 <= first <= last, 0 to {MOST_TOKENS} tokens"
            )
    stated = args.raw.get("num_speculative_tokens")
    if k is None and stated is not None:
        raise bad_k(f"num_speculative_tokens is {stated!r}, not a whole number", engine.manifest.file)
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
    k: int | None,
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
    impossible. K None: what the method takes where it is told none."""
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
    elif not draft_name and not known.get(method, {}).get("needsModel", True) and (draft := heads.mtp(target)):
        pass  # layers of the target's own checkpoint, as DSpark's of DeepSeek
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
    if k is None:
        k = default_tokens(method, draft)
    if k is None:
        raise bad_k(f"num_speculative_tokens is missing, and {method} has no default", file)
    if k < 1 and not schedule:
        raise bad_k(f"{k} speculative tokens", file)
    if k > MOST_TOKENS:
        raise bad_k(f"{k} speculative tokens: the engine verifies at most {MOST_TOKENS} a step", file, "3 to 5")
    most = draft.layers if method == "medusa" and draft else None
    if most and k > most:
        raise bad_k(f"{k} speculative tokens from a head that proposes {most}", file, f"at most {most}")
    if method == "mtp" and draft and draft.layers and k > draft.layers and k % draft.layers:
        warnings.append(
            ("SD225", f"{k} speculative tokens from {draft.layers} prediction layers: the engine wants a multiple")
        )
    fmt = chosen_format(draft, quantization)[0] if draft else None
    return Speculation(method, k, draft, fmt, draft_tp, draft.dtype if draft else None, max_len, schedule), warnings


def bad_k(message: str, file: str | None, fix: str = "1 or more") -> SpecdecError:
    return SpecdecError(message, code="SD222", file=file, path="speculative.numTokens", fix=fix)


def default_tokens(method: str, draft: Model | None) -> int | None:
    """K where the engine is told none: the draft's own number (n_predict), or the suffix tree's depth."""
    if method == "suffix":
        return DEFAULT_SUFFIX_TOKENS
    if draft is None:
        return None
    if draft.family == "mtp" or method == "medusa":
        return draft.layers
    stated = draft.config.get("n_predict")
    return stated if isinstance(stated, int) else None


def canonical(method: str) -> str:
    """One name a method: `deepseek_mtp`, `qwen3_next_mtp`... are mtp; a bracketed or plain ngram is ngram."""
    name = method.strip("[]").lower().replace("-", "_")
    if name.endswith("_mtp") or name == "mtp":
        return "mtp"
    return {"eagle_3": "eagle3", "draft": "draft_model", "p_eagle": "eagle3", "mlp": "mlp_speculator"}.get(name, name)

"""Whether target and draft go together: vocabulary, hidden size, positions, tokenizer family, tensor parallel size,
token budget.

Findings are (code, message): warnings of a plan, and what validate's pair rules say. The engine's own checks are named.
"""

from __future__ import annotations

from specdec.facts import version_key, version_text
from specdec.plan.models import Model
from specdec.plan.setup import Setup, Speculation

Finding = tuple[str, str]
# The engine's own draft-model check compares the padded vocabulary sizes of the two configurations.
SAME_TP_FROM = version_key("0.15.1")
# Releases (their config/vllm.py) that hold back slots x max_num_seqs of the step's tokens for parallel drafting
# (vllm-project/vllm#50708).
SLOTS_FROM, SLOTS_BEFORE = version_key("0.17.0"), version_key("0.28.0")
# From this version the engine raises a head's positions to the target's (vllm-project/vllm#48894).
POSITIONS_FIXED_FROM = version_key("0.25.0")
# What the engine ends on at its start, of what is found here and in `workloads`.
ENDS_ON = {"SD108", "SD201", "SD221", "SD223", "SD225", "SD228", "SD230", "SD231", "SD336"}
NO_EAGLE3 = {"qwen3_next"}


def pair_findings(setup: Setup) -> list[Finding]:
    """Everything that keeps this pair from starting or from working well."""
    spec = setup.speculation
    if spec is None:
        return []
    found = [*pipeline(setup), *budget(setup, spec)]
    draft = spec.draft
    if draft is not None and spec.method != "mtp":
        found += [
            *vocabulary(setup.target, draft, spec),
            *hidden(setup.target, draft, spec),
            *positions(setup, draft, spec),
            *parallel(setup, spec),
        ]
        if spec.method == "draft_model":
            found += family(setup.target, draft)
    if spec.method == "eagle3" and setup.target.family in NO_EAGLE3:
        found.append(("SD223", f"{setup.target.name} ({setup.target.family}) has no EAGLE-3 interface in vLLM"))
    return found


def vocabulary(target: Model, draft: Model, spec: Speculation) -> list[Finding]:
    """Same vocab_size for a draft model; a head's too. EAGLE-3's own draft_vocab_size may be smaller."""
    if target.vocab == draft.vocab:
        return []
    gap = abs(target.vocab - draft.vocab)
    padded = " (padding alone: the tokenizer may be the same, but the engine compares these)" if gap <= 1024 else ""
    fix = (
        f"a draft with {target.vocab}, an EAGLE-3 head, or n-gram"
        if spec.method == "draft_model"
        else "a head trained for this target"
    )
    return [
        (
            "SD201",
            (
                f"vocabulary {target.vocab} of {target.name} and {draft.vocab} of {draft.name} differ by {gap}{padded}:"
                f" {fix}"
            ),
        )
    ]


def hidden(target: Model, draft: Model, spec: Speculation) -> list[Finding]:
    """A head reads the target's hidden states."""
    if spec.method not in ("eagle", "eagle3", "medusa"):
        return []
    states = draft.config.get("target_hidden_size") or draft.hidden
    if states == target.hidden:
        return []
    return [
        (
            "SD221",
            (
                f"{draft.name} reads hidden states of {states}, {target.name} has {target.hidden}: the head is another"
                " target's"
            ),
        )
    ]


def positions(setup: Setup, draft: Model, spec: Speculation) -> list[Finding]:
    """A head trained for fewer positions than max_model_len crashes the engine at the first longer prompt, in older
    versions."""
    longest = spec.draft_max_len or setup.max_model_len
    if not draft.max_positions or draft.max_positions >= longest or spec.method == "medusa":
        return []
    if spec.method in ("eagle", "eagle3") and setup.release >= POSITIONS_FIXED_FROM:
        return []
    if spec.method == "draft_model":
        # The engine drafts nothing for a request past these positions; the request itself goes on.
        return [
            (
                "SD227",
                f"{draft.name} knows {draft.max_positions} positions and max_model_len is {setup.max_model_len}: a"
                " longer request goes on without drafts, and gains nothing from there on",
            )
        ]
    told = f"{draft.name} knows {draft.max_positions} positions and max_model_len is {setup.max_model_len}"
    shorter = f"maxModelLen {draft.max_positions}, speculative.maxModelLen {draft.max_positions}"
    if spec.method in ("eagle", "eagle3"):
        fixed = version_text(POSITIONS_FIXED_FROM)
        return [
            ("SD227", f"{told}: a longer prompt crashes vLLM {setup.version}. {shorter}, or vLLM {fixed} and newer")
        ]
    return [("SD227", f"{told}: a longer prompt reads positions that the head does not have. {shorter}")]


def parallel(setup: Setup, spec: Speculation) -> list[Finding]:
    if not spec.draft_tp or spec.draft_tp == setup.tp:
        return []
    if spec.method == "draft_model" and setup.release >= SAME_TP_FROM:
        return [
            (
                "SD228",
                (
                    f"vLLM {setup.version} runs a draft model at the target's tensor parallel size {setup.tp} alone,"
                    f" not {spec.draft_tp}"
                ),
            )
        ]
    if spec.draft_tp not in (1, setup.tp):
        return [("SD228", f"a draft tensor parallel size of {spec.draft_tp}: 1 or {setup.tp}")]
    if setup.runner != "v0":
        return [
            (
                "SD229",
                f"a draft tensor parallel size of {spec.draft_tp} is ignored for a head: it is split over {setup.tp}",
            )
        ]
    return []


def pipeline(setup: Setup) -> list[Finding]:
    if setup.pp > 1:
        return [("SD230", "no vLLM version runs speculation with pipeline parallelism")]
    return []


def budget(setup: Setup, spec: Speculation) -> list[Finding]:
    """Tokens of a step that parallel drafting leaves to the scheduler."""
    if not SLOTS_FROM <= setup.release < SLOTS_BEFORE:
        return []
    # SpeculativeConfig.max_num_new_slots_for_drafting: one a masked token in parallel drafting, one more for a
    # draft model.
    slots = {"dflash": spec.k - 1, "dspark": spec.k - 1, "p_eagle": spec.k - 1, "pard": spec.k, "draft_model": 1}.get(
        spec.method, 0
    )
    left = setup.max_num_batched_tokens - slots * setup.max_num_seqs
    if slots and left <= 0:
        need = slots * setup.max_num_seqs + 8192
        return [("SD231", f"max_num_scheduled_tokens would be {left}: maxNumBatchedTokens {need} or fewer maxNumSeqs")]
    return []


def family(target: Model, draft: Model) -> list[Finding]:
    """Equal sizes are needed and not enough: families of models rarely share a tokenizer."""
    known = tokenizer(target), tokenizer(draft)
    if None in known or known[0] == known[1] or target.vocab != draft.vocab:
        return []
    return [("SD232", f"{target.name} and {draft.name} are of different tokenizer families ({known[0]}, {known[1]})")]


TOKENIZERS = {
    "llama": None,
    "qwen2": "qwen",
    "qwen3": "qwen",
    "qwen2_moe": "qwen",
    "qwen3_moe": "qwen",
    "gemma3": "gemma",
    "gemma3_text": "gemma",
    "gpt_oss": "harmony",
}


def tokenizer(model: Model) -> str | None:
    if model.family == "llama":
        return {128256: "llama3", 32000: "llama2"}.get(model.vocab)
    return TOKENIZERS.get(model.family)

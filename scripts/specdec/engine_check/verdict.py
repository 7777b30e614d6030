"""Whether chart and engine say the same of a case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from specdec import facts
from specdec.engine_check.chart import Ours


class Verdict(StrEnum):
    both_take = "taken by both"
    both_refuse = "refused by both"
    later = "refused here for what comes after the parser"
    unasked = "could not be asked"
    differ = "differ"


@dataclass(frozen=True)
class Theirs:
    """The engine's answer, as `ask.py` gives it."""

    stage: str
    message: str = ""
    kind: str = ""
    fields: dict[str, Any] | None = None
    dropped: Sequence[str] = ()

    @property
    def taken(self) -> bool:
        return self.stage == "done"


@dataclass(frozen=True)
class Judged:
    name: str
    verdict: Verdict
    why: str
    ours: Ours
    theirs: Theirs


# The engine turns it into rates by position and forgets it.
CONVERTED = ("synthetic_acceptance_length",)
# What an engine that takes the arguments does with them afterwards, by our code for it.
LATER = {
    "SD156": "which of two values holds depends on their order",
    "SD157": "the model runner lacks the method",
    "SD160": "pipeline stages and speculation do not run together",
    "SD163": "requests with an adapter fail",
    "SD165": "the engine does nothing with the value",
    "SD252": "the engine does nothing with the model",
    "SD254": "the engine does nothing with the value",
    "SD256": "tool calls come out corrupt",
    "SD257": "the package is imported when the engine starts to decode",
    "SD258": "the engine does nothing with the value",
    "SD260": "the engine fills the gap without a word",
    "SD261": "the engine cuts the step without a word",
    "SD262": "the engine drops the schedule, or its ranks wait for each other",
    "SD264": "the runner drops the schedule",
    "SD269": "the runner does nothing with the value",
}
# A value that the version has nothing for, or no such choice of.
MISSING = ("SD154", "SD164")
# A CPU build says no for itself, and not for the version.
ABOUT_THE_MACHINE = re.compile(
    r"\bcpu\b|\bcuda\b|\bgpus?\b|\bdevices?\b|platform|triton|nccl|\bnot compiled\b", re.IGNORECASE
)


def judge(name: str, ours: Ours, theirs: Theirs, version: str, method: str) -> Judged:
    """`method` is the case's: some versions take one that they do not run, which engines.yaml tells."""
    verdict, why = _judged(ours, theirs, version, method)
    return Judged(name, verdict, why, ours, theirs)


def _judged(ours: Ours, theirs: Theirs, version: str, method: str) -> tuple[Verdict, str]:
    refused = bool(ours.code)
    missing = theirs.kind in ("ImportError", "ModuleNotFoundError")
    if theirs.kind == "Timeout":
        return Verdict.unasked, theirs.message
    if refused and not theirs.taken:
        return Verdict.both_refuse, f"{ours.code}; {theirs.stage}: {theirs.message}"
    if not refused and theirs.taken:
        changed = [f"{key} becomes {value!r}" for key, value in changes(ours, theirs)]
        changed += [f"{key} is dropped without a word" for key in theirs.dropped]
        return (Verdict.differ, "; ".join(changed)) if changed else (Verdict.both_take, "")
    if not refused:
        if missing or _is_of_the_machine(theirs.message, version, method):
            return Verdict.unasked, theirs.message
        return Verdict.differ, f"rendered, and the engine refuses ({theirs.stage}): {theirs.message}"
    reason = _later(ours.code, version, method)
    if theirs.dropped and ours.code in MISSING:
        reason = f"the engine drops {', '.join(theirs.dropped)} without a word"
    if reason:
        return Verdict.later, f"{ours.code}: {reason}"
    return Verdict.differ, f"the engine takes it, and we refuse: {ours.code} {ours.message}"


def _is_of_the_machine(message: str, version: str, method: str) -> bool:
    """Whether a GPU would not have said it: a CPU also has a model runner of its own choice."""
    on_gpu, on_cpu = (facts.default_runner(version, method, cpu) for cpu in (False, True))
    return bool(ABOUT_THE_MACHINE.search(message)) or ("Model Runner" in message and on_gpu != on_cpu)


def _later(code: str, version: str, method: str) -> str:
    known = facts.engines()["methods"].get(method, {})
    if code in ("SD155", "SD108", "SD109"):
        row = next(iter(facts.in_range(known.get("notRun", []), version)), None)
        return f"{method} is taken and then {row['does']}" if row else ""
    if code == "SD263":
        rows = facts.in_range(facts.engines()["limits"]["draftTensorParallelSize"], version)
        own = any(isinstance(row["methods"], list) and method in row["methods"] for row in rows)
        return "the draft's worker wants the target's size" if own else ""
    return LATER.get(code, "")


def changes(ours: Ours, theirs: Theirs) -> list[tuple[str, Any]]:
    """Fields that the engine holds otherwise than they were given; a method may be put in its general name."""
    from specdec.engine_check.chart import given_fields

    held = theirs.fields or {}
    return [
        (key, held[key])
        for key, value in given_fields(ours.argv).items()
        if key in held and key not in ("method", *CONVERTED) and not _same(value, held[key])
    ]


def _same(given: Any, held: Any) -> bool:
    if isinstance(given, dict) or (isinstance(held, str) and not isinstance(given, str)):
        return True  # an object of the engine's own
    return bool(given == held)

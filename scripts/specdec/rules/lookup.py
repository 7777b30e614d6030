"""SD119 to SD121: n-gram matches, and a schedule that the engine drops."""

from __future__ import annotations

from collections.abc import Iterator

from specdec.manifests import EngineWorkload
from specdec.rules.model import Problem, Severity, each_engine, rule
from specdec.rules.speculation import CONFIG, example, place, speculation
from specdec.rules.versions import limit

SCHEDULE = (
    '{"method": "ngram", "num_speculative_tokens": 4, '
    '"num_speculative_tokens_per_batch_size": [[1, 16, 4], [17, 64, 2]]}'
)


@rule(
    "SD119",
    "prompt-lookup-window",
    Severity.error,
    reason="Matches have at least one token, and the shortest cannot be longer than the longest; the engine refuses "
    "anything else.",
    fix="1 <= prompt_lookup_min <= prompt_lookup_max",
    source=CONFIG,
    bad=example('{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 5, "prompt_lookup_max": 3}'),
    good=example('{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 3, "prompt_lookup_max": 5}'),
)
@each_engine
def prompt_lookup_window(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    low, high = (asked.prompt_lookup_min, asked.prompt_lookup_max) if asked else (None, None)
    for name, value in (("prompt_lookup_min", low), ("prompt_lookup_max", high)):
        if value is not None and value < 1:
            yield Problem(engine.manifest, place(engine, name), f"{name} is {value}")
    if low is not None and high is not None and low > high:
        message = f"prompt_lookup_min {low} is above prompt_lookup_max {high}"
        yield Problem(engine.manifest, place(engine, "prompt_lookup_min"), message)


@rule(
    "SD120",
    "short-lookup-with-tools",
    Severity.warning,
    reason="Short n-gram matches have corrupted tool calls: with a minimum of 2 about half of them, with 8 none.",
    fix='"prompt_lookup_min": 8, or another method where tools are called',
    source="vllm-project/vllm#40875, #56077",
    bad=example(
        '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}',
        "--enable-auto-tool-choice",
        "--tool-call-parser=hermes",
    ),
    good=example(
        '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 8, "prompt_lookup_max": 12}',
        "--enable-auto-tool-choice",
        "--tool-call-parser=hermes",
    ),
)
@each_engine
def short_lookup_with_tools(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    if asked is None or asked.method not in ("ngram", "ngram_gpu") or not engine.args.has("--enable-auto-tool-choice"):
        return
    low = asked.prompt_lookup_min if asked.prompt_lookup_min is not None else asked.prompt_lookup_max
    if low is None or low < 8:
        shortest = "the engine's default" if low is None else str(low)
        message = f"tool calls with n-gram matches from {shortest} tokens on"
        yield Problem(engine.manifest, place(engine, "prompt_lookup_min"), message)


@rule(
    "SD121",
    "schedule-with-data-parallel",
    Severity.warning,
    reason="With data parallelism inside the pod the engine drops the schedule with a line in its log, and drafts as "
    "many tokens at every batch size.",
    fix="--data-parallel-size 1 and more replicas, or no schedule",
    source="vllm/config/vllm.py: dynamic speculative decoding",
    bad=example(SCHEDULE, "--data-parallel-size=2", gpus=2),
    good=example(SCHEDULE),
)
@each_engine
def schedule_with_data_parallel(engine: EngineWorkload) -> Iterator[Problem]:
    asked = speculation(engine)
    dropped = any(row.get("allowed") is False for row in limit("scheduleDataParallel", engine.engine_version))
    if asked and asked.schedule and engine.args.data_parallel_size > 1 and dropped:
        path = place(engine, "num_speculative_tokens_per_batch_size")
        yield Problem(engine.manifest, path, "the engine drops this schedule")

"""What an engine's log tells a person who waits, and a person whose engine has stopped."""

from __future__ import annotations

import pytest
from specdec.deploy import phases

P = "(EngineCore_DP0 pid=193) INFO 11-29 13:40:02 "


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        (P + "[core.py:134] Initializing a V1 LLM engine (v0.32.0) with config: model='m'", "starting the engine"),
        (P + "[gpu_model_runner.py:5040] Starting to load model /models/target...", "loading /models/target"),
        (
            "Loading safetensors checkpoint shards:  40% Completed | 12/30 [01:10<01:44,  5.8s/it]",
            "loading weights 40%",
        ),
        ("Loading pt checkpoint shards:   0% Completed | 0/1 [00:00<?, ?it/s]", "loading weights 0%"),
        (P + "[default_loader.py:502] Loading weights took 3.21 seconds", "weights loaded in 3.21 s"),
        (
            P + "[gpu_model_runner.py:5150] Model loading took 33.9 GiB memory and 70.1 seconds",
            "model loaded, 33.9 GiB",
        ),
        (P + "[gpu_worker.py:760] Available KV cache memory: 31.42 GiB", "KV cache 31.42 GiB"),
        (P + "[kv_cache_utils.py:2328] GPU KV cache size: 411,824 tokens", "KV cache of 411,824 tokens"),
        (
            "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  36%|███▌      | 24/67",
            "capturing CUDA graphs 36%",
        ),
        (P + "[gpu_model_runner.py:6582] Graph capturing finished in 12 secs, took 0.84 GiB", "CUDA graphs captured"),
        ("INFO:     Application startup complete.", "serving"),
    ],
)
def test_each_step_of_the_start_is_recognised(line: str, phase: str) -> None:
    assert phases.phase_of(["something else", line]) == phase


def test_the_latest_phase_counts_even_when_other_lines_follow() -> None:
    lines = ["Loading safetensors checkpoint shards:  20% Completed", "INFO Loading weights took 9.1 seconds", "noise"]
    assert phases.phase_of(lines) == "weights loaded in 9.1 s"


def test_a_progress_bar_is_at_its_last_state() -> None:
    bar = "\r".join(f"Loading safetensors checkpoint shards:  {percent}% Completed" for percent in (0, 50, 75))
    assert phases.phase_of([bar]) == "loading weights 75%"


def test_a_log_without_any_phase_has_none() -> None:
    assert phases.phase_of(["hello"]) is None


def test_the_cause_comes_before_the_error_that_only_reports_it() -> None:
    error = "(EngineCore_DP0 pid=9) ERROR 11-29 13:40:02 [core.py:1201] "
    lines = [
        error + "Traceback (most recent call last):",
        error + "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.",
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed proc(s): {}",
    ]
    assert phases.causes(lines) == [
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`."
    ]
    assert phases.hopeless(lines)


def test_an_argument_that_the_version_lacks_is_the_cause() -> None:
    lines = ["usage: api_server.py [-h]", "api_server.py: error: unrecognized arguments: --num-speculative-tokens 4"]
    assert phases.causes(lines) == ["error: unrecognized arguments: --num-speculative-tokens 4"]
    assert phases.hopeless(lines)


def test_a_validation_error_brings_the_lines_that_say_what_is_wrong() -> None:
    lines = [
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for SpeculativeConfig",
        "  Value error, num_speculative_tokens must be provided [type=value_error]",
        "    For further information visit https://errors.pydantic.dev",
    ]
    assert "num_speculative_tokens must be provided" in phases.causes(lines)[0]


def test_a_download_that_failed_may_be_tried_again() -> None:
    assert not phases.hopeless(["OSError: We couldn't connect to 'https://huggingface.co' to load the files"])


def test_colours_of_a_log_are_not_shown() -> None:
    line = "\x1b[2m2026-11-29 14:28:47\x1b[0m \x1b[32m INFO\x1b[0m no worker yet"
    assert phases.last_line([line]) == "2026-11-29 14:28:47  INFO no worker yet"


def test_the_last_line_comes_without_the_engines_prefix() -> None:
    assert phases.last_line([P + "[loader.py:1] fetching  3 of 9 files", "", "   "]) == "fetching  3 of 9 files"

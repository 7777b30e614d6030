"""Engines over several GPUs: what data-parallel replicas and pipeline stages share, and what each has of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from specdec.plan import memory, serving, speed
from specdec.plan.setup import Setup
from specdec.plan.weights import GIB

from .engines import manifest

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
DEEPSEEK = "deepseek-ai/DeepSeek-V3"


def test_experts_are_divided_over_replicas_and_the_rest_is_not(setup: Callable[..., Setup]) -> None:
    """DeepSeek-V3: 58 layers of 256 experts of 3 x 7168 x 2048 bytes, 609 GiB; DP 8 holds an eighth of them a GPU."""
    experts = 58 * 256 * 3 * 7168 * 2048 / GIB
    one = memory.plan(setup(DEEPSEEK, key="h200-141gb")).ranks[0].target_weights
    each = memory.plan(setup(DEEPSEEK, key="h200-141gb", dp=8)).ranks[0].target_weights
    assert one - each == pytest.approx(experts * 7 / 8, rel=0.005)
    assert 90 < each < 97


def test_deepseek_over_eight_replicas_fits(run: Any, tmp_path: Path) -> None:
    file = manifest(tmp_path, DEEPSEEK, "--data-parallel-size=8", "--enable-expert-parallel", gpus=8)
    code, out, _ = run("plan", file, "--accelerator", "h200-141gb", "--format", "json")
    doc = json.loads(out)
    assert (code, doc["fits"], doc["gpus"], doc["data_parallel_size"]) == (0, True, 8, 8)
    assert "8 x h200-141gb (DP 8)" in run("plan", file, "--accelerator", "h200-141gb")[1]


def test_a_dense_model_is_copied(setup: Callable[..., Setup]) -> None:
    one, two = (memory.plan(setup(LLAMA, dp=dp)) for dp in (1, 2))
    assert one.ranks[0] == two.ranks[0]


@pytest.mark.parametrize("sizes", [{"dp": 2}, {"pp": 2}])
def test_two_batches_run_at_once(setup: Callable[..., Setup], sizes: dict[str, int]) -> None:
    alone, shared = speed.engine(setup(LLAMA)), speed.engine(setup(LLAMA, **sizes))
    assert shared.baseline_ms(64) == pytest.approx(alone.baseline_ms(32))
    assert shared.baseline_ms(1) == pytest.approx(alone.baseline_ms(1)), "a single request goes no faster"


def test_two_replicas_hold_and_yield_twice_as_much(setup: Callable[..., Setup]) -> None:
    def point(dp: int, batch: int) -> serving.Point:
        built = setup(LLAMA, dp=dp, max_num_seqs=512)
        engine = speed.engine(built)
        assert serving.capacity(engine, memory.plan(built)) == 512 * dp
        return serving.point(engine, None, batch, batch, 0, engine.baseline_ms(batch), "baseline", 0.0)

    assert point(2, 128).tokens_per_second == pytest.approx(2 * point(1, 64).tokens_per_second)
    assert point(2, 128).ttft_ms == pytest.approx(point(1, 64).ttft_ms)


def test_twice_the_gpus_under_twice_the_load_cost_the_same_a_token(run: Any, tmp_path: Path) -> None:
    one = manifest(tmp_path, LLAMA, "--max-model-len=8192", name="one")
    two = manifest(tmp_path, LLAMA, "--max-model-len=8192", "--data-parallel-size=2", gpus=2, name="two")
    costs = []
    for file, load in ((one, 32), (two, 64)):
        doc = json.loads(run("plan", file, "--format", "json")[1])
        costs.append({r["concurrency"]: r["baseline"] for r in doc["cost"]["per_million_output_tokens"]}[load])
    assert costs[0] == pytest.approx(costs[1], rel=1e-3)


def test_replicas_of_a_mixture_share_its_experts(setup: Callable[..., Setup]) -> None:
    """One request each: the exchange of tokens costs. Many each: a replica reads only its own experts."""
    alone, two, eight = (speed.engine(setup("Qwen/Qwen3-30B-A3B", dp=dp)) for dp in (1, 2, 8))
    assert two.baseline_ms(2) > alone.baseline_ms(1)
    assert eight.baseline_ms(8 * 64) < two.baseline_ms(2 * 64) < alone.baseline_ms(64)

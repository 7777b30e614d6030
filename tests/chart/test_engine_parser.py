"""The real engine's own parser takes what the chart renders for it, and understands what the values say."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from specdec.engine_check.run import check
from specdec.engine_check.verdict import Verdict

from .conftest import ENVIRONMENTS, ROOT, SCENARIOS

PYTHON = Path(os.environ.get("SPECDEC_ENGINE_PYTHON", ROOT / ".tools" / "engine" / "bin" / "python"))
OF_0_32 = [name for name in SCENARIOS + ENVIRONMENTS if name not in ("seed-0.6.3", "speculation")]

pytestmark = [
    pytest.mark.skipif(not PYTHON.exists(), reason=f"no engine at {PYTHON}: make setup, or SPECDEC_ENGINE_PYTHON"),
    # Importing the engine takes a while: one process for all.
    pytest.mark.xdist_group("engine-parser"),
]


def of_0_32(rendering) -> list[str]:
    """Its engines of that version; some scenarios are for others."""
    annotations = {
        name: rendering.workload(name)["spec"]["template"]["metadata"]["annotations"] for name in rendering.engines()
    }
    return [name for name, told in annotations.items() if told["vllm-speculative/engine-version"] == "0.32.0"]


@pytest.fixture(scope="module")
def engine(render) -> dict[str, Any]:
    lists = {}
    for scenario in OF_0_32:
        rendering = render(scenario)
        for name in of_0_32(rendering):
            lists[f"{scenario}/{name}"] = rendering.args(name)
    script = Path(__file__).with_name("engine_parser.py")
    environment = {**os.environ, "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
    done = subprocess.run(
        [str(PYTHON), str(script)],
        input=json.dumps(lists),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("scenario", OF_0_32)
def test_it_takes_every_scenario(engine, render, scenario):
    rendering = render(scenario)
    for name in of_0_32(rendering):
        parsed = engine["parsed"][f"{scenario}/{name}"]
        assert parsed["model"] == rendering.flag("--model", name)
        assert parsed["port"] == 8000
        speculation = rendering.speculation(name) if "--speculative-config" in rendering.args(name) else None
        assert parsed["speculative_config"] == speculation
        assert set(speculation or {}) <= set(engine["fields"])


def test_it_understands_the_pair_as_the_values_say(engine):
    parsed = engine["parsed"]["h100-draft-model/speculative"]
    assert parsed["model"] == "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic"
    assert parsed["revision"] == "ddb4128556dfcff99e0c41aee159ea6c3e655dcd"
    assert parsed["served_model_name"] == ["llama-3.3-70b"]
    assert parsed["tensor_parallel_size"] == 2
    assert parsed["max_model_len"] == 16384
    assert parsed["gpu_memory_utilization"] == 0.9
    assert parsed["trust_remote_code"] is False
    assert parsed["shutdown_timeout"] == 60
    assert parsed["speculative_config"] == {
        "method": "draft_model",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "revision": "0e9e39f249a16976918f6564b8830bc894c89659",
        "quantization": "fp8",
        "num_speculative_tokens": 4,
        "num_speculative_tokens_per_batch_size": [[1, 16, 4], [17, 64, 2], [65, 128, 1]],
    }


def test_it_understands_the_cpu_pair(engine):
    parsed = engine["parsed"]["local/speculative"]
    assert parsed["kv_cache_memory_bytes"] == 1073741824
    assert parsed["enforce_eager"] is True
    assert parsed["speculative_config"]["model"] == "/models/draft"
    assert engine["parsed"]["local/speculative-baseline"]["speculative_config"] is None


def test_it_accepts_and_refuses_what_we_do():
    """About 180 cases: each method, each typed value, limits, bad values. `make engines-check` asks other versions."""
    judged = check("0.32.0", PYTHON)
    counts = Counter(each.verdict for each in judged)
    print(f"vLLM 0.32.0, {len(judged)} cases:", ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict))
    assert [(each.name, each.why) for each in judged if each.verdict is Verdict.differ] == []
    assert counts[Verdict.both_take] >= 80
    assert counts[Verdict.both_refuse] >= 40

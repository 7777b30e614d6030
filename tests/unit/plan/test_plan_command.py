"""`specdec plan` and its neighbours as a person types them: the JSON form, the refusals, the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

SEED = Path(__file__).parents[2] / "data" / "seed-statefulset.yaml"


def manifest(
    tmp_path: Path,
    *arguments: str,
    image: str = "vllm/vllm-openai:v0.32.0",
    gpus: int = 1,
    accelerator: str | None = "h100-80gb",
) -> str:
    """One engine as a Deployment."""
    container = {
        "name": "vllm",
        "image": image,
        "args": list(arguments),
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    template: dict[str, Any] = {"spec": {"containers": [container]}}
    if accelerator:
        template["metadata"] = {"annotations": {"vllm-speculative/accelerator": accelerator}}
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "engine"},
        "spec": {"replicas": 2, "template": template},
    }
    file = tmp_path / "engine.yaml"
    file.write_text(yaml.safe_dump(document))
    return str(file)


EAGLE3 = json.dumps({"method": "eagle3", "model": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "num_speculative_tokens": 3})


def test_the_json_form(run: Any, tmp_path: Path) -> None:
    file = manifest(
        tmp_path, "--model=meta-llama/Llama-3.1-8B-Instruct", f"--speculative-config={EAGLE3}", "--max-model-len=2048"
    )
    code, out, _ = run("plan", file, "--format", "json", "--acceptance", "0.7,0.45,0.3")
    doc = json.loads(out)
    assert code == 0
    assert doc["fits"] is True
    assert doc["reasons"] == []
    assert doc["engine_version"] == "0.32.0"
    rank = doc["ranks"][0]
    assert set(rank) >= {
        "total_gib",
        "budget_gib",
        "target_weights_gib",
        "draft_weights_gib",
        "activation_gib",
        "non_torch_gib",
        "cuda_graph_gib",
        "kv_cache_gib",
        "band_gib",
    }
    assert rank["band_gib"][0] < rank["kv_cache_gib"] < rank["band_gib"][1]
    assert doc["kv_bytes_per_token"] == 131_072 + 4_096
    assert doc["max_concurrency"] == pytest.approx(doc["kv_cache_tokens"] / 2048, abs=0.01)
    assert {row["batch"] for row in doc["speed"]} == {1, 16, 64, 128}
    assert {row["arm"] for row in doc["speed"]} >= {"baseline", "static"}
    assert all(set(row) >= {"batch", "arm", "method", "k", "tpot_ms", "speedup"} for row in doc["speed"])
    assert doc["num_speculative_tokens"]["static"] >= 1
    assert doc["cost"]["per_million_output_tokens"]
    assert doc["startup_seconds"] == pytest.approx((16_060_522_496 + 850_000_000) / 0.2e9 + 90, rel=0.01)


def test_the_articles_manifest_does_not_fit_and_its_claims_are_held_against_arithmetic(
    run: Any, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    code, _, _ = run("plan", str(SEED), "--format", "html", "--output", str(page))
    assert code == 1
    text = page.read_text()
    for figure in ("65.7", "7.5", "72.8", "= 40 requests in flight", "= 21", "3.97", "cannot all hold", "Unverified"):
        assert figure in text
    code, out, _ = run("plan", str(SEED), "--format", "json")
    doc = json.loads(out)
    assert (code, doc["fits"]) == (1, False)
    assert [(r["target_weights_gib"], r["draft_weights_gib"]) for r in doc["ranks"]] == [(65.74, 7.51)] * 2


def test_with_fp8_weights_it_fits(run: Any, tmp_path: Path) -> None:
    document = yaml.safe_load_all(SEED.read_text())
    documents = [d for d in document if d]
    engine = next(d for d in documents if d["kind"] == "StatefulSet")
    engine["spec"]["template"]["spec"]["containers"][0]["args"] += ["--quantization", "fp8"]
    file = tmp_path / "fp8.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    code, out, _ = run("plan", str(file), "--format", "json")
    assert (code, json.loads(out)["fits"]) == (0, True)


def test_a_plan_of_several_engines_is_a_map(run: Any, tmp_path: Path) -> None:
    one = manifest(tmp_path, "--model=meta-llama/Llama-3.1-8B-Instruct", "--max-model-len=4096")
    documents = [yaml.safe_load(Path(one).read_text()) for _ in range(2)]
    documents[1]["metadata"]["name"] = "other"
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    code, out, _ = run("plan", str(file), "--format", "json")
    assert code == 0
    assert len(json.loads(out)["engines"]) == 2


LLAMA = "--model=meta-llama/Llama-3.1-8B-Instruct"
REFUSED = [
    (["--model=nobody/has-this-one"], {}, "unknown-model"),
    ([LLAMA, "--tensor-parallel-size=3"], {"gpus": 3}, "SD321"),
    ([LLAMA, "--tensor-parallel-size=4"], {"gpus": 2}, "SD322"),
    ([LLAMA, "--gpu-memory-utilization=1.2"], {}, "SD301"),
    ([LLAMA, '--speculative-config={"method":"eagle3","num_speculative_tokens":3}'], {}, "draft-missing"),
    ([LLAMA, '--speculative-config={"method":"mtp","num_speculative_tokens":1}'], {}, "SD224"),
    ([LLAMA, '--speculative-config={"method":"ngram","num_speculative_tokens":0}'], {}, "SD222"),
    ([LLAMA, '--speculative-config={"method":"warp","num_speculative_tokens":3}'], {}, "unknown-method"),
    ([LLAMA, "--max-num-seqs=0"], {}, "SD326"),
    ([LLAMA, "--max-model-len=0"], {}, "SD326"),
    ([LLAMA, "--kv-cache-dtype=fp3"], {}, "unknown-kv-dtype"),
    ([LLAMA, "--quantization=fp1"], {}, "unknown-quantization"),
    ([LLAMA, "--dtype=int9"], {}, "unknown-dtype"),
    ([LLAMA, "--tensor-parallel-size=4", "--pipeline-parallel-size=2"], {"gpus": 4}, "SD322"),
    ([LLAMA], {"accelerator": "h900"}, "unknown-accelerator"),
    ([LLAMA], {"image": "vllm/vllm-openai:latest"}, "version-unknown"),
]


@pytest.mark.parametrize(("arguments", "rest", "code"), REFUSED)
def test_what_cannot_be_planned_is_refused(
    run: Any, tmp_path: Path, arguments: list[str], rest: dict[str, Any], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    exit_code, out, err = run("plan", manifest(tmp_path, *arguments, **rest), "--format", "json")
    error = json.loads(err)["error"]
    assert (exit_code, error["code"]) == (2, code)
    assert error["message"]
    assert error["fix"] or code == "bad-arguments"
    assert out == ""


def test_an_a10g_on_gke_is_answered_with_the_l4(run: Any, tmp_path: Path) -> None:
    code, _, err = run("plan", manifest(tmp_path, LLAMA, accelerator="a10g"), "--cloud", "gke", "--format", "json")
    error = json.loads(err)["error"]
    assert (code, error["code"]) == (2, "SD330")
    assert "L4" in error["fix"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--machine", "a3-highgpu-8g", "--cloud", "gke", "--region", "mars"], "price-missing"),
        (["--machine", "a3-highgpu-2g", "--provisioning", "on_demand"], "bad-provisioning"),
        (["--machine", "a3-hugegpu"], "unknown-machine"),
        (["--acceptance", "0.5,0.9"], "rising-acceptance"),
        (["--acceptance", "1.5"], "bad-acceptance"),
        (["--concurrency", "0"], "bad-number"),
        (["--input-len", "-5"], "bad-number"),
        (["--prefix-hits", "2"], "bad-number"),
        (["--task", "poetry"], "unknown-task"),
        (["--price", "-1"], "bad-number"),
        (["--sale", "0"], "bad-number"),
        (["--search", "--target-tpot", "0"], "bad-number"),
        (["--input-len", "200000"], "SD335"),
        (["--model-config", "x"], "usage"),
    ],
)
def test_options_that_cannot_be(run: Any, tmp_path: Path, options: list[str], code: str) -> None:
    file = manifest(tmp_path, LLAMA, '--speculative-config={"method":"ngram","num_speculative_tokens":3}')
    exit_code, _, err = run("plan", file, *options, "--format", "json")
    assert (exit_code, json.loads(err)["error"]["code"]) == (2, code)


def test_a_price_that_is_given_is_used(run: Any, tmp_path: Path) -> None:
    file = manifest(tmp_path, LLAMA)
    documents = [
        json.loads(run("plan", file, "--machine", "a3-highgpu-1g", "--price", p, "--format", "json")[1])
        for p in ("3", "6")
    ]
    per_token = [d["cost"]["per_million_output_tokens"][0]["baseline"] for d in documents]
    assert per_token[1] == pytest.approx(2 * per_token[0], rel=1e-3)
    speed = next(
        r
        for r in documents[0]["curve"]
        if r["batch"] == documents[0]["cost"]["per_million_output_tokens"][0]["concurrency"]
    )
    assert per_token[0] == pytest.approx(3 / (speed["tokens_per_second"] * 3600) * 1e6, rel=1e-2)


def test_the_search_ranks_by_cost_and_keeps_the_time(run: Any, tmp_path: Path) -> None:
    code, out, _ = run(
        "plan", manifest(tmp_path, LLAMA, "--max-model-len=4096"), "--search", "--target-tpot", "15", "--format", "json"
    )
    found = json.loads(out)
    costs = [c["dollars_per_million"] for c in found["candidates"]]
    assert code == 0
    assert found["tried"] > 1000
    assert costs == sorted(costs)
    assert all(c["tpot_ms"] <= 15 for c in found["candidates"])
    assert run("plan", manifest(tmp_path, LLAMA), "--search", "--target-tpot", "0.01")[0] == 1


def test_the_choice_is_written_into_values_and_comments_stay(run: Any, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("# ours\nspeculative:\n  numTokens: 9 # too many\n")
    file = manifest(tmp_path, LLAMA, f"--speculative-config={EAGLE3}", "--max-model-len=2048")
    code, out, _ = run("plan", file, "--write", str(values), "--acceptance", "0.6,0.3,0.1", "--format", "json")
    assert code == 0
    text = values.read_text()
    assert text.startswith("# ours\n")
    written = yaml.safe_load(text)["speculative"]
    tokens = json.loads(out)["num_speculative_tokens"]
    assert written["numTokens"] in {tokens["static"], *(r["tokens"] for r in tokens["schedule"])}


def test_speed_from_one_measured_point(run: Any) -> None:
    code, out, _ = run(
        "speed",
        "--target",
        "meta-llama/Llama-3.1-8B-Instruct",
        "--accelerator",
        "h100-80gb",
        "--tp",
        "1",
        "--method",
        "eagle",
        "--draft",
        "yuhuili/EAGLE-LLaMA3.1-Instruct-8B",
        "--k",
        "3",
        "--measured",
        "1=1.731",
        "--batch",
        "1,128",
        "--format",
        "json",
    )
    rows = json.loads(out)["batches"]
    assert code == 0
    assert [r["batch"] for r in rows] == [1, 128]
    assert rows[0]["speedup"] == pytest.approx(1.731, rel=1e-3)
    assert rows[1]["speedup"] == pytest.approx(1.214, rel=0.12)
    assert rows[0]["speedup"] == pytest.approx(rows[0]["baseline_tpot_ms"] / rows[0]["speculative_tpot_ms"], rel=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        ["--batch", "0"],
        ["--acceptance", "0.5", "--mean-length", "2"],
        ["--mean-length", "9"],
        ["--accelerator", "tpu"],
        ["--tp", "3"],
        ["--measured", "1=40"],
    ],
)
def test_speeds_that_cannot_be(run: Any, options: list[str]) -> None:
    base = {"--target": "meta-llama/Llama-3.1-8B-Instruct", "--accelerator": "l4", "--method": "ngram", "--k": "3"}
    words = [w for key, value in base.items() if key not in options for w in (key, value)]
    code, _, err = run("speed", *words, *options, "--format", "json")
    assert code == 2
    assert json.loads(err)["error"]["message"]


def test_models_and_accelerators_are_listed(run: Any, tmp_path: Path) -> None:
    assert json.loads(run("models", "Qwen/Qwen3-8B", "--format", "json")[1])[0]["kv_bytes_per_token"] == 147_456
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text(
        json.dumps(
            {
                "model_type": "llama",
                "hidden_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "intermediate_size": 128,
                "vocab_size": 100,
            }
        )
    )
    assert (
        json.loads(run("models", "mine", "--model-config", f"mine={folder}", "--format", "json")[1])[0]["layers"] == 2
    )
    listed = json.loads(run("accelerators", "--format", "json")[1])
    assert listed["accelerators"]["h100-80gb"]["memoryGiB"] == 79.18
    assert run("accelerators", "--cloud", "azure")[0] == 2


def test_findings_for_rules(tmp_path: Path) -> None:
    from specdec import manifests
    from specdec.plan.findings import engine_findings

    def codes(*arguments: str, **rest: Any) -> list[str]:
        file = manifest(tmp_path, *arguments, **rest)
        (engine,) = manifests.engines(manifests.parse(Path(file).read_text(), file))
        return [f.code for f in engine_findings(engine)]

    assert codes(LLAMA, "--max-model-len=8192") == []
    assert codes("--model=meta-llama/Llama-3.1-70B-Instruct") == ["SD320"]
    assert codes("--model=meta-llama/Llama-3.1-70B-Instruct", accelerator=None) == []
    assert codes("--model=/models/unknown") == []
    assert codes(LLAMA, "--tensor-parallel-size=3", gpus=3) == ["SD321"]


def test_a_benchmark_sets_acceptance_and_the_time_scale(run: Any, tmp_path: Path) -> None:
    file = manifest(tmp_path, LLAMA, f"--speculative-config={EAGLE3}", "--max-model-len=2048")
    plain = json.loads(run("plan", file, "--format", "json")[1])
    base = next(r["tpot_ms"] for r in plain["speed"] if r["arm"] == "baseline" and r["batch"] == 16)
    arms = [
        {"concurrency": 16, "k": 0, "tpot_ms": 2 * base},
        {"concurrency": 16, "k": 3, "tpot_ms": base, "acceptance_by_position": [0.8, 0.6, 0.5]},
    ]
    result = tmp_path / "bench.json"
    result.write_text(json.dumps({"schema_version": 1, "arms": arms}))
    doc = json.loads(run("plan", file, "--benchmark", str(result), "--format", "json")[1])
    assert doc["time_scale"] == pytest.approx(2, rel=1e-3)
    assert doc["acceptance"]["by_position"][:3] == [0.8, 0.6, 0.5]
    assert doc["acceptance"]["source"] == "measured: bench.json"
    result.write_text("{}")
    assert run("plan", file, "--benchmark", str(result))[0] == 2


@pytest.mark.parametrize(
    ("version", "methods"), [("0.13.0", {"ngram", "eagle3"}), ("0.32.0", {"draft_model", "eagle3"})]
)
def test_the_search_names_nothing_that_the_version_does_not_run(
    run: Any, tmp_path: Path, version: str, methods: set[str]
) -> None:
    image = f"vllm/vllm-openai:v{version}"
    file = manifest(tmp_path, LLAMA, "--max-model-len=4096", image=image)
    found = json.loads(run("plan", file, "--search", "--format", "json")[1])["candidates"]
    named = {c["method"] for c in found}
    assert methods <= named
    assert "suffix" not in named, "the image lacks its package"
    assert ("draft_model" in named) == (version != "0.13.0")


def test_a_search_takes_one_engine(run: Any) -> None:
    code, _, err = run("plan", "local", "--search")
    assert code == 2
    assert "speculative-baseline" in err


def test_k_of_several_prediction_layers_is_what_the_engine_takes(setup: Any) -> None:
    """Three layers: 1, 2, 3, then whole rounds; vLLM refuses 4 or 5."""
    from dataclasses import replace

    from specdec.plan import choose

    engine = setup("deepseek-ai/DeepSeek-V3", method="mtp", k=1, tp=8)
    spec = engine.speculation
    three = replace(engine, speculation=replace(spec, draft=replace(spec.draft, layers=3)))
    assert [k for k in range(1, 13) if choose.allowed(three, k)] == [1, 2, 3, 6, 9, 12]
    assert all(choose.allowed(engine, k) for k in range(1, 13))


@pytest.mark.parametrize("sequences", ["1", "7", "8"])
def test_the_page_of_an_engine_for_few_requests(run: Any, tmp_path: Path, sequences: str) -> None:
    file = manifest(tmp_path, LLAMA, "--max-model-len=4096", f"--max-num-seqs={sequences}")
    code, text, _ = run("plan", file, "--format", "html")
    assert code == 0
    assert "Dollars for a million output tokens" in text
    assert "nan" not in text


def test_the_search_stays_on_the_cloud_of_the_environment(run: Any) -> None:
    code, out, _ = run("plan", "dev", "--search", "--target-tpot", "60", "--format", "json")
    from specdec import facts

    machines = {c["machine"] for c in json.loads(out)["candidates"]}
    assert code == 0
    assert machines
    assert machines <= set(facts.machines()["gke"])

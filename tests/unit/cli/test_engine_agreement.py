"""Rules and engine agree: what vLLM 0.32 refuses at start we call an error, and what it takes we do not.

The verdicts were given by the engine. Where its environment is installed it is asked again.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from specdec import rules
from specdec.manifests import parse

ROOT = Path(__file__).resolve().parents[3]
ENGINE = Path(os.environ.get("SPECDEC_ENGINE_PYTHON", ROOT / ".tools" / "engine" / "bin" / "python"))
NGRAM = {"method": "ngram", "num_speculative_tokens": 3}
DRAFT = {"method": "draft_model", "model": "DRAFT", "num_speculative_tokens": 3}
HEAD = {"method": "eagle3", "model": "HEAD", "num_speculative_tokens": 3}
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
    "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 1000,
    "max_position_embeddings": 2048, "torch_dtype": "bfloat16",
}  # fmt: skip


def config(document: object, *more: str) -> list[str]:
    return ["--speculative-config", document if isinstance(document, str) else json.dumps(document), *more]


ACCEPTED = {
    "n-gram": config(NGRAM),
    "K in quotes": config(NGRAM | {"num_speculative_tokens": "4"}),
    "hyphens": config({"method": "ngram", "num-speculative-tokens": 3}),
    "head": config(HEAD),
    "draft model": config(DRAFT),
    "head on one of four": config(HEAD | {"draft_tensor_parallel_size": 1}, "-tp", "4"),
    "short flags": ["--spec-method", "ngram", "--spec-tokens", "3"],
    "dotted": ["--speculative-config.method", "ngram", "--speculative-config.num_speculative_tokens", "3"],
    "null": config("null"),
    "several values": ["--cudagraph-capture-sizes", "1", "2", "--max-model-len", "1k"],
}
REFUSED = {
    "K is 0": config(NGRAM | {"num_speculative_tokens": 0}),
    "K below 0": config(NGRAM | {"num_speculative_tokens": -1}),
    "K is no whole number": config(NGRAM | {"num_speculative_tokens": 2.5}),
    "n-gram without K": config({"method": "ngram"}),
    "draft model without K": config({"method": "draft_model", "model": "DRAFT"}),
    "head without K": config({"method": "eagle3", "model": "HEAD"}),
    "unknown field": config(NGRAM | {"ngram_prompt_lookup_max": 4}),
    "field that refuses itself": config(DRAFT | {"tensor_parallel_size": 1}),
    "unknown method": config(HEAD | {"method": "eagle-3"}),
    "head without a model": config({"method": "eagle3", "num_speculative_tokens": 3}),
    "draft on two of four": config(DRAFT | {"draft_tensor_parallel_size": 2}, "-tp", "4"),
    "head on two of four": config(HEAD | {"draft_tensor_parallel_size": 2}, "-tp", "4"),
    "window": config(NGRAM | {"prompt_lookup_min": 5, "prompt_lookup_max": 3}),
    "window of 0": config(NGRAM | {"prompt_lookup_max": 0}),
    "given twice": config(NGRAM, "--spec-tokens", "4"),
    "Go's print of a map": config("map[method:ngram]"),
    "a list": config("[1]"),
    "quotes inside": config("'{}'"),
    "empty object": config({}),
    "share of 92": ["--gpu-memory-utilization", "92"],
    "share of 0": ["--gpu-memory-utilization", "0"],
    "old flags": ["--speculative-model", "DRAFT", "--num-speculative-tokens", "4"],
    "typo": ["--max-model-length", "8"],
    "no number": ["--max-num-seqs", "many"],
}
ASK = """
import json, sys
from vllm.engine.arg_utils import EngineArgs
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
verdicts = {}
for name, argv in json.load(sys.stdin).items():
    try:
        parsed = make_arg_parser(FlexibleArgumentParser()).parse_args(argv)
        parsed.model = parsed.model_tag
        EngineArgs.from_cli_args(parsed).create_engine_config()
        verdicts[name] = "taken"
    except SystemExit:
        verdicts[name] = "refused by the parser"
    except Exception as error:
        verdicts[name] = f"refused: {error}"
json.dump(verdicts, open(sys.argv[1], "w"))
"""


def our_errors(argv: list[str]) -> list[str]:
    """Of arguments, pair and memory; what is wrong with the pod is not the engine's to say."""
    container = {"name": "engine", "image": "vllm/vllm-openai-cpu:v0.32.0", "command": ["vllm", "serve"]}
    pod = {"kind": "Pod", "spec": {"containers": [container | {"args": ["/models/target", *argv]}]}}
    found = rules.check(parse(yaml.safe_dump(pod)))
    return [
        f"{finding.code} {finding.message}"
        for finding in found
        if finding.severity == "error" and finding.code[2] in "123"
    ]


@pytest.mark.parametrize("argv", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_the_engine_takes_is_no_error(argv: list[str]) -> None:
    assert our_errors(argv) == []


@pytest.mark.parametrize("argv", REFUSED.values(), ids=REFUSED.keys())
def test_what_the_engine_refuses_is_an_error(argv: list[str]) -> None:
    assert our_errors(argv)


@pytest.mark.skipif(not ENGINE.exists(), reason="the engine's own environment (.tools/engine) is not installed")
def test_the_engine_still_says_so(tmp_path: Path) -> None:
    places = {"target": LLAMA, "DRAFT": LLAMA, "HEAD": LLAMA | {"architectures": ["LlamaForCausalLMEagle3"]}}
    for name, model in places.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(model), encoding="utf-8")
    cases = {
        name: [str(tmp_path / "target"), *(_placed(word, tmp_path) for word in argv)]
        for name, argv in {**ACCEPTED, **REFUSED}.items()
    }
    variables = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
    asked = subprocess.run(
        [str(ENGINE), "-c", ASK, str(tmp_path / "verdicts.json")],
        input=json.dumps(cases), text=True, capture_output=True, env=os.environ | variables, check=False,
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr[-2000:]
    verdicts = json.loads((tmp_path / "verdicts.json").read_text(encoding="utf-8"))
    assert {name for name, verdict in verdicts.items() if verdict == "taken"} == set(ACCEPTED), verdicts
    print(f"the engine and we agree on {len(ACCEPTED)} that it takes and {len(REFUSED)} that it refuses")


def _placed(word: str, folder: Path) -> str:
    for name in ("DRAFT", "HEAD"):
        word = word.replace(name, str(folder / name))
    return word

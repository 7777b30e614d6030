"""What is asked of every arm: the prompts, and the arguments of `vllm bench serve` by version."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec import facts
from specdec.bench.document import Load, Point
from specdec.errors import SpecdecError

# A ConfigMap holds 1 MiB with its metadata.
PROMPTS_BYTES = 1_000_000
# The first `vllm bench serve` with --save-detailed and --temperature; the custom dataset, a ready check that 0 turns
# off (0.10.1 and 0.10.2 give up at once) and the general --skip-chat-template came later.
OLDEST, CUSTOM, READY_CHECK, SKIP_TEMPLATE = "0.9.1", "0.9.2", "0.11.0", "0.11.1"
FOLDER = "/bench"
PROFILES: dict[str, dict[str, Any]] = {
    "seed": {"input_len": 512, "output_len": 256, "num_prompts": 500, "concurrency": [50], "rate": [10.0]}
}


@dataclass(frozen=True)
class Prompts:
    """The prompts' file as the benchmark reads it."""

    name: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def of_task(task: str) -> Prompts:
    """The prompts that come with the tool. Raises SpecdecError for a task that has none."""
    known = json.loads(Path(__file__).with_name("prompts.json").read_text(encoding="utf-8"))
    if task not in known:
        from specdec.errors import unknown

        raise unknown("task", task, known, path="--task")
    return Prompts("prompts.jsonl", "".join(json.dumps({"prompt": prompt}) + "\n" for prompt in known[task]))


def of_file(file: Path, kind: str, count: int, seed: int) -> Prompts:
    """A JSONL file with a `prompt` a line, or ShareGPT's JSON; of more than `count` entries a sample by `seed`.

    Raises SpecdecError where it cannot be read, is empty, or is too large for a ConfigMap.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        option = "--sharegpt" if kind == "sharegpt" else "--jsonl"
        raise SpecdecError(
            f"the dataset cannot be read: {why}", code="dataset", file=str(file), path=option,
            fix="a file of prompts, or --task code for built-in ones",
        ) from error  # fmt: skip
    text = text.removeprefix("\ufeff")
    rows = _sharegpt(text, file) if kind == "sharegpt" else _jsonl(text, file)
    if not rows:
        wanted = "conversations of two turns and more" if kind == "sharegpt" else 'lines like {"prompt": "..."}'
        raise SpecdecError("the dataset is empty", code="dataset-empty", file=str(file), fix=wanted)
    if len(rows) > count:
        rows = random.Random(seed).sample(rows, count)
    if kind == "sharegpt":
        made = Prompts("prompts.json", json.dumps(rows))
    else:
        made = Prompts("prompts.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    if len(made.text.encode()) > PROMPTS_BYTES:
        raise SpecdecError(
            f"{len(rows)} prompts are {len(made.text.encode()):,} bytes; a ConfigMap holds {PROMPTS_BYTES:,}",
            code="dataset-large",
            file=str(file),
            fix="fewer of them: --num-prompts",
        )
    return made


def _jsonl(text: str, file: Path) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise SpecdecError(
                f"line {number} is not JSON: {error}", code="dataset", file=str(file), path="--jsonl",
                fix='{"prompt": "..."} on every line',
            ) from error  # fmt: skip
        if not isinstance(row, dict) or not isinstance(row.get("prompt"), str) or not row["prompt"].strip():
            raise SpecdecError(
                f"line {number} has no prompt", code="dataset", file=str(file), fix='{"prompt": "..."} on every line'
            )
        rows.append({"prompt": row["prompt"]})
    return rows


def _sharegpt(text: str, file: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(text) if text.strip() else []
    except ValueError as error:
        fix = "ShareGPT's JSON, a list of conversations; --jsonl reads a file with a prompt a line"
        raise SpecdecError(f"not JSON: {error}", code="dataset", file=str(file), path="--sharegpt", fix=fix) from error
    if not isinstance(found, list):
        raise SpecdecError(
            "no list of conversations", code="dataset", file=str(file), path="--sharegpt",
            fix='[{"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}]}]',
        )  # fmt: skip
    rows = []
    for entry in found:
        turns = entry.get("conversations") if isinstance(entry, dict) else None
        # The benchmark reads the first question and the length of its answer.
        texts = [turn.get("value") for turn in turns[:2] if isinstance(turn, dict)] if isinstance(turns, list) else []
        if len(texts) == 2 and all(isinstance(text, str) and text.strip() for text in texts):
            rows.append({"conversations": [{"value": text} for text in texts]})
    return rows


def check(load: Load, version: str | None, max_model_len: int | None, engine: str) -> None:
    """Raises SpecdecError for a load that this engine or its version cannot take."""
    if version is None:
        raise SpecdecError(
            f"engine {engine}: its image does not say which vLLM it is",
            code="version-unknown",
            path="engine.version",
            fix="set engine.version in the values",
        )
    oldest = OLDEST if load.dataset != "custom" else CUSTOM
    if facts.version_key(version) < facts.version_key(oldest):
        raise SpecdecError(
            f"engine {engine} is vLLM {version}; its bench serve lacks what this load needs",
            code="version-old",
            fix=f"vLLM {oldest} or newer",
        )
    needs = load.input_len + load.output_len if load.dataset == "random" else load.output_len + 1
    if max_model_len and needs > max_model_len:
        raise SpecdecError(
            f"{load.input_len} tokens in and {load.output_len} out do not fit into the context of engine {engine}, "
            f"{max_model_len} tokens",
            code="prompt-long",
            path="--input-len",
            fix=f"--input-len and --output-len of {max_model_len} together at most",
        )


def check_points(load: Load, points: Sequence[Point]) -> None:
    """Raises SpecdecError for a load that has fewer requests than are to be under way at once."""
    most = max(point.concurrency or 1 for point in points)
    if most > load.num_prompts:
        raise SpecdecError(
            f"{load.num_prompts} requests never make {most} at once",
            code="few-prompts",
            path="--num-prompts",
            fix=f"--num-prompts {4 * most}, or fewer at once",
        )


def arguments(
    load: Load,
    point: Point,
    *,
    seed: int,
    version: str,
    model: str,
    tokenizer: str,
    url: str,
    trust_remote_code: bool = False,
) -> list[str]:
    """The words after `vllm bench serve`, as that version spells them."""
    newer = facts.version_key(version)
    words = ["--base-url", url, "--endpoint", "/v1/completions", "--model", tokenizer, "--served-model-name", model]
    words += ["--tokenizer", tokenizer, "--num-prompts", str(load.num_prompts), "--seed", str(seed)]
    words += ["--temperature", f"{load.temperature:g}", "--disable-tqdm", "--save-result", "--save-detailed"]
    words += ["--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,95,99"]
    words += ["--request-rate", "inf" if point.rate is None else f"{point.rate:g}"]
    if point.concurrency is not None:
        words += ["--max-concurrency", str(point.concurrency)]
    if load.ignore_eos:
        words.append("--ignore-eos")
    if trust_remote_code:
        words.append("--trust-remote-code")
    if newer >= facts.version_key(READY_CHECK):
        # Ours asked the engine already: the benchmark's own check would be one request more than counted.
        words += ["--ready-check-timeout-sec", "0"]
    words += ["--dataset-name", load.dataset]
    if load.dataset == "random":
        words += ["--random-input-len", str(load.input_len), "--random-output-len", str(load.output_len)]
        return [*words, "--random-range-ratio", "0"]
    if load.dataset == "sharegpt":
        return [*words, "--dataset-path", f"{FOLDER}/prompts.json", "--sharegpt-output-len", str(load.output_len)]
    words += ["--dataset-path", f"{FOLDER}/prompts.jsonl", "--custom-output-len", str(load.output_len)]
    if not load.chat_template:
        newest = newer >= facts.version_key(SKIP_TEMPLATE)
        words.append("--skip-chat-template" if newest else "--custom-skip-chat-template")
    return words

"""K on a real CPU engine: a sweep over K, and what the planner would have chosen from two points of it.

    python benchmarks/choose_k.py --target DIR --draft DIR --python .tools/engine/bin/python [--k 1,2,3,4,6,8] [--out
    FILE]
    python benchmarks/choose_k.py --recorded FILE

Each K is an engine of its own that answers every prompt `--repeats` times; the median counts. Acceptance by position is
read from the engine's own counters. The choice is made from the time without speculation and at one K, and acceptance
there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
from specdec.plan import catalogue
from specdec.plan.acceptance import Acceptance
from specdec.plan.choose import TwoPoints

PROMPTS = [
    "The engine reads the values and",
    "A cluster has nodes, and each node",
    "When a request arrives",
    "Tokens are drafted and then",
]
PORT = 8741


@dataclass
class Run:
    """One engine's result: milliseconds a token, drafts, accepted by position."""

    k: int
    ms: float
    drafts: float
    accepted: list[float]

    def acceptance(self) -> Acceptance:
        return Acceptance(tuple(a / self.drafts for a in self.accepted))


def start(arguments: argparse.Namespace, k: int) -> subprocess.Popen[bytes]:
    command = [
        arguments.python,
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        arguments.target,
        "--served-model-name",
        "target",
        "--port",
        str(PORT),
        "--enforce-eager",
        "--max-model-len",
        "1024",
    ]
    if k:
        speculative = {"method": "draft_model", "model": arguments.draft, "num_speculative_tokens": k}
        command += ["--speculative-config", json.dumps(speculative)]
    quiet = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    return subprocess.Popen(command, env={**os.environ, **quiet}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait(process: subprocess.Popen[bytes], seconds: int = 300) -> None:
    for _ in range(seconds):
        if process.poll() is not None:
            raise SystemExit("the engine ended before it was ready")
        try:
            if httpx.get(f"http://127.0.0.1:{PORT}/health", timeout=2).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(1)
    raise SystemExit("the engine did not get ready")


def complete(prompt: str, tokens: int) -> float:
    """Milliseconds a token of one greedy completion, its prompt left out."""
    body = {
        "model": "target",
        "prompt": prompt,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
    }
    first = last = 0.0
    with httpx.stream("POST", f"http://127.0.0.1:{PORT}/v1/completions", json=body, timeout=300) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                last = time.perf_counter()
                first = first or last
    return (last - first) / (tokens - 1) * 1e3


def counters() -> tuple[float, list[float]]:
    text = httpx.get(f"http://127.0.0.1:{PORT}/metrics", timeout=10).text
    drafts = sum(float(v) for v in re.findall(r"^vllm:spec_decode_num_drafts_total\S* (\S+)", text, re.M))
    found = re.findall(
        r'^vllm:spec_decode_num_accepted_tokens_per_pos_total\{[^}]*position="(\d+)"[^}]*\} (\S+)', text, re.M
    )
    return drafts, [float(value) for _, value in sorted(found, key=lambda pair: int(pair[0]))]


def measure(arguments: argparse.Namespace, k: int) -> Run:
    process = start(arguments, k)
    try:
        wait(process)
        complete(PROMPTS[0], 16)
        times = [complete(prompt, arguments.tokens) for _ in range(arguments.repeats) for prompt in PROMPTS]
        drafts, accepted = counters() if k else (0.0, [])
        return Run(k, statistics.median(times), drafts, accepted)
    finally:
        process.terminate()
        process.wait(60)


def judge(runs: dict[int, Run], share: float | None) -> None:
    """The choice from the time without speculation and at one K, acceptance by position known, against the best
    measured.

    share: what one speculative token should cost of a step: the draft's size over the target's.
    """
    best = min(runs.values(), key=lambda r: r.ms)
    for run in runs.values():
        print(
            f"K={run.k}: {run.ms:.1f} ms a token"
            + (f", acceptance {[round(p, 3) for p in run.acceptance().positions]}" if run.k else "")
        )
    print(f"best measured: K={best.k}, {best.ms:.1f} ms")
    acceptance = runs[max(runs)].acceptance()
    for known in (k for k in runs if k):
        line = TwoPoints.of([(0, runs[0].ms), (known, runs[known].ms)], acceptance, share)
        chosen = line.best(acceptance, max(runs))
        print(f"from none and K={known}: K={chosen}, {between(runs, chosen) / best.ms - 1:+.1%} over the best measured")


def size(folder: str) -> int:
    """Bytes of a model's weights that every token passes through."""
    model = catalogue.load(folder)
    return sum(w.params for w in model.weights if w.part != "embed")


def between(runs: dict[int, Run], k: int) -> float:
    """The measured time at K; between two measured K by the steps on both sides."""
    if k in runs:
        return runs[k].ms
    low, high = max(x for x in runs if x < k), min(x for x in runs if x > k)
    longest = max(runs.values(), key=lambda r: len(r.accepted)).acceptance()
    steps = {x: runs[x].ms * (longest.mean_length(x) if x else 1.0) for x in (low, high)}
    return (steps[low] + (steps[high] - steps[low]) * (k - low) / (high - low)) / longest.mean_length(k)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target")
    parser.add_argument("--draft")
    parser.add_argument("--python", default=".tools/engine/bin/python")
    parser.add_argument("--k", default="1,2,3,4,6,8")
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--recorded", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.recorded:
        recorded = json.loads(arguments.recorded.read_text())
        rows, share = recorded["runs"], recorded.get("share")
        runs = {int(r["k"]): Run(int(r["k"]), r["ms"], r["drafts"], r["accepted"]) for r in rows}
    else:
        runs = {k: measure(arguments, k) for k in [0, *(int(x) for x in arguments.k.split(","))]}
        share = size(arguments.draft) / size(arguments.target)
        if arguments.out:
            rows = [r.__dict__ for r in runs.values()]
            arguments.out.write_text(json.dumps({"share": share, "runs": rows}, indent=1) + "\n")
    judge(runs, share)


if __name__ == "__main__":
    main()

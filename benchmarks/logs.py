"""Engine logs as setups of the planner: what a log does not state is what that engine's version does by itself."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from specdec import facts
from specdec.errors import SpecdecError
from specdec.plan import catalogue
from specdec.plan.setup import Accelerator, Setup, Speculation, build
from specdec.plan.weights import chosen_format

DATA = Path(__file__).parent / "data"
GPUS = {
    "h100": "h100-80gb",
    "h200": "h200-141gb",
    "b200": "b200",
    "a100": "a100-80gb",
    "l40s": "l40s",
    "l4": "l4",
    "a10": "a10g",
    "6000": "rtx-pro-6000",
}
# GiB that an engine sees of a card sold with so many GB, where neither the log nor accelerators.yaml says.
VISIBLE = 0.967
MODELS = [(r"Qwen3-Coder-30B-A3B", "Qwen/Qwen3-Coder-30B-A3B-Instruct"), (r"^(Qwen[\d.]+-\S+)$", r"Qwen/\1")]
# Releases by the day they came out, for a log that has a date and no version.
RELEASES = [
    ("2024-09", "0.6.3"),
    ("2024-11", "0.6.4"),
    ("2025-01", "0.6.6"),
    ("2025-02", "0.7.2"),
    ("2025-03", "0.8.0"),
    ("2025-06", "0.9.0"),
    ("2025-08", "0.10.0"),
    ("2025-10", "0.11.0"),
    ("2026-01", "0.13.0"),
    ("2026-04", "0.19.1"),
    ("2026-07", "0.24.0"),
    ("2026-10", "0.31.0"),
]


@dataclass(frozen=True)
class Log:
    """One row. `stated`: version, utilisation and GPU total stand in the log itself."""

    row: dict[str, str]
    setup: Setup
    stated: bool

    def number(self, key: str) -> float | None:
        try:
            return float(self.row[key])
        except (KeyError, ValueError):
            return None


def model_name(text: str) -> str:
    if catalogue.known_row(text):
        return text
    for pattern, name in MODELS:
        if match := re.search(pattern, text):
            return match.expand(name)
    return text


def version_of(row: dict[str, str]) -> str:
    if match := re.search(r"\d+\.\d+\.\d+", row["vllm_version"]):
        return match.group()
    if row["vllm_version"].startswith("0.6"):
        return "0.6.4"
    dated = row["date"][:7]
    if dated:
        return next((v for d, v in reversed(RELEASES) if d <= dated), "0.6.3")
    return {"V0": "0.7.2", "V1": "0.11.0"}.get(row["runner"], "0.11.0")


def setup_of(row: dict[str, str], version: str | None = None) -> Setup:
    version = version or version_of(row)
    runner = {"V0": "v0", "V1": "v1"}.get(row["runner"], "v2" if "V2" in row["runner"] else "")
    release = facts.version_key(version)
    runner = runner or ("v0" if release < (0, 8, 0, 0) else "v1" if release < (0, 31, 0, 0) else "v2")
    total = float(row["gpu_total_gib"]) if row["gpu_total_gib"] else None
    if total is None and (size := re.search(r"(\d+)\s*GB", row["gpu"])):
        total = VISIBLE * int(size.group(1))
    key = next((v for k, v in GPUS.items() if k in row["gpu"].lower()), None)
    if key:
        accelerator = Accelerator.of(key, facts.accelerators()[key])
    elif total:
        accelerator = Accelerator("other", row["gpu"], total, 900.0, {"bf16": 150.0}, 64.0, "pcie", False)
    else:
        raise SpecdecError(f"the GPU {row['gpu']!r} is not known")
    if row["gpu_total_gib"] and total:
        accelerator = Accelerator(**{**accelerator.__dict__, "memory_gib": total})
    target = catalogue.load(model_name(row["model"]))
    counts = ("tp", "max_model_len", "max_num_batched_tokens", "max_num_seqs")
    integer = {k: int(row[k]) if row.get(k) else None for k in counts}
    quantization = (
        {"FP8": "fp8", "AWQ-INT4": "awq"}.get(row["weights_dtype"]) if "fp8" not in row["model"].lower() else None
    )
    kv = row["kv_dtype"] or None
    return build(
        target,
        accelerator,
        version=version,
        runner=runner,
        tp=integer["tp"] or 1,
        max_model_len=integer["max_model_len"],
        max_num_batched_tokens=integer["max_num_batched_tokens"],
        max_num_seqs=integer["max_num_seqs"],
        eager=bool(row.get("eager")),
        prefix_caching=True if "prefix caching on" in row["note"] else None,
        quantization=quantization,
        kv_dtype=kv,
        utilisation=float(row["gpu_memory_utilization"]) if row["gpu_memory_utilization"] else None,
        speculation=speculation_of(row, target.name),
    )


def speculation_of(row: dict[str, str], target: str) -> Speculation | None:
    text = row["spec_config"].lower()
    if not text or text == "none":
        return None
    k = int(match.group(1)) if (match := re.search(r"k\s*=\s*(\d+)", text)) else 3
    method = next((m for m in ("eagle3", "eagle", "medusa", "mtp", "ngram") if m in text), "draft_model")
    if method == "mtp":
        from specdec.plan.heads import mtp

        draft = mtp(catalogue.load(target))
    elif method == "eagle3":
        size = re.search(r"-(\d+(?:\.\d+)?B)", target)
        names = [n for n in facts.models() if "eagle3" in n.lower() and size and size.group(1).lower() in n.lower()]
        draft = catalogue.load(names[0]) if names else None
    else:
        draft = None
    return Speculation(method, k, draft, chosen_format(draft, None)[0] if draft else None)


def read(file: Path = DATA / "memory_logs.csv") -> list[Log]:
    logs = []
    with file.open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            try:
                setup = setup_of(row)
            except SpecdecError as error:
                print(f"row {row['row']}: left out: {error}")
                continue
            stated = bool(
                re.search(r"\d+\.\d+", row["vllm_version"]) and row["gpu_memory_utilization"] and row["gpu_total_gib"]
            )
            logs.append(Log(row, setup, stated))
    return logs

"""Models by name: from the chart's models.yaml, a folder with config.json, or the Hub when it is online."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from specdec import facts
from specdec.errors import SpecdecError, nearest
from specdec.plan import heads
from specdec.plan.models import Model
from specdec.plan.parse import parse


def load(name: str, configs: dict[str, Path] | None = None) -> Model:
    """The model called `name`. `configs`: folders given on the command line, by model name.

    Raises SpecdecError when it is nowhere to be found, or its configuration lacks a field.
    """
    folder = (configs or {}).get(name)
    if folder is None and Path(name).joinpath("config.json").is_file():
        folder = Path(name)
    if folder is not None:
        return from_folder(name, folder)
    name = hub_name(name)
    row = known_row(name)
    if row is not None:
        return from_row(name, row)
    downloaded = from_hub(name)
    if downloaded is not None:
        return downloaded
    guess = nearest(name, facts.models())
    raise SpecdecError(
        f"the planner has no configuration of the model {name!r}",
        code="unknown-model",
        path="engine.model.name",
        fix=(f"did you mean {guess}? Or give" if guess else "give") + f" its config.json: --model-config {name}=DIR",
    )


def hub_name(path: str) -> str:
    """The model that a folder of the Hub's cache holds: .../models--OWNER--NAME/snapshots/COMMIT. Other names stay."""
    match = re.search(r"(?:^|/)models--([^/]+?)--([^/]+)/snapshots/", path)
    return f"{match.group(1)}/{match.group(2)}" if match else path


def known_row(name: str) -> dict[str, Any] | None:
    """The row of models.yaml: by its whole name, else by the name without its owner, else without what names a tuned
    version of the same shape. Rows with different configurations under such a name are no answer."""
    rows = facts.models()
    if name in rows:
        return dict(rows[name])
    if name.startswith(("/", ".")):
        return None
    found = {key: row for key, row in rows.items() if key.lower() == name.lower()}
    for same in (last, short):
        found = found or {key: row for key, row in rows.items() if same(key) == same(name)}
    if not found and not heads.is_head({"architectures": [name]}):
        return quantised_row(name)
    configs = {json.dumps(row["config"], sort_keys=True) for row in found.values()}
    if len(configs) != 1:
        return None
    key, row = next(iter(found.items()))
    return dict(row) if key.lower() == name.lower() else row | {"source": f"{row['source']}; taken for {name} by name"}


# The ends of names of checkpoints that were made from another by quantisation, with the configuration that they carry.
QUANTISED: list[tuple[str, dict[str, Any]]] = [
    (
        r"[-_.](awq|gptq)([-_.]?(int)?4([-_.]?bit)?)?([-_.]marlin)?",
        {"quant_method": "awq", "bits": 4, "group_size": 128},
    ),
    (r"[-_.]gptq[-_.]?(int)?8([-_.]?bit)?", {"quant_method": "gptq", "bits": 8}),
    (r"[-_.](quantized\.)?w4a16", {"quant_method": "gptq", "bits": 4, "group_size": 128}),
    (r"[-_.](quantized\.)?w8a8|[-_.]int8", {"quant_method": "gptq", "bits": 8}),
    (r"[-_.]fp8([-_.](dynamic|static|kv|per[-_]?tensor))*", {"quant_method": "fp8"}),
    (r"[-_.](nv)?fp4", {"quant_method": "modelopt_fp4"}),
    (r"([-_.]unsloth)?[-_.]bnb[-_.]4bit", {"quant_method": "bitsandbytes"}),
]


def quantised_row(name: str) -> dict[str, Any] | None:
    """A quantised checkpoint whose name says what it was made from and how: that model's row with the format put in."""
    word = name.rsplit("/", 1)[-1]
    for pattern, quantization in QUANTISED:
        match = re.fullmatch(rf"(.+?)(?:{pattern})", word, re.IGNORECASE)
        base = match and known_row(match.group(1))
        if base and not base["config"].get("quantization_config"):
            config = base["config"] | {"quantization_config": quantization}
            return {"config": config, "source": f"{base['source']}; {quantization['quant_method']} by the name"}
    return None


# What the name of a tuned version adds to that of the model it was tuned from: those have the same shape.
TUNED = re.compile(
    r"[-_](instruct|it|chat|hf|base|pt|thinking|qat|(19|20)?\d{2}(0[1-9]|1[0-2])|(0[1-9]|1[0-2])([0-2]\d|3[01]))$"
)


def last(name: str) -> str:
    """A name without its owner."""
    return name.rsplit("/", 1)[-1].lower()


def short(name: str) -> str:
    """A name without owner, maker's prefix and what a tuned version's name adds."""
    word = last(name).removeprefix("meta-")
    while (shorter := TUNED.sub("", word)) != word:
        word = shorter
    return word


@lru_cache(maxsize=256)
def _parsed(name: str, document: str, published: int | None, source: str) -> Model:
    config = json.loads(document)
    try:
        if heads.is_head(config):
            return heads.parse_head(name, config, source=source, published_bytes=published)
        return parse(name, config, checkpoint_bytes=published, source=source)
    except (TypeError, ValueError, ZeroDivisionError, AttributeError, KeyError) as error:
        raise SpecdecError(
            f"a field of {name} has a value that makes no sense: {error}",
            code="bad-model-config",
            file=source or f"{name}/config.json",
            fix="the model's own config.json: --model-config NAME=DIR",
        ) from error


def from_row(name: str, row: dict[str, Any]) -> Model:
    return _parsed(
        name, json.dumps(row["config"], sort_keys=True), row.get("checkpointBytes"), str(row.get("source", ""))
    )


def from_folder(name: str, folder: Path) -> Model:
    """A model from its folder: config.json, and model.safetensors.index.json for its size where it is there."""
    file = folder / "config.json"
    config = read_json(file)
    beside = folder / "hf_quant_config.json"  # where NVIDIA's ModelOpt writes the format
    if "quantization_config" not in config and beside.is_file():
        config["quantization_config"] = {"quant_method": "modelopt"} | (read_json(beside).get("quantization") or {})
    size = None
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        metadata = read_json(index).get("metadata")
        total = metadata.get("total_size") if isinstance(metadata, dict) else None
        size = int(total) if isinstance(total, (int, float)) and total > 0 else None
    elif files := sorted(folder.glob("*.safetensors")):
        size = sum(f.stat().st_size for f in files)
    return _parsed(name, json.dumps(config, sort_keys=True), size, str(file))


def read_json(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SpecdecError(
            "no such file", code="unknown-model", file=str(file), fix="a folder that holds config.json"
        ) from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise SpecdecError(f"not readable as JSON: {error}", code="bad-model-config", file=str(file)) from error
    if not isinstance(document, dict):
        raise SpecdecError("has to be a JSON object", code="bad-model-config", file=str(file))
    return document


def from_hub(name: str) -> Model | None:
    """config.json from the Hub's cache, else from the Hub where it can be reached. None when it is not to be had."""
    if "/" not in name or name.startswith(("/", ".")):
        return None
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.utils.tqdm import disable_progress_bars
    except ImportError:
        return None
    disable_progress_bars()
    for cached in (True, False):
        if not cached and not online():
            return None
        try:
            return from_folder(name, Path(hf_hub_download(name, "config.json", local_files_only=cached)).parent)
        except SpecdecError:
            raise
        except Exception:  # not cached, private, missing: whatever the client raises, the model is not known here
            continue
    return None


def online() -> bool:
    """Whether the Hub's host takes a connection within two seconds."""
    import os
    import socket
    from urllib.parse import urlsplit

    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        return False
    address = urlsplit(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")
    try:
        with socket.create_connection((address.hostname or "", address.port or 443), timeout=2):
            return True
    except OSError:
        return False

"""Configurations of models for rules, without a network: given folders, folders that the pod mounts, models.yaml."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from specdec.errors import SpecdecError
from specdec.manifests import EngineWorkload
from specdec.objects import mapping

# Folders of --model-config, by model name.
GIVEN: dict[str, Path] = {}


def config_of(engine: EngineWorkload, name: str | None) -> dict[str, Any] | None:
    """config.json of that model as this engine would find it, None where nobody knows it."""
    from specdec.plan.catalogue import hub_name, known_row

    if not name:
        return None
    folder = folders(engine).get(name)
    if folder is not None:
        return _read(folder / "config.json")
    try:
        row = known_row(hub_name(name))
    except SpecdecError:
        return None
    return mapping(row.get("config")) if row else None


def method_is_certain(engine: EngineWorkload) -> bool:
    """Whether the engine takes the method that stands in its arguments: it was given, or the draft is known to be a
    whole model, which the engine then takes for a draft model."""
    from specdec.plan.heads import kind

    asked = engine.args.speculative
    if asked is None or asked.method_given or asked.legacy:
        return asked is not None
    config = config_of(engine, asked.model)
    names = [str(name) for name in (config or {}).get("architectures") or []]
    whole = all(name.endswith(("ForCausalLM", "ForConditionalGeneration")) for name in names)
    return bool(config and names and whole and kind(config) is None and "eagle" not in str(asked.model).lower())


def folders(engine: EngineWorkload) -> dict[str, Path]:
    """Folders with a config.json for this engine's models, by the model's name in its arguments."""
    from specdec.plan.workloads import host_folders

    try:
        return host_folders(engine) | GIVEN
    except (AttributeError, TypeError):  # volumes or mounts that are none
        return dict(GIVEN)


@cache
def _read(file: Path) -> dict[str, Any] | None:
    try:
        return mapping(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def layers(config: dict[str, Any] | None) -> int | None:
    """Hidden layers of a model's language part."""
    text = {**(config or {}), **mapping((config or {}).get("text_config"))}
    count = text.get("num_hidden_layers")
    return count if isinstance(count, int) else None


def known_to_the_planner(engine: EngineWorkload) -> bool:
    """Whether the planner has the configurations of this engine's models at hand."""
    return not unknown_models(engine)


def unknown_models(engine: EngineWorkload) -> list[str]:
    """The engine's models whose configuration nobody here knows: of them memory and pair are not judged."""
    draft = engine.args.speculative.model if engine.args.speculative else None
    names = dict.fromkeys([engine.args.model or "(no model)", *([draft] if draft else [])])
    return [name for name in names if config_of(engine, name) is None]

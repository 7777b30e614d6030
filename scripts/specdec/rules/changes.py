"""Edits of an engine's arguments and variables, for fixes that are certain. Empty where the manifest is not plain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from specdec.engine_args import JSON_FLAG, canonical, shell_script
from specdec.manifests import EngineWorkload
from specdec.objects import Path
from specdec.rules.model import REMOVED, Edit

Edits = tuple[Edit, ...]


def plain(engine: EngineWorkload) -> bool:
    """Whether each argument is an element of a list of its own: no shell."""
    return shell_script(engine.argv) is None


def place_of_value(engine: EngineWorkload, flag: str) -> tuple[Path, str, str] | None:
    """(path, what stands before the value in that element, the value) of a flag that has one."""
    path = engine.path_of(flag)
    if not plain(engine) or not isinstance(path[-1], int) or engine.args.value(flag) is None:
        return None
    word = str(engine.manifest.get(path))
    name, equals, attached = word.partition("=")
    if canonical(name) != flag:
        return None
    if equals:
        return path, f"{name}=", attached
    after = (*path[:-1], path[-1] + 1)
    value = engine.manifest.get(after)
    return None if value is None else (after, "", str(value))


def set_value(engine: EngineWorkload, flag: str, value: str) -> Edits:
    """The flag's value becomes this one."""
    found = place_of_value(engine, flag)
    return (Edit(found[0], found[1] + value),) if found and "$(" not in found[2] else ()


def set_fields(engine: EngineWorkload, fields: Mapping[str, Any]) -> Edits:
    """The object after --speculative-config becomes this one."""
    return set_value(engine, JSON_FLAG, json.dumps(dict(fields)))


def without_field(engine: EngineWorkload, field: str) -> Edits:
    """The object after --speculative-config loses a field."""
    spec = engine.args.speculative
    if spec is None or field not in spec.raw or spec.legacy:
        return ()
    return set_fields(engine, {key: value for key, value in spec.raw.items() if key != field})


def renamed_field(engine: EngineWorkload, old: str, new: str) -> Edits:
    """A field of the object after --speculative-config gets its right name."""
    spec = engine.args.speculative
    if spec is None or old not in spec.raw or new in spec.raw or spec.legacy:
        return ()
    return set_fields(engine, {new if key == old else key: value for key, value in spec.raw.items()})


def replace_flags(engine: EngineWorkload, flags: Iterable[str], instead: list[str]) -> Edits:
    """These flags and their values go, and these words come at the end of the same list."""
    if not plain(engine):
        return ()
    words: list[Path] = []
    for flag in flags:
        path = engine.path_of(flag)
        if not isinstance(path[-1], int):
            return ()
        words.append(path)
        value = place_of_value(engine, flag)
        if value and value[0] != path:
            words.append(value[0])
    lists = {path[:-1] for path in words}
    if len(lists) != 1:
        return ()
    (holder,) = lists
    left = len(engine.manifest.get(holder)) - len(words)
    gone = [Edit(path, REMOVED) for path in sorted(words, key=lambda path: path[-1], reverse=True)]
    return (*gone, *(Edit((*holder, left + index), word) for index, word in enumerate(instead)))

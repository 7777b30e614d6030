"""What a person has to look at in a new release: what its source decides otherwise than the release before it.

Two releases are compared, neither is run: defaults, what is refused and with which words, how the runner is chosen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from specdec.engine_surface.names import CONFIG
from specdec.engine_surface.source import ARGUMENTS, Modules

DEFAULTS = re.compile(r"vllm/config(\.py|/(cache|scheduler|parallel|speculative|model)\.py)")
CLASSES = ("CacheConfig", "SchedulerConfig", "SpeculativeConfig", "ParallelConfig", "EngineArgs")
# The planner and the chart rest on these; every other default is the engine's own affair.
THAT_MATTER = re.compile(
    r"gpu_memory_utilization|max_num_seqs|max_num_batched_tokens|block_size|cache_dtype|enable_prefix_caching"
    r"|async_scheduling|DEFAULT_MAX_NUM|SpeculativeConfig\."
)
REFUSALS = re.compile(r"vllm/config(\.py|/(vllm|speculative)\.py)")
ABOUT_SPECULATION = re.compile(r"specul|draft|eagle|medusa|ngram|suffix|mtp|dflash|dspark", re.IGNORECASE)
RUNNERS = re.compile(r"vllm/(config/vllm|v1/worker/gpu/spec_decode/__init__)\.py")


def decisions(new: Modules, old: Modules) -> Iterator[str]:
    """One line for each thing that is decided otherwise."""
    for name, (before, now) in _changed(defaults(old), defaults(new)):
        yield f"default {name}: {before} became {now}"
    theirs, ours = set(refusals(new)), set(refusals(old))
    yield from (f"refuses now: {text}" for text in sorted(theirs - ours))
    yield from (f"refuses no more: {text}" for text in sorted(ours - theirs))
    for name, (before, now) in _changed(runners(old), runners(new)):
        yield f"runner: {name} {'is new' if not before else 'is gone' if not now else 'was rewritten'}"


def _changed(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str]]]:
    for name in sorted({*old, *new}):
        before, now = old.get(name, ""), new.get(name, "")
        if before != now and (name in old or name in new):
            yield name, (before or "nothing", now or "nothing") if "." in name else (before, now)


def defaults(files: Modules) -> dict[str, str]:
    """Default of each field that matters, `Class.field`, and of the tables by GPU and use in arg_utils."""
    found: dict[str, str] = {}
    for name, tree in files.items():
        if not (DEFAULTS.fullmatch(name) or name == ARGUMENTS):
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name in CLASSES:
                found |= {f"{node.name}.{field}": text for field, text in _of_class(node)}
        for each in ast.walk(tree):
            if isinstance(each, ast.Assign) and name == ARGUMENTS:
                for target in each.targets:
                    text = ast.unparse(target)
                    if re.match(r"default_max_num\w+", text):
                        found[f"arg_utils.{text}"] = ast.unparse(each.value)
    return {name: text for name, text in found.items() if THAT_MATTER.search(name) or name.startswith("arg_utils.")}


def _of_class(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
            yield statement.target.id, ast.unparse(statement.value)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id, "required"
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            yield statement.targets[0].id, ast.unparse(statement.value)


def refusals(files: Modules) -> Iterator[str]:
    """What is raised or warned about speculation in the configuration, in its own words, values left out."""
    for name, tree in files.items():
        if not (REFUSALS.fullmatch(name) or CONFIG.fullmatch(name)):
            continue
        for node in ast.walk(tree):
            is_warning = isinstance(node, ast.Call) and getattr(node.func, "attr", "").startswith("warning")
            if isinstance(node, ast.Raise) or is_warning:
                text = " ".join(_words(node).split())
                if ABOUT_SPECULATION.search(text):
                    yield text


def _words(node: ast.AST) -> str:
    texts: list[str] = []
    inside: set[int] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "…" for part in each.values]
            inside.update(id(part) for part in ast.walk(each))
            texts.append("".join(parts))
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in inside:
            texts.append(each.value)
    return " ".join(texts)


def runners(files: Modules) -> dict[str, str]:
    """Functions that choose the runner, or what it drafts with, as text."""
    found: dict[str, str] = {}
    for name, tree in files.items():
        if not RUNNERS.fullmatch(name):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (
                re.search(r"v2|model_runner", node.name) or name.endswith("spec_decode/__init__.py")
            ):
                found[f"{node.name} of {name}"] = ast.unparse(node)
    return found

"""The names that a release takes: command-line flags, fields of SpeculativeConfig, methods."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from specdec.engine_surface.source import ARGUMENTS, Modules

# The server's own arguments have moved between folders; SpeculativeConfig from a file into a package.
FRONTEND = re.compile(r"vllm/entrypoints/(cli/serve|\w+/cli_args)\.py")
# Old versions define the arguments of every command in one file.
COMMANDS = "vllm/scripts.py"
CONFIG = re.compile(r"vllm/config(\.py|/__init__\.py|/speculative\.py)")
# What SpeculativeConfig is handed by the engine's own code and not by its user.
INTERNAL_FIELDS = frozenset(
    (
        "target_model_config",
        "target_parallel_config",
        "draft_model_config",
        "draft_parallel_config",
        "enable_chunked_prefill",
        "disable_log_stats",
    )
)
# Literals beside the method's own whose names are values of other fields.
OTHER_LITERALS = re.compile(r"Accept|Reject|Sample")


@dataclass(frozen=True)
class Surface:
    flags: frozenset[str]
    fields: frozenset[str]
    methods: frozenset[str]


def surface(files: Modules) -> Surface:
    config = [tree for name, tree in files.items() if CONFIG.fullmatch(name)]
    frontend = [tree for name, tree in files.items() if FRONTEND.fullmatch(name)]
    flags = {flag for tree in [files[ARGUMENTS], *frontend] for flag in _flags(tree)}
    if COMMANDS in files:
        flags |= set(_flags(files[COMMANDS], "serve_parser"))
    flags |= {
        "--" + field.replace("_", "-")
        for tree in frontend
        for name in ("FrontendArgs", "BaseFrontendArgs")
        for field in _fields(tree, name)
    }
    fields = {field for tree in config for field in _fields(tree, "SpeculativeConfig")} - INTERNAL_FIELDS
    methods = {method for tree in config for method in _methods(tree)}
    return Surface(frozenset(flags), frozenset(fields), frozenset(methods))


def _flags(tree: ast.AST, parser: str = "") -> Iterator[str]:
    """Every `add_argument("--name", "-n", ...)`; names put together while running are the fields' names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            if parser and getattr(getattr(node.func, "value", None), "id", "") != parser:
                continue
            for argument in node.args:
                if isinstance(argument, ast.Constant) and str(argument.value).startswith("-"):
                    yield str(argument.value)


def _fields(tree: ast.Module, name: str) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    field, kind = statement.target.id, ast.unparse(statement.annotation)
                    if not field.startswith("_") and not kind.startswith("ClassVar"):
                        yield field


def _methods(tree: ast.Module) -> Iterator[str]:
    """The text in SpeculativeMethod and in the literals that it is made of."""
    literals: dict[str, ast.Subscript] = {}
    for node in tree.body:
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript)):
            continue
        if getattr(node.value.value, "id", "") == "Literal" and isinstance(node.targets[0], ast.Name):
            literals[node.targets[0].id] = node.value
    waiting, seen = ["SpeculativeMethod"], set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in literals or OTHER_LITERALS.search(name):
            continue
        seen.add(name)
        for part in ast.walk(literals[name].slice):
            if isinstance(part, ast.Constant):
                yield str(part.value)
            elif isinstance(part, ast.Name):
                waiting.append(part.id)

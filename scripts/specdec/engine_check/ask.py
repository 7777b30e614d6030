"""Run by the engine's own python, which has none of this package: what its parser and configuration make of arguments.

On stdin a JSON object {name: {"argv": [...], "env": {...}, "fields": [...], "packages": [...]}}, where packages are
those that the image would have beside the engine and that are only looked for. To the file that is named, one line of
JSON for each name:
    stage    how far it came: parser (its own parser of arguments), model (the target's configuration), speculative
             (SpeculativeConfig), whole (what is checked of the whole configuration), done
    message  what stopped it there, empty when done
    kind     the exception's class
    fields   what SpeculativeConfig holds of the fields that were given
    dropped  the given fields that it does not hold: old versions drop what they do not know without a word
"""

from __future__ import annotations

import contextlib
import enum
import importlib
import importlib.machinery
import io
import json
import os
import signal
import sys
import types
from pathlib import Path
from typing import Any

SECONDS = 300


def parser_module() -> Any:
    """Where the server's own arguments are defined has moved between folders."""
    root = Path(str(importlib.import_module("vllm").__file__)).parent
    for file in sorted(root.glob("entrypoints/**/cli_args.py")):
        if "def make_arg_parser" in file.read_text(encoding="utf-8"):
            return importlib.import_module("vllm." + ".".join(file.relative_to(root).with_suffix("").parts))
    raise ImportError("no make_arg_parser under vllm/entrypoints")


def new_parser(module: Any) -> Any:
    parser: Any = None
    for name in ("vllm.utils.argparse_utils", "vllm.utils"):
        with contextlib.suppress(ImportError, AttributeError):
            parser = importlib.import_module(name).FlexibleArgumentParser
            break
    return module.make_arg_parser(parser())


def look_at_models_here() -> None:
    """The registry looks at a model's class in a new process, to keep CUDA out of this one: half a minute each."""
    with contextlib.suppress(ImportError, AttributeError):
        registry: Any = importlib.import_module("vllm.model_executor.models.registry")
        registry._run_in_subprocess = lambda look: look()
        importlib.import_module("vllm.model_executor.models.llama")


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def plain(value: Any) -> Any:
    """The value as JSON has it: what is an object of the engine's own becomes text."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, enum.Enum):
        return value.name
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def asked(argv: list[str], given: list[str]) -> dict[str, Any]:
    """One answer; `given` are the fields of the speculative configuration as they stand in argv."""
    engine_args: Any = importlib.import_module("vllm.engine.arg_utils").AsyncEngineArgs
    answer: dict[str, Any] = {"stage": "parser", "message": "", "kind": "", "fields": {}}
    original = engine_args.create_speculative_config

    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer["stage"] = "speculative"
        config = original(self, *args, **kwargs)
        if config is not None:
            answer["fields"] = {name: plain(getattr(config, name)) for name in given if hasattr(config, name)}
            answer["dropped"] = [name for name in given if not hasattr(config, name)]
        answer["stage"] = "whole"
        return config

    engine_args.create_speculative_config = watched
    said = io.StringIO()
    try:
        module = parser_module()
        with contextlib.redirect_stderr(said):
            namespace = new_parser(module).parse_args(argv)
            check = getattr(module, "validate_parsed_serve_args", None)
            if check:
                check(namespace)
        arguments = engine_args.from_cli_args(namespace)
        answer["stage"] = "model"
        arguments.create_engine_config()
        answer["stage"] = "done"
    except SystemExit:
        answer.update(kind="SystemExit", message=last_line(said.getvalue()))
    except BaseException as error:
        answer.update(kind=type(error).__name__, message=" ".join(str(error).split()))
    return answer


def stand_in(package: str) -> None:
    """A package that the configuration looks for and that only decoding would import."""
    module = types.ModuleType(package)
    module.__spec__ = importlib.machinery.ModuleSpec(package, None)
    sys.modules[package] = module


def apart(case: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: a configuration changes the environment, and may not come back."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(SECONDS)
        os.environ.update(case.get("env", {}))
        for package in case.get("packages", []):
            stand_in(package)
        with os.fdopen(write, "w") as out:
            json.dump(asked(case["argv"], case.get("fields", [])), out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as into:
        text = into.read()
    os.waitpid(child, 0)
    if text:
        answer: dict[str, Any] = json.loads(text)
        return answer
    return {
        "stage": "parser",
        "message": f"no answer within {SECONDS} s, or it crashed",
        "kind": "Timeout",
        "fields": {},
    }


def main(path: str) -> None:
    cases = json.load(sys.stdin)
    # Imported once, before the processes part.
    parser_module()
    look_at_models_here()
    importlib.import_module("vllm.engine.arg_utils")
    with Path(path).open("w", encoding="utf-8") as out:
        for name, case in cases.items():
            print(json.dumps({"name": name, **apart(case)}), file=out, flush=True)


main(sys.argv[1])

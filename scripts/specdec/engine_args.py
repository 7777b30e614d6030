"""The engine's command line, read: any vLLM version's flags become one typed object.

Never raises for what a person wrote: what cannot be read stands in `EngineArgs.errors`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from specdec.shell import commands


@dataclass
class SpeculativeArgs:
    """Speculation as the engine was asked for it, whichever way it was spelled.

    method    as written, else as the engine infers it: "ngram" for the model "ngram", otherwise "draft_model"
    schedule  [(from, to, tokens)], bounds inclusive
    raw       the JSON object, or the same fields gathered from single flags
    legacy    it came from the flags of 0.7 and before (--speculative-model, ...)
    """

    method: str
    model: str | None = None
    revision: str | None = None
    num_speculative_tokens: int | None = None
    draft_tensor_parallel_size: int | None = None
    quantization: str | None = None
    max_model_len: int | None = None
    schedule: list[tuple[int, int, int]] = field(default_factory=list)
    prompt_lookup_min: int | None = None
    prompt_lookup_max: int | None = None
    method_given: bool = False
    legacy: bool = False
    raw: dict[str, Any] = field(default_factory=dict)


@dataclass
class EngineArgs:
    """None: the flag is not there and the engine's default holds.

    raw     every (flag, value) in order, flags spelled with hyphens, value None for a switch
    index   the place in argv of the last occurrence of each flag, for line numbers
    errors  what could not be read, in words
    """

    model: str | None = None
    revision: str | None = None
    served_model_names: list[str] = field(default_factory=list)
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    dtype: str | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_memory_bytes: int | None = None
    enforce_eager: bool = False
    trust_remote_code: bool = False
    enable_lora: bool = False
    shutdown_timeout: int | None = None
    port: int | None = None
    speculative: SpeculativeArgs | None = None
    raw: list[tuple[str, str | None]] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def value(self, *flags: str) -> str | None:
        """The last value given to any of these spellings; argparse's own rule."""
        if not self.has(*flags):
            return None
        return next((value for flag, value in reversed(self.raw) if flag in flags), None)

    def has(self, *flags: str) -> bool:
        return any(flag in self.index for flag in flags)


# Short and alternative spellings of the engine's parser, to the name that we go by.
ALIASES = {
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-dp": "--data-parallel-size",
    "-q": "--quantization",
    "-sc": "--speculative-config",
    "-spec-draft-tp": "--speculative-draft-tensor-parallel-size",
}
SWITCHES = re.compile(r"--(no-.*|enforce-eager|trust-remote-code|use-v2-block-manager|(enable|disable)-.*)")
ODD_SWITCHES = ("--disable-access-log-for-endpoints",)  # named like a switch, and has a value
# Flags that we read take one value. Of any other nobody here knows how many: what follows it is its.
ONE_VALUE = {
    "--model", "--revision", "--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size", "--dtype",
    "--quantization", "--kv-cache-dtype", "--max-model-len", "--max-num-seqs", "--max-num-batched-tokens",
    "--gpu-memory-utilization", "--kv-cache-memory-bytes", "--shutdown-timeout", "--port", "--host",
    "--speculative-config", "--spec-method", "--spec-model", "--spec-tokens",
}  # fmt: skip
JSON_FLAG = "--speculative-config"

# Field of the JSON object -> single flag: those of 0.7 and before, and the short forms of 0.26 on.
LEGACY_FLAGS = {
    "model": "--speculative-model",
    "num_speculative_tokens": "--num-speculative-tokens",
    "draft_tensor_parallel_size": "--speculative-draft-tensor-parallel-size",
    "quantization": "--speculative-model-quantization",
    "max_model_len": "--speculative-max-model-len",
    "prompt_lookup_max": "--ngram-prompt-lookup-max",
    "prompt_lookup_min": "--ngram-prompt-lookup-min",
    "disable_by_batch_size": "--speculative-disable-by-batch-size",
}
SHORT_FLAGS = {"method": "--spec-method", "model": "--spec-model", "num_speculative_tokens": "--spec-tokens"}


def parse(argv: Sequence[str], engine_version: str | None = None) -> EngineArgs:
    """`argv` is command and arguments of the container, or the arguments alone.

    engine_version is not needed to read it; which flags that version has is for the rules to say.
    """
    del engine_version
    words = [str(word) for word in argv]
    args = EngineArgs()
    start = 0
    shell = shell_script(words)
    if shell is not None:
        try:
            words = plain_command(shell)
        except ValueError as error:
            args.errors.append(f"the shell script cannot be read: {error}")
            return args
    joined = _parted(args, words, 0)
    start = _after_entrypoint(words)
    if start < len(words) and not words[start].startswith("-"):
        joined = joined or _parted(args, words, start)
        start = max(start, _after_entrypoint(words))
        args.model = words[start]
        args.index["model"] = start
        start += 1
    _flags(args, words, start)
    if shell is not None:  # one element of the manifest holds them all
        args.index = dict.fromkeys(args.index, next((i for i, word in enumerate(argv) if str(word) == shell), 0))
    elif joined is not None:
        args.index = {flag: joined.element(position) for flag, position in args.index.items()}
    _typed(args)
    args.speculative = _speculative(args)
    return args


class _Joined(NamedTuple):
    """One element that holds several words: where it stands, and how many words it holds."""

    place: int
    words: int

    def element(self, position: int) -> int:
        """The element that the word at that position came from."""
        return position if position < self.place else max(position - self.words + 1, self.place)


def _parted(args: EngineArgs, words: list[str], place: int) -> _Joined | None:
    """Part an element that holds a whole command line, and say that it does: what starts the container does not."""
    word = words[place] if place < len(words) else ""
    if not re.search(r"\S\s+(-{1,2}[A-Za-z]|serve\b)", word) or word.startswith("-"):
        return None
    try:
        parts = shlex.split(word)
    except ValueError:
        parts = word.split()
    args.errors.append(f"{word[:40]!r}... is one element with {len(parts)} words in it")
    words[place : place + 1] = parts
    return _Joined(place, len(parts))


def shell_script(words: Sequence[str]) -> str | None:
    """The script of `sh -c SCRIPT` (bash, /bin/sh, with options such as -ec or -lc), None when there is no shell."""
    if not words or words[0].rsplit("/", 1)[-1] not in ("sh", "bash", "ash", "dash", "zsh"):
        return None
    for position, word in enumerate(words[1:], start=1):
        if re.fullmatch(r"-[a-z]*c", word):
            return words[position + 1] if position + 1 < len(words) else ""
        if not word.startswith("-"):
            return None
    return None


def plain_command(script: str) -> list[str]:
    """The engine's command in a shell script, or [] when there is none. Raises ValueError on unbalanced quotes."""
    return next((command for command in commands(script) if is_engine_command(command)), [])


def is_engine_command(words: Sequence[str]) -> bool:
    """Whether this command line starts a vLLM API server."""
    return _after_entrypoint(words) > 0


def _after_entrypoint(words: Sequence[str]) -> int:
    """How many words come before the engine's own arguments."""
    for position, word in enumerate(words):
        if word.rsplit("/", 1)[-1] == "vllm" and list(words[position + 1 : position + 2]) == ["serve"]:
            return position + 2
        if word == "vllm.entrypoints.cli.main" and list(words[position + 1 : position + 2]) == ["serve"]:
            return position + 2
        if re.search(r"vllm\.entrypoints\.(openai\.)?api_server$|vllm/entrypoints/openai/api_server\.py$", word):
            return position + 1
        if word == "serve" and position == 0:
            return 1
    return 0


def canonical(flag: str) -> str:
    """`--max_model_len` is `--max-model-len` to the engine's parser; what follows a dot is a JSON key and stays."""
    flag, dot, key = flag.partition(".")
    if flag.startswith("--"):
        flag = flag.replace("_", "-")
    return ALIASES.get(flag, flag) + dot + key


def _flags(args: EngineArgs, words: list[str], start: int) -> None:
    position = start
    while position < len(words):
        word, here = words[position], position
        position += 1
        if not word.startswith("-") or word in ("-", "--"):
            args.errors.append(f"{word!r} belongs to no flag")
            continue
        name, equals, attached = word.partition("=")
        flag = canonical(name)
        if flag.startswith("-") and not re.fullmatch(r"-{1,2}[A-Za-z0-9][\w.+-]*", flag):
            args.errors.append(f"{word!r} is not a flag")
            continue
        value: str | None = attached if equals else None
        switch = SWITCHES.fullmatch(flag) is not None and flag not in ODD_SWITCHES
        if not equals and (not switch or words[position : position + 1] in (["True"], ["true"], ["False"], ["false"])):
            values = []
            while position < len(words) and _is_value(words[position]):
                values.append(words[position])
                position += 1
                if switch or flag in ONE_VALUE:
                    break
            value = " ".join(values) if values else None
            if flag == "--served-model-name":
                args.served_model_names = values
        elif flag == "--served-model-name":
            args.served_model_names = [attached]
        args.raw.append((flag, value))
        args.index[flag] = here


def _is_value(word: str) -> bool:
    return not word.startswith("-") or bool(re.fullmatch(r"-\d+(\.\d+)?", word)) or word == "-"


def _typed(args: EngineArgs) -> None:
    def read(flag: str, convert: Callable[[str], Any]) -> Any:
        if not args.has(flag):
            return None
        value = args.value(flag)
        if value is None:
            args.errors.append(f"{flag} has no value")
            return None
        try:
            return convert(value)
        except (ValueError, OverflowError):
            args.errors.append(f"{flag} is {value!r}, not a number")
            return None

    args.model = args.value("--model") or args.model
    args.revision = args.value("--revision")
    args.tensor_parallel_size = read("--tensor-parallel-size", int) or 1
    args.pipeline_parallel_size = read("--pipeline-parallel-size", int) or 1
    args.data_parallel_size = read("--data-parallel-size", int) or 1
    args.dtype = args.value("--dtype")
    args.quantization = args.value("--quantization")
    args.kv_cache_dtype = args.value("--kv-cache-dtype")
    args.max_model_len = read("--max-model-len", length)
    args.max_num_seqs = read("--max-num-seqs", count)
    args.max_num_batched_tokens = read("--max-num-batched-tokens", count)
    args.gpu_memory_utilization = read("--gpu-memory-utilization", float)
    args.kv_cache_memory_bytes = read("--kv-cache-memory-bytes", length) or read("--kv-cache-memory", length)
    args.shutdown_timeout = read("--shutdown-timeout", int)
    args.port = read("--port", int)
    args.enforce_eager = _switch(args, "enforce-eager")
    args.trust_remote_code = _switch(args, "trust-remote-code")
    args.enable_lora = _switch(args, "enable-lora")


def _switch(args: EngineArgs, name: str) -> bool:
    last = next((pair for pair in reversed(args.raw) if pair[0] in (f"--{name}", f"--no-{name}")), None)
    return last is not None and last[0] == f"--{name}" and (last[1] or "true").lower() not in ("false", "0")


_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def length(text: str) -> int | None:
    """The engine's readable integers: "32k" is 32,000, "32K" is 32,768, "auto" and "-1" are None.

    Raises ValueError on anything else. Source: human_readable_int of vllm/engine/arg_utils.py.
    """
    if text in ("auto", "-1"):
        return None
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)([kmgt])", text, re.ASCII):
        return int(float(match.group(1)) * _UNITS[match.group(2)])
    if match := re.fullmatch(r"(\d+)([KMGT])", text, re.ASCII):
        return int(match.group(1)) * _UNITS[match.group(2)]
    return int(text)


def count(text: str) -> int:
    """A readable integer that has no "auto": -1 is a number here. Raises ValueError on anything else."""
    found = length(text)
    return int(text) if found is None else found


def _speculative(args: EngineArgs) -> SpeculativeArgs | None:
    fields: dict[str, Any] = {}
    given = _json_object(args, args.value(JSON_FLAG)) if args.has(JSON_FLAG) else None
    fields.update({name.replace("-", "_"): value for name, value in (given or {}).items()})
    for flag, value in args.raw:
        if flag.startswith(JSON_FLAG + "."):
            fields[flag.removeprefix(JSON_FLAG + ".").replace("-", "_")] = _scalar(value)
    for name, flag in SHORT_FLAGS.items():
        if args.has(flag):
            fields[name] = _scalar(args.value(flag))
    legacy = {name: _scalar(args.value(flag)) for name, flag in LEGACY_FLAGS.items() if args.has(flag)}
    fields.update(legacy)
    asked = (
        given is not None or args.has(*SHORT_FLAGS.values()) or any(f.startswith(JSON_FLAG + ".") for f, _ in args.raw)
    )
    if not asked and not legacy.get("model"):
        return None
    model = _text(fields.get("model"))
    method = _text(fields.get("method"))
    inferred = "ngram" if model in ("ngram", "[ngram]") else "draft_model"
    return SpeculativeArgs(
        method=method or inferred,
        method_given=method is not None,
        model=None if model in ("ngram", "[ngram]") else model,
        revision=_text(fields.get("revision")),
        num_speculative_tokens=_integer(fields.get("num_speculative_tokens")),
        draft_tensor_parallel_size=_integer(fields.get("draft_tensor_parallel_size")),
        quantization=_text(fields.get("quantization")),
        max_model_len=_integer(fields.get("max_model_len")),
        schedule=_schedule(fields.get("num_speculative_tokens_per_batch_size")),
        prompt_lookup_min=_integer(fields.get("prompt_lookup_min")),
        prompt_lookup_max=_integer(fields.get("prompt_lookup_max")),
        legacy=bool(legacy),
        raw=fields,
    )


def _json_object(args: EngineArgs, text: str | None) -> dict[str, Any] | None:
    """The object, {} for what cannot be read; None for `null`, which asks for no speculation."""
    try:
        document = json.loads(text or "")
    except (ValueError, RecursionError) as error:
        args.errors.append(f"{JSON_FLAG} is not JSON: {error}")
        return {}
    if document is not None and not isinstance(document, dict):
        args.errors.append(f"{JSON_FLAG} has to be a JSON object, not {type(document).__name__}")
        return {}
    return document


def _scalar(value: str | None) -> Any:
    """A single flag's value as the JSON object would hold it."""
    if value is None:
        return True
    try:
        return json.loads(value) if re.fullmatch(r"-?\d{1,18}|true|false|null|\[.*\]", value, re.ASCII) else value
    except (ValueError, RecursionError):
        return value


def _integer(value: Any) -> int | None:
    """The number; digits in quotes are one too, as they are to the engine."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value, re.ASCII):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _schedule(value: Any) -> list[tuple[int, int, int]]:
    if not isinstance(value, list):
        return []
    return [
        (row[0], row[1], row[2])
        for row in value
        if isinstance(row, list) and len(row) == 3 and all(_integer(item) is not None for item in row)
    ]

"""What an engine's log says that it is doing, and why it gave up."""

from __future__ import annotations

import re
from collections.abc import Sequence

# (pattern, what it means for people). The last line that matches any of them is the phase. The lines are vLLM's own:
# https://github.com/vllm-project/vllm (model_loader, gpu_worker, kv_cache_utils, compilation, api_server).
PHASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"[Ii]nitializing (?:a V1|an) LLM engine", "starting the engine"),
        (r"Starting to load model (\S+?)\.*$", "loading {0}"),
        (r"Loading (?:safetensors|pt|np_cache) checkpoint shards:?\s*(\d+%)", "loading weights {0}"),
        (r"Loading drafter model", "loading the draft"),
        (r"Loading weights took ([\d.]+) s", "weights loaded in {0} s"),
        (r"Model loading took ([\d.]+ GiB|[\d.]+ GB)", "model loaded, {0}"),
        (r"torch\.compile|[Cc]ompiling a graph", "compiling"),
        (r"Memory profiling takes", "memory profiled"),
        (r"Available KV cache memory: ([\d.]+ GiB)", "KV cache {0}"),
        (r"KV cache size: ([\d,]+) tokens", "KV cache of {0} tokens"),
        (r"Capturing CUDA graphs?[^:]*:?\s*(\d+%)?", "capturing CUDA graphs {0}"),
        (r"Graph capturing finished", "CUDA graphs captured"),
        (r"init engine .* took ([\d.]+) s", "engine ready in {0} s"),
        (r"Started server process|Starting vLLM (?:API )?server", "starting the server"),
        (r"Application startup complete", "serving"),
    )
)

# Lines that name the cause when an engine stops. The first of the innermost error is what a person needs.
CAUSES = re.compile(
    r"(?:\b(?:ValueError|AssertionError|NotImplementedError|ImportError|ModuleNotFoundError|KeyError|OSError|"
    r"RuntimeError|FileNotFoundError|PermissionError|LocalEntryNotFoundError|GatedRepoError|RepositoryNotFoundError|"
    r"pydantic_core\.\S*ValidationError|ValidationError|torch\S*OutOfMemoryError)\b.*|"
    r"error: (?:unrecognized arguments|argument|the following).*|CUDA out of memory.*|No available memory.*)"
)
# Errors that only say that another process had one.
CONSEQUENCES = re.compile(
    r"Engine core initialization failed|Engine process failed to start|See root cause above|EngineDeadError"
)
PREFIX = re.compile(
    r"^\s*(?:\((?:APIServer|EngineCore|Worker|VllmWorker)[^)]*\)\s*)*(?:(?:INFO|WARNING|ERROR)\s+\S+\s+\S+\s+\[[^\]]*\]\s*)?"
)
# A pod can only be helped by changing what it was told: to wait for another try is a waste.
HOPELESS = re.compile(
    r"\b(?:ValueError|ValidationError|NotImplementedError|AssertionError)\b|"
    r"error: (?:unrecognized|argument)|GatedRepo|RepositoryNotFound"
)


COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def phase_of(lines: Sequence[str]) -> str | None:
    """The latest phase that the log shows, None when it shows none."""
    for line in reversed(lines):
        # A progress bar rewrites its line: what counts is its last state.
        for pattern, text in reversed(PHASES):
            if match := pattern.search(line.split("\r")[-1] or line):
                return text.format(*(group or "" for group in match.groups())).strip()
    return None


def last_line(lines: Sequence[str]) -> str | None:
    """The last line with anything in it, without the engine's prefix, at most 100 characters."""
    text = next((line for line in reversed(lines) if line.strip()), None)
    return plain(text.split("\r")[-1])[:100] if text else None


def plain(line: str) -> str:
    """A log line without colour, process, level, date and place."""
    return PREFIX.sub("", COLOUR.sub("", line), count=1).strip()


def causes(lines: Sequence[str], limit: int = 4) -> list[str]:
    """The lines that name why the engine stopped, causes before consequences, each once."""
    found: list[str] = []
    for index, line in enumerate(lines):
        if match := CAUSES.search(line):
            text = match.group(0).strip()
            # pydantic says what is wrong on the lines below its own.
            if "ValidationError" in text:
                below = [plain(row) for row in lines[index + 1 : index + 4]]
                text = " ".join([text, *(row for row in below if row and not row.startswith("For further"))])
            if text not in found:
                found.append(text)
    real = [text for text in found if not CONSEQUENCES.search(text)]
    return (real or found)[-limit:]


def hopeless(lines: Sequence[str]) -> bool:
    """Whether another try would end the same way."""
    return any(HOPELESS.search(cause) for cause in causes(lines))

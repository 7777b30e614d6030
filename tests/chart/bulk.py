"""Many engines in few renderings: each either comes out or is refused with an error of ours that names it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .conftest import CHART, Rendering

Engines = dict[str, dict[str, Any]]
REFUSAL = re.compile(r"(SD\d{3}): engines\.([a-z0-9-]+)\b(.*)", re.DOTALL)
TRACE = re.compile(r"nil pointer|wrong type|can't evaluate|error converting|reflect|error calling (?!fail|include)")


@dataclass
class Settled:
    renderings: dict[str, Rendering] = field(default_factory=dict)
    refusals: dict[str, tuple[str, str]] = field(default_factory=dict)  # code, message


def settle(helm: str, engines: Engines, shared: dict[str, Any], size: int = 20) -> Settled:
    """Renders the engines in releases of `size`; what is refused is taken out and the others are tried again.

    Fails when Helm stops with anything but an error of ours for one of the engines.
    """
    settled = Settled()
    for chunk in _chunks(engines, size):
        left = dict(chunk)
        while left:
            done = _template(helm, shared | {"engines": left})
            if done.returncode == 0:
                rendering = Rendering(done.stdout)
                settled.renderings |= dict.fromkeys(left, rendering)
                break
            match = REFUSAL.search(done.stderr)
            assert match, f"no error of ours for {list(left)}: {done.stderr}"
            assert match.group(2) in left, done.stderr
            assert not TRACE.search(done.stderr.split(match.group(1))[-1]), done.stderr
            settled.refusals[match.group(2)] = (match.group(1), match.group(3))
            del left[match.group(2)]
    return settled


def _chunks(engines: Engines, size: int) -> Iterator[Engines]:
    names = list(engines)
    for i in range(0, len(names), size):
        yield {name: engines[name] for name in names[i : i + size]}


def _template(helm: str, values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    command = [helm, "template", "speculative", str(CHART), "-n", "ai-inference", "--values", "-"]
    run = partial(subprocess.run, capture_output=True, text=True, check=False)
    return run(command, input=json.dumps(values, ensure_ascii=False))

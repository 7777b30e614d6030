"""What a plan is made of: an environment's values or anyone's manifests, to engines; model folders by name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from specdec.errors import SpecdecError

if TYPE_CHECKING:
    from specdec.manifests import EngineWorkload


def engines_of(
    what: list[str], values: list[Path], set_values: list[str], engine_version: str | None = None
) -> list[EngineWorkload]:
    """The engines of an environment (rendered), of values files (rendered) or of manifests. Raises SpecdecError on
    none."""
    from specdec import manifests

    parsed = [manifest for text, file in texts(what, values, set_values) for manifest in manifests.parse(text, file)]
    found = manifests.engines(parsed, engine_version)
    if not found:
        raise SpecdecError(
            "no vLLM engine in these manifests",
            code="no-engine",
            file=what[0] if what else None,
            fix="a workload whose container runs vLLM's API server",
        )
    return found


def texts(what: list[str], values: list[Path], set_values: list[str]) -> list[tuple[str, str]]:
    files = [w for w in what if w == "-" or w.endswith((".yaml", ".yml", ".json")) or Path(w).is_file()]
    if files and (values or set_values):
        raise SpecdecError(
            "manifests and values together",
            code="usage",
            fix="values are rendered into manifests: give the one or the other",
        )
    if files and len(files) == len(what):
        return [(sys.stdin.read() if f == "-" else read(Path(f)), "<stdin>" if f == "-" else f) for f in files]
    from specdec import helm
    from specdec.environments import Environment

    if len(what) > 1 or (what and values):
        raise SpecdecError(f"one environment, or files: {' '.join(what)}", code="usage")
    if not what and not values:
        raise SpecdecError("nothing to plan", code="usage", fix="specdec plan ENV, --values FILE, or a manifest")
    environment = Environment.named(what[0]) if what else Environment.of_files(values)
    text = helm.render(environment.values, set_values, environment.release, environment.namespace)
    return [(text, f"{environment.name} (rendered)")]


def read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise SpecdecError("no such file", code="manifest-missing", file=str(file)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise SpecdecError(f"not readable: {error}", code="manifest-broken", file=str(file)) from error


def configs_of(pairs: list[str]) -> dict[str, Path]:
    """--model-config NAME=DIR, as a mapping."""
    configs: dict[str, Path] = {}
    for pair in pairs:
        name, separator, folder = pair.partition("=")
        if not separator or not name or not folder:
            raise SpecdecError(f"--model-config {pair!r}", code="usage", fix="NAME=DIR")
        if not (Path(folder) / "config.json").is_file():
            raise SpecdecError("no config.json here", code="unknown-model", file=folder, path=name)
        configs[name] = Path(folder)
    return configs


def share(value: float, name: str) -> float:
    """A number from 0 to 1. Raises SpecdecError otherwise."""
    if not 0 <= value <= 1:
        raise SpecdecError(f"{name} {value}", code="bad-number", path=name, fix="between 0 and 1")
    return value

"""What a plan is made of: an environment's values or anyone's manifests, to engines; model folders by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from specdec import reading
from specdec.errors import SpecdecError

if TYPE_CHECKING:
    from specdec.manifests import EngineWorkload


def engines_of(
    what: list[str], values: list[Path], set_values: list[str], engine_version: str | None = None
) -> list[EngineWorkload]:
    """The engines of an environment (rendered), of values files (rendered) or of manifests. Raises SpecdecError on
    none."""
    from specdec import manifests

    read = texts(what, values, set_values)
    parsed = [manifest for text, file in read for manifest in manifests.parse(text, file)]
    found = manifests.engines(parsed, engine_version)
    if not found:
        file = ", ".join(dict.fromkeys(what)) or None
        fix = "a workload whose container runs vLLM's API server"
        if not parsed:
            fix = "manifests have apiVersion and kind; a values file is planned with --values FILE"
            raise SpecdecError("there is no Kubernetes object in it", code="no-engine", file=file, fix=fix)
        raise SpecdecError("no vLLM engine in these manifests", code="no-engine", file=file, fix=fix)
    return found


def texts(what: list[str], values: list[Path], set_values: list[str]) -> list[tuple[str, str]]:
    """(content, name) of manifests: files, folders, standard input (-), or what values or an environment render to."""
    files = [w for w in what if w == "-" or w.endswith((".yaml", ".yml", ".json")) or is_folder(w) or Path(w).is_file()]
    if files and (values or set_values):
        raise SpecdecError(
            "manifests and values together",
            code="usage",
            fix="values are rendered into manifests: give the one or the other",
        )
    if files and len(files) == len(what):
        return [pair for file in files for pair in contents(file)]
    from specdec import helm
    from specdec.environments import Environment

    for word in (w for w in what if "/" in w and not Path(w).exists()):
        raise SpecdecError(
            "no such file", code="manifest-missing", file=word, fix="a manifest, a folder, or an environment"
        )
    if len(what) > 1 or (what and values):
        raise SpecdecError(f"one environment, or files: {' '.join(what)}", code="usage")
    if not what and not values:
        raise SpecdecError("nothing to plan", code="usage", fix="specdec plan ENV, --values FILE, or a manifest")
    environment = Environment.named(what[0]) if what else Environment.of_files(values)
    text = helm.render(environment.values, set_values, environment.release, environment.namespace)
    return [(text, f"{environment.name} (rendered)")]


def is_folder(word: str) -> bool:
    """Whether it is a folder of manifests: an environment's name is first of all an environment."""
    from specdec import environments

    return bool(word) and Path(word).is_dir() and word not in environments.names()


def named(what: list[str]) -> list[str]:
    """What was given, with an environment's folder as its name: environments/prod is prod."""
    from specdec import environments

    root = environments.environments_dir().resolve()
    return [Path(w).resolve().name if is_folder(w) and Path(w).resolve().parent == root else w for w in what]


def contents(word: str) -> list[tuple[str, str]]:
    """(content, name) of a file, of the manifests in a folder, or of standard input."""
    if word == "-":
        return [(reading.text(word, code="manifest-broken"), "<stdin>")]
    files = reading.manifests_in(Path(word)) if is_folder(word) else [Path(word)]
    if not files:
        raise SpecdecError("no manifest in this folder", code="manifest-missing", file=word, fix="files *.yaml")
    if not files[0].exists():
        raise SpecdecError(
            "no such file", code="manifest-missing", file=word, fix="a manifest, a folder, or an environment"
        )
    return [(reading.text(file, code="manifest-broken"), str(file)) for file in files]


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

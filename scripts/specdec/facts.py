"""The chart's files of facts: engine versions, accelerators, machines, models, prices. Each fact stands there once.

`SPECDEC_CHART` names another copy of the chart; otherwise it is the one of this repository.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from specdec.errors import SpecdecError


def chart_dir() -> Path:
    """The Helm chart's folder. Raises SpecdecError when there is none."""
    configured = os.environ.get("SPECDEC_CHART")
    chart = Path(configured) if configured else Path(__file__).resolve().parents[2] / "helm" / "vllm-speculative"
    if not (chart / "files").is_dir():
        raise SpecdecError(
            "no Helm chart here",
            code="chart-missing",
            file=str(chart),
            fix="install specdec from a clone of the repository (pip install -e .) or set SPECDEC_CHART",
        )
    return chart


def files_dir() -> Path:
    return chart_dir() / "files"


@cache
def load(file: Path) -> dict[str, Any]:
    """One file of facts as a mapping. Raises SpecdecError when it is missing or not a mapping."""
    import yaml

    try:
        document = yaml.load(file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except FileNotFoundError as error:
        raise SpecdecError("the file of facts is missing", code="facts-missing", file=str(file)) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SpecdecError(f"not readable as YAML: {error}", code="facts-broken", file=str(file)) from error
    if not isinstance(document, dict):
        raise SpecdecError("has to be a mapping", code="facts-broken", file=str(file))
    return document


def engines() -> dict[str, Any]:
    """engines.yaml as it stands."""
    return load(files_dir() / "engines.yaml")


def surfaces() -> dict[str, Any]:
    """surfaces.yaml as it stands: names of every engine version that have no value of the chart's."""
    return load(files_dir() / "surfaces.yaml")


def metrics(version: str | None, core: str = "v1") -> list[dict[str, Any]]:
    """What that version exports on /metrics without being asked for what is hidden; none for an unknown version."""
    rows = in_range(load(files_dir() / "metrics.yaml")["metrics"], version)
    return [row for row in rows if row["core"] == core and not row.get("hidden")]


def metric_name(role: str, version: str | None, core: str = "v1") -> str | None:
    """What the version calls a metric, e.g. `metric_name("kvCacheUsage", "0.9.1")`; None where it has none."""
    return next((str(row["name"]) for row in metrics(version, core) if row.get("role") == role), None)


def accelerators() -> dict[str, Any]:
    """Accelerators by type, e.g. `accelerators()["h100-80gb"]["memoryGiB"]`."""
    return _section("accelerators.yaml", "accelerators")


def machines() -> dict[str, Any]:
    """Machine shapes by cloud and name, e.g. `machines()["gke"]["a3-highgpu-8g"]["count"]`."""
    return _section("accelerators.yaml", "machines")


def models() -> dict[str, Any]:
    """Models and heads by their Hugging Face name: config and checkpointBytes."""
    return _section("models.yaml", "models")


def prices() -> dict[str, Any]:
    """prices.yaml as it stands."""
    return load(files_dir() / "prices.yaml")


def _section(file: str, key: str) -> dict[str, Any]:
    section = load(files_dir() / file).get(key)
    if not isinstance(section, dict):
        raise SpecdecError("has to be a mapping", code="facts-broken", file=str(files_dir() / file), path=key)
    return section


Version = tuple[int, ...]
_RELEASE = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:\.?(?:post|rc|dev)\d+)?(?=$|[^\w.])", re.ASCII)


@cache
def version_key(version: str) -> Version:
    """Sortable numbers, always four: "v0.10.1.1-cu128" is (0, 10, 1, 1). Raises SpecdecError on another form."""
    match = _RELEASE.match(version)
    if not match:
        raise SpecdecError(
            f"{version!r} is not an engine version", code="bad-version", fix="three numbers, for example 0.32.0"
        )
    return tuple(int(number or 0) for number in match.groups())


def known_versions() -> str:
    """The engine versions that the tables answer for, in words: "0.6.3 to before 0.34.0"."""
    return "; ".join(f"{row['from']} to before {row['before']}" for row in engines()["versions"])


def is_newer(version: str) -> bool:
    """Whether it is above every version that the tables answer for. Raises SpecdecError for what is no version."""
    return version_key(version) >= max(version_key(row["before"]) for row in engines()["versions"])


def nearest_version(version: str) -> str:
    """The known version to take in place of one that the tables do not answer for: the newest, or the oldest."""
    if not is_newer(version):
        return str(engines()["versions"][0]["from"])
    firsts = [row["from"] for argument in engines()["arguments"] for row in argument["rows"]]
    for part in ("flags", "fields", "methods"):
        firsts += [bounds[0] if isinstance(bounds, list) else bounds for bounds in surfaces()[part].values()]
    return str(max(firsts, key=version_key))


def known_version(version: str, path: str = "--engine-version") -> str:
    """A version that a person gave, without a v before it. `path`: the option or key it was given with.

    Raises SpecdecError (unknown-version) with the known ones and the nearest where the tables answer for no such.
    """
    plain = version.strip().removeprefix("v")
    try:
        version_key(plain)
    except SpecdecError as error:
        error.path = path
        raise
    if not in_range(engines()["versions"], plain):
        raise SpecdecError(
            f"vLLM {plain} is not known",
            code="unknown-version",
            path=path,
            fix=f"known: {known_versions()}; the nearest is {nearest_version(plain)}",
        )
    return plain


def version_text(key: Version) -> str:
    """The version that such numbers stand for: (0, 10, 1, 1) is 0.10.1.1."""
    return ".".join(str(number) for number in (key if key[3] else key[:3]))


def in_range(rows: list[dict[str, Any]], version: str | None) -> list[dict[str, Any]]:
    """Rows of half-open ranges, from <= version < before, that hold for the version; none for an unknown one."""
    try:
        key = version_key(version or "")
    except SpecdecError:
        return []
    return [
        row
        for row in rows
        if version_key(str(row.get("from", "0.0.0"))) <= key
        and ("before" not in row or key < version_key(str(row["before"])))
    ]


def default_runner(version: str | None, method: str | None = None, cpu: bool = False) -> str:
    """The model runner that an engine takes when it is not told: "v0", "v1" or "v2" (engines.yaml)."""
    row = next(iter(in_range(engines().get("runners", []), version)), {})
    if cpu and "cpu" in row:
        return str(row["cpu"])
    alone = [runner for runner, methods in row.get("only", {}).items() if method in methods]
    return str(alone[0] if alone else row.get("default", "v1"))


def version_of_tag(tag: str) -> str | None:
    """The engine version that an image tag states: "v0.6.3.post1" is 0.6.3.post1, None for latest and nightly."""
    match = _RELEASE.match(tag)
    return match.group(0).removeprefix("v") if match else None

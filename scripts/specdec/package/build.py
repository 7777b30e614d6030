"""`helm package`, after what a release has to be was checked: version, changelog, digests."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec import facts, helm
from specdec.errors import SpecdecError
from specdec.package.registry import DIGEST

PINNED = "pinned-images.yaml"
HEAD = """\
# The images that this chart was released with, by digest: a tag can be moved, a digest cannot.
# helm upgrade --install speculative CHART -f {file} -f your-values.yaml
"""


@dataclass(frozen=True)
class Package:
    """The files that were made. `sha256` is of the chart's archive."""

    chart: Path
    pinned: Path
    version: str
    sha256: str


def images(chart: Path) -> dict[str, str]:
    """repository:tag of the images that the chart takes by default: engine and router."""
    values, meta = _yaml(chart / "values.yaml"), _yaml(chart / "Chart.yaml")
    engine, router = values["engine"]["image"], values["router"]["image"]
    repository = engine["repository"] or "vllm/vllm-openai"
    tag = engine["tag"] or f"v{meta['appVersion']}"
    return {
        "engine": f"{repository}:{tag}",
        "router": f"{router['repository']}:{router['tag']}",
    }


def package(output: Path, tag: str | None, digests: Mapping[str, str], resolve: Callable[[str], str]) -> Package:
    """Packages the chart into `output`, with pinned-images.yaml in it and beside it.

    tag       the release's tag, "v0.1.0", which has to be the chart's version
    digests   known digests by repository:tag; `resolve` is asked for the others

    Raises SpecdecError for a tag that is another version, a version without a changelog entry, or a missing digest.
    """
    chart = facts.chart_dir()
    version = str(_yaml(chart / "Chart.yaml")["version"])
    _check_tag(tag, version, chart)
    found = images(chart)
    unknown = sorted(set(digests) - set(found.values()))
    if unknown:
        raise SpecdecError(f"{unknown[0]} is no image of the chart", code="SD890", path="--digest",
                           fix="one of " + ", ".join(found.values()))  # fmt: skip
    pinned = {part: digests.get(image) or resolve(image) for part, image in found.items()}
    for part, digest in pinned.items():
        if DIGEST.fullmatch(digest) is None:
            raise SpecdecError(f"{digest!r} is no digest of {found[part]}", code="SD890", fix="sha256 and 64 digits")
    output.mkdir(parents=True, exist_ok=True)
    beside = output / PINNED
    beside.write_text(_pinned(pinned, found, str(_yaml(chart / "Chart.yaml")["appVersion"])), encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="specdec-package-") as scratch:
        copy = Path(scratch) / chart.name
        shutil.copytree(chart, copy)
        shutil.copy(beside, copy / PINNED)
        made = _helm_package(copy, output)
    return Package(made, beside, version, hashlib.sha256(made.read_bytes()).hexdigest())


def _pinned(digests: Mapping[str, str], found: Mapping[str, str], version: str) -> str:
    """Values that pin: a digest says no version, so the engine's stands beside it."""
    import yaml

    document = {
        "engine": {"version": version, "image": {"digest": digests["engine"]}},
        "router": {"image": {"digest": digests["router"]}},
    }
    names = "".join(f"# {part}: {image}\n" for part, image in found.items())
    return HEAD.format(file=PINNED) + names + yaml.safe_dump(document, sort_keys=False)


def _check_tag(tag: str | None, version: str, chart: Path) -> None:
    if tag is None:
        return
    if tag != f"v{version}":
        raise SpecdecError(
            f"the tag is {tag}, the chart's version {version}",
            code="SD891",
            file=str(chart / "Chart.yaml"),
            path="version",
            fix=f"tag v{version}, or version: {tag.removeprefix('v')}",
        )
    changelog = chart.parents[1] / "CHANGELOG.md"
    if changelog.is_file() and version not in changelog.read_text(encoding="utf-8"):
        raise SpecdecError(
            f"no entry on {version}", code="SD892", file=str(changelog), fix=f"a heading {version} with what changed"
        )


def _helm_package(chart: Path, output: Path) -> Path:
    command = [helm.executable(), "package", str(chart), "--destination", str(output)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SpecdecError(f"helm package: {run.stderr.strip()}", code="SD893", file=str(chart))
    return Path(run.stdout.rsplit(": ", 1)[-1].strip())


def _yaml(file: Path) -> dict[str, Any]:
    return dict(facts.load(file))

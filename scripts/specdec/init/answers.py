"""What a new environment is made from: answers on the command line, by a person, or by what the facts say."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specdec import environments, facts
from specdec.errors import SpecdecError, unknown

CLOUDS = {"gke": "us-central1", "eks": "us-east-1"}
NONE = "none"
# Ways to buy that need no name of a reservation; the first that a GPU has is the default.
WITHOUT_RESERVATION = ("on_demand", "spot", "flex_start", "queued")
# Older organisations' projects have their domain in front.
PROJECT = re.compile(r"([a-z0-9.-]+\.[a-z]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
NAME = re.compile(r"[a-z][a-z0-9-]{0,21}[a-z0-9]")


@dataclass(frozen=True)
class Answers:
    """tensor_parallel_size None: the smallest that fits. draft None: the method needs none, or there is none."""

    name: str
    cloud: str
    region: str
    project: str
    accelerator: str
    provisioning: str
    model: str
    revision: str
    method: str
    draft: str | None
    draft_revision: str | None
    quantization: str
    replicas: int
    max_model_len: int
    tensor_parallel_size: int | None


def check_name(name: str) -> None:
    """Raises SpecdecError for a name that is taken, or that no folder and no cluster should have."""
    if NAME.fullmatch(name) is None:
        proposal = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-0123456789")[:23].strip("-")
        raise SpecdecError(
            f"{name!r} cannot be an environment's name",
            code="SD882",
            fix="2 to 23 lower-case letters, digits and hyphens, a letter first"
            + (f": {proposal}" if NAME.fullmatch(proposal) else ""),
        )
    if name in environments.names():
        raise SpecdecError(
            f"there is an environment {name}",
            code="SD883",
            file=str(environments.environments_dir() / name),
            fix="another name, or change the one that is there",
        )


def likely_misspelt(name: str) -> str | None:
    """An environment that was perhaps meant: letters changed places, or one is missing. None where none is near."""
    for known in environments.names():
        shorter, longer = sorted((name, known), key=len)
        one_missing = any(longer[:place] + longer[place + 1 :] == shorter for place in range(len(longer)))
        # prod2 beside prod is a new one; prdo is not.
        if not name.startswith(known) and (sorted(name) == sorted(known) or one_missing):
            return known
    return None


def collect(name: str, given: dict[str, Any], ask: Callable[[str, str, list[str]], str]) -> Answers:
    """Answers from `given`, and from `ask(question, default, choices)` what is None there.

    Raises SpecdecError for an answer that does not exist, with the nearest that does.
    """
    check_name(name)

    def answer(key: str, question: str, default: str, choices: list[str] | None = None) -> str:
        value = given.get(key)
        value = str(value) if value is not None else ask(question, default, choices or [])
        if choices and value not in choices:
            raise unknown(key, value, choices, path=f"--{key.replace('_', '-')}")
        return value

    cloud = answer("cloud", "Cloud", "gke", list(CLOUDS))
    shapes = facts.machines()[cloud]
    sold = sorted({shape["accelerator"] for shape in shapes.values()})
    accelerator = given.get("accelerator") or ask("GPU", "l4" if cloud == "gke" else "a10g", sold)
    if accelerator not in sold:
        raise _no_accelerator(cloud, accelerator, sold)
    ways = {w for s in shapes.values() if s["accelerator"] == accelerator for w in s["provisioning"]}
    bought = [way for way in WITHOUT_RESERVATION if way in ways]
    provisioning = answer("provisioning", "How the machines are bought", bought[0], bought)
    region = answer("region", "Region", CLOUDS[cloud])
    project = _project(answer("project", "Project", "my-project")) if cloud == "gke" else ""
    model = answer("model", "Target model", "meta-llama/Llama-3.1-8B-Instruct")
    method = answer("method", "Speculation", "ngram", _methods())
    draft = answer("draft", "Draft model or head", "") if _needs_draft(method) else None
    if cloud != "gke":
        _unused(given, ("project",), cloud, "--cloud gke")
    if draft is None:
        _unused(given, ("draft", "draft_revision"), method, "--method draft_model, or eagle3 for a head")
    if draft == "":
        raise SpecdecError(f"{method} needs a draft", code="SD884", path="--draft", fix="org/name on the Hub")
    size = given.get("tensor_parallel_size")
    return Answers(
        name=name,
        cloud=cloud,
        region=region,
        project=project,
        accelerator=accelerator,
        provisioning=provisioning,
        model=model,
        revision=_revision(model, given.get("revision"), "--revision"),
        method=method,
        draft=draft,
        draft_revision=_revision(draft, given.get("draft_revision"), "--draft-revision") if draft else None,
        quantization=str(given.get("quantization") or ""),
        replicas=int(given.get("replicas") or 1),
        max_model_len=int(given.get("max_model_len") or 8192),
        tensor_parallel_size=int(size) if size else None,
    )


def _unused(given: dict[str, Any], keys: tuple[str, ...], by: str, instead: str) -> None:
    """Raises SpecdecError for an answer that was given and would be dropped."""
    for key in keys:
        if given.get(key):
            option = f"--{key.replace('_', '-')}"
            raise SpecdecError(
                f"{by} uses no {key.replace('_', ' ')}, and {given[key]} is given",
                code="SD889",
                path=option,
                fix=f"leave {option} out, or {instead}",
            )


def _project(name: str) -> str:
    """Raises SpecdecError for what cannot be a project's ID: https://cloud.google.com/resource-manager/docs/creating-managing-projects."""
    if PROJECT.fullmatch(name) is None:
        raise SpecdecError(
            f"{name!r} cannot be a Google Cloud project's ID",
            code="SD890",
            path="--project",
            fix="6 to 30 lower-case letters, digits and hyphens, a letter first, no hyphen last: gcloud projects list",
        )
    return name


def _methods() -> list[str]:
    return [*sorted(facts.engines()["methods"]), NONE]


def _needs_draft(method: str) -> bool:
    return method != NONE and bool(facts.engines()["methods"][method].get("needsModel"))


def _no_accelerator(cloud: str, accelerator: str, sold: list[str]) -> SpecdecError:
    if accelerator in facts.accelerators():
        instead = "l4" if (cloud, accelerator) == ("gke", "a10g") else ", ".join(sold)
        return SpecdecError(
            f"{cloud} has no {accelerator}", code="SD885", path="--accelerator", fix=f"on {cloud}: {instead}"
        )
    return unknown("accelerator", accelerator, sold, path="--accelerator")


def _revision(model: str, given: str | None, option: str) -> str:
    """A commit: as given, as another environment pins it, or the Hub's newest. Raises SpecdecError where none is known.

    A branch or tag can change under a running release, so the chart wants 40 hexadecimal digits.
    """
    if given:
        if re.fullmatch(r"[0-9a-f]{40}", given) is None:
            raise SpecdecError(
                f"{given!r} is no commit", code="SD886", path=option, fix="40 hexadecimal digits, from the model's page"
            )
        return given
    found = _pinned().get(model) or _on_hub(model)
    if found is None:
        raise SpecdecError(
            f"no environment pins a revision of {model}, and the Hub cannot be asked",
            code="SD886",
            path=option,
            fix=f"{option} COMMIT: the newest on https://huggingface.co/{model}/commits/main",
        )
    return found


def _pinned() -> dict[str, str]:
    """Revisions by model, from the environments that are there."""
    import yaml

    found: dict[str, str] = {}
    for file in sorted(environments.environments_dir().glob("*/values.yaml")):
        values = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        for section in ("engine", "speculative"):
            model = (values.get(section) or {}).get("model") or {}
            if model.get("revision"):
                found[str(model.get("name"))] = str(model["revision"])
    return found


def _on_hub(model: str) -> str | None:
    """The newest commit, None where the Hub cannot be reached or does not know the model."""
    try:
        from huggingface_hub import HfApi

        return HfApi().model_info(model, timeout=10).sha
    except Exception:  # every failure means the same here: it has to be given
        return None

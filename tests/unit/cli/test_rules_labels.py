"""An image that was changed after rendering: what runs is the tag's version, whatever the labels say."""

from __future__ import annotations

import pytest
from specdec import facts, rules
from specdec.errors import SpecdecError
from specdec.manifests import engines, published
from specdec.rules.examples import manifests_of
from specdec.rules.labels import LABELLED


def labelled(tag: str, image: str = "vllm/vllm-openai") -> str:
    return (LABELLED % "0.0.0").replace("vllm/vllm-openai:v0.0.0", f"{image}:{tag}")


def codes(text: str) -> set[str]:
    return {finding.code for finding in rules.check(manifests_of(text))}


@pytest.mark.parametrize("tag", ["v0.12.0", "v0.12.0-cu129", "v0.12.0@sha256:" + "a" * 64])
def test_the_tag_wins_and_the_disagreement_is_an_error(tag: str) -> None:
    (engine,) = engines(manifests_of(labelled(tag)))
    assert (engine.engine_version or "").startswith("0.12.0")
    assert engine.runner == "v1"
    assert {"SD135", "SD101"} <= codes(labelled(tag))


@pytest.mark.parametrize("tag", ["v0.32.0", "0.32.0", "v0.32.0-cu129", "v0.32.0.post1", "latest", "nightly"])
def test_tags_that_agree_or_name_no_version(tag: str) -> None:
    (engine,) = engines(manifests_of(labelled(tag)))
    assert (engine.engine_version or "").startswith("0.32.0")
    assert not {"SD135", "SD101"} & codes(labelled(tag))


def test_an_image_called_vllm_counts_vllms_versions() -> None:
    assert "SD135" in codes(labelled("0.12.0", "registry.example/acme/vllm"))
    assert "SD135" not in codes(labelled("26.02-py3", "nvcr.io/nvidia/vllm"))


def test_without_a_tag_that_tells_the_label_counts_and_engine_version_before_all() -> None:
    digest = labelled("x").replace(":x", "@sha256:" + "a" * 64)
    (engine,) = engines(manifests_of(digest))
    assert (engine.engine_version, engine.runner) == ("0.32.0", "v2")
    (engine,) = engines(manifests_of(digest), "0.12.0")
    assert (engine.engine_version, engine.runner) == ("0.12.0", "v1")


@pytest.mark.parametrize("tag", ["v0.99.0", "v9.9.9", "v0.5.4"])
def test_an_image_of_a_version_that_nobody_knows_is_warned_of(tag: str) -> None:
    text = labelled(tag).replace(", vllm-speculative/engine-version: 0.32.0", "")
    found = {finding.code: finding for finding in rules.check(manifests_of(text))}
    assert found["SD136"].severity == "warning"
    assert f"vLLM {tag.removeprefix('v')} is not known (0.6.3 to before" in found["SD136"].message


@pytest.mark.parametrize(
    ("given", "nearest"), [("9.9.9", facts.nearest_version("99.0")), ("v0.6.2", "0.6.3"), ("0.5", "0.6.3")]
)
def test_a_version_that_a_person_names_is_known_or_refused(given: str, nearest: str) -> None:
    with pytest.raises(SpecdecError) as refused:
        facts.known_version(given)
    assert refused.value.code == "unknown-version"
    assert refused.value.path == "--engine-version"
    assert (refused.value.fix or "").endswith(f"the nearest is {nearest}")


@pytest.mark.parametrize("given", ["0.32.0", "v0.32.0", "0.32", "0.6.3.post1", "0.33.0"])
def test_versions_that_are_known(given: str) -> None:
    assert facts.known_version(given) == given.removeprefix("v")


@pytest.mark.parametrize("image", ["acme/vllm-platform", "lmcache/vllm-openai", "acme/serving"])
def test_images_whose_tags_count_their_own_are_what_the_label_says(image: str) -> None:
    (engine,) = engines(manifests_of(labelled("v0.12.0", image)))
    assert engine.engine_version == "0.32.0"
    assert "SD135" not in codes(labelled("v0.12.0", image))


@pytest.mark.parametrize(
    ("image", "ours"),
    [
        ("vllm/vllm-openai:v0.32.0", True),
        ("registry.example:5000/mirror/vllm-openai:v0.32.0", True),
        ("vllm/vllm-openai-cpu:v0.32.0", True),
        ("vllm/vllm-openai", True),
        ("lmcache/vllm-openai:v0.3.9", False),
        ("acme/my-vllm-openai:1.0.0", False),
    ],
)
def test_whose_image_it_is(image: str, ours: bool) -> None:
    assert published(image) is ours

"""An image that was changed after rendering: what runs is the tag's version, whatever the labels say."""

from __future__ import annotations

import pytest
from specdec import rules
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

"""Any values that the schema takes end in a rendering or in one of our errors, never in a template trace.

FUZZ_EXAMPLES sets how many engines are tried (300, and 10,000 in `make fuzz`); fifty share a release.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from .bulk import settle
from .conftest import DRAFT, DRAFT_REVISION, TARGET, TARGET_REVISION, merged, unescaped
from .releases import RELEASES
from .test_values import SCHEMA, resolved

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "300"))
TOGETHER = min(50, EXAMPLES)
# Text that has broken charts: expansion, templates, quotes, YAML and JSON syntax, spaces, other scripts.
NASTY = ["$(HOME)", "$$(X)", "{{ .Values }}", "{}", '"', "'", "a b", "- x: y", "# no", "100%", "\\", "é漢"]
NASTY += ["line\nbreak", "null", "1e6", "`id`"]
WRITTEN = st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp"))
TEXT = st.one_of(st.sampled_from(NASTY), st.text(WRITTEN, max_size=20))
NUMBERS = st.sampled_from([0, 1, 2, 3, 4, 5, 8, 16, 24, 100, 256, 1024, 100000, 1048576, 34359738368])
# Where any text is as good as another, what an engine could have.
LIKELY: dict[str, list[Any]] = {
    "engine.version": ["", *RELEASES, "0.99.0"],
    "engine.runner": ["", "v0", "v1", "v2"],
    "engine.model.name": [TARGET, "/srv/a b/$(X)", "llama"],
    "engine.model.revision": [TARGET_REVISION, "main", ""],
    "speculative.model.name": ["", DRAFT, "/srv/draft"],
    "speculative.model.revision": [DRAFT_REVISION, "main", ""],
    "accelerator.type": ["h100-80gb", "l4", "cpu", "h100"],
    "accelerator.machineType": ["", "a3-highgpu-8g"],
    "engine.extraArgs": [[], ["--seed", "3"], ["--x={{y}}", "$(A)"], ["--max-model-len=5"], ["--enable-lora"]],
}


def values_of(node: dict[str, Any], path: str) -> st.SearchStrategy[Any]:
    """Values that a leaf of the schema takes."""
    if path in LIKELY:
        return st.sampled_from(LIKELY[path])
    node = resolved(node)
    if "enum" in node:
        return st.sampled_from(node["enum"])
    kinds = node.get("type", "string")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return st.one_of([_of_kind(kind, node, path) for kind in kinds])


def _of_kind(kind: str, node: dict[str, Any], path: str) -> st.SearchStrategy[Any]:
    least, most = node.get("minimum", 0), node.get("maximum", 2**40)
    if "exclusiveMinimum" in node:
        least = node["exclusiveMinimum"] + 1
    if kind == "null":
        return st.none()
    if kind == "boolean":
        return st.booleans()
    if kind == "integer":
        return st.one_of(NUMBERS, st.integers(0, 9)).filter(lambda n: least <= n <= most)
    if kind == "number":
        return st.one_of(NUMBERS, st.sampled_from([0.01, 0.5, 0.9, 1.5])).filter(lambda n: least <= n <= most)
    if kind == "array":
        return st.lists(values_of(node.get("items", {}), f"{path}[]"), min_size=node.get("minItems", 0), max_size=3)
    if kind == "object":
        required = {key: values_of(node["properties"][key], f"{path}.{key}") for key in node.get("required", [])}
        if "properties" in node:
            other = {k: values_of(v, f"{path}.{k}") for k, v in node["properties"].items() if k not in required}
            return st.fixed_dictionaries(required, optional=other)
        return st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.text("abc019", max_size=5), max_size=2)
    if "pattern" in node:
        text = st.from_regex(node["pattern"], fullmatch=True).filter(str.isprintable)
        return text.filter(
            lambda s: _in_range(s, least, most) if "minimum" in node or "exclusiveMinimum" in node else True
        )
    return TEXT.filter(lambda s: node.get("minLength", 0) <= len(s))


def _in_range(text: str, least: float, most: float) -> bool:
    try:
        return bool(least <= float(text) <= most)
    except ValueError:
        return True


def leaves(section: str) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []

    def walk(node: dict[str, Any], path: str) -> None:
        node = resolved(node)
        if "default" in node or "properties" not in node:
            found.append((path, node))
        else:
            for key, child in node["properties"].items():
                walk(child, f"{path}.{key}")

    walk(SCHEMA["definitions"][section], section)
    return found


SECTIONS = ["engine", "speculative", "lora", "accelerator", "modelCache", "huggingFace", "probes", "sharedMemory"]
SECTIONS += ["shutdown", "baseline", "podDisruptionBudget"]
LEAVES = {path: values_of(node, path) for section in SECTIONS for path, node in leaves(section)}
COMMON = [path for path in LEAVES if path.startswith(("engine.", "speculative.", "lora."))]


@st.composite
def engines(draw: st.DrawFn) -> dict[str, Any]:
    """An engine that works, with some of its values replaced by any that the schema takes."""
    version = draw(st.sampled_from(RELEASES[10:]))
    method = draw(st.sampled_from(["ngram", "ngram", "draft_model", "eagle", "eagle3", "mtp", "suffix"]))
    engine: dict[str, Any] = {
        "engine": {"version": version, "image": {"hasArcticInference": True}},
        "speculative": {"method": method},
    }
    if method in ("draft_model", "eagle", "eagle3"):
        engine["speculative"]["model"] = {"name": DRAFT, "revision": DRAFT_REVISION}
    paths = draw(st.lists(st.one_of(st.sampled_from(COMMON), st.sampled_from(list(LEAVES))), max_size=8, unique=True))
    for path in paths:
        value: Any = draw(LEAVES[path])
        for key in reversed(path.split(".")):
            value = {key: value}
        engine = merged(engine, value)
    return engine


SEEN: Counter[str] = Counter()


@settings(
    max_examples=max(1, EXAMPLES // TOGETHER),
    deadline=None,
    derandomize="FUZZ_EXAMPLES" not in os.environ,
    database=None,
    # What fails is one engine, which the message names; shrinking a list of fifty would render for hours.
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(engines(), min_size=TOGETHER, max_size=TOGETHER))
def check_a_release(helm: str, tried: list[dict[str, Any]]) -> None:
    shared = {
        "engine": {"model": {"name": TARGET, "revision": TARGET_REVISION}},
        "router": {"enabled": False},
        "modelCache": {"prefetch": {"enabled": False}},
    }
    named = {f"e{i}": engine for i, engine in enumerate(tried)}
    settled = settle(helm, named, shared, size=25)
    SEEN.update(code for code, _ in settled.refusals.values())
    for name, rendering in settled.renderings.items():
        SEEN["rendered"] += 1
        args = [unescaped(arg) for arg in rendering.container(f"speculative-{name}")["args"]]
        for extra in named[name].get("engine", {}).get("extraArgs", []):
            assert extra in args, named[name]
        if "--speculative-config" in args:
            text = args[args.index("--speculative-config") + 1]
            config = json.loads(text)
            for field in ("num_speculative_tokens", "max_model_len", "prompt_lookup_max", "fly_window_size"):
                assert isinstance(config.get(field, 0), int), text
        for flag in ("--max-model-len", "--max-num-seqs", "--max-loras"):
            if flag in args:
                assert args[args.index(flag) + 1].isdigit(), args


@pytest.mark.xdist_group("properties")
def test_any_values_end_in_a_rendering_or_in_an_error_of_ours(helm: str) -> None:
    SEEN.clear()
    check_a_release(helm)
    print(f"{sum(SEEN.values())} engines: {dict(SEEN.most_common())}")
    assert sum(SEEN.values()) >= EXAMPLES // TOGETHER * TOGETHER
    # A property that nothing or everything passes shows nothing.
    assert SEEN["rendered"] > EXAMPLES / 10
    assert len(SEEN) > 8

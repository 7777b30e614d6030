"""Anyone's manifests: what is read, where it stands, which of it is an engine."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from specdec import rules
from specdec.errors import SpecdecError
from specdec.manifests import engines, parse
from specdec.objects import dotted, keys

ROOT = Path(__file__).resolve().parents[3]
SEED = (ROOT / "tests" / "data" / "seed-statefulset.yaml").read_text(encoding="utf-8")


class TestReading:
    def test_documents_with_their_lines(self) -> None:
        found = parse(SEED, "seed.yaml")
        assert [(manifest.resource, manifest.line) for manifest in found] == [
            ("StatefulSet/vllm-speculative-llama3", 1),
            ("Service/vllm-speculative-service", SEED.splitlines().index("kind: Service")),
        ]
        assert found[0].namespace == "ai-inference"

    def test_the_line_of_a_value(self) -> None:
        manifest = parse(SEED, "seed.yaml")[0]
        path = 'spec.template.spec.containers[0].resources.limits["nvidia.com/gpu"]'
        assert SEED.splitlines()[manifest.line_of(path) - 1].strip() == 'nvidia.com/gpu: "2"'

    def test_the_line_of_what_is_missing_is_that_of_the_nearest_above(self) -> None:
        manifest = parse(SEED, "seed.yaml")[0]
        line = manifest.line_of("spec.template.spec.containers[0].startupProbe.httpGet")
        assert SEED.splitlines()[line - 1].strip() == "- name: vllm-engine"

    def test_lists_are_opened(self) -> None:
        text = "kind: List\nitems:\n- kind: Pod\n  metadata: {name: a}\n- kind: Pod\n  metadata: {name: b}\n"
        assert [(manifest.name, manifest.line) for manifest in parse(text)] == [("a", 3), ("b", 5)]

    def test_helms_source_comments(self) -> None:
        text = "---\n# Source: chart/templates/a.yaml\nkind: Pod\n---\n# Source: chart/templates/b.yaml\n\nkind: Job\n"
        assert [manifest.source for manifest in parse(text)] == ["chart/templates/a.yaml", "chart/templates/b.yaml"]

    def test_dates_stay_text_as_in_kubernetes(self) -> None:
        assert parse("kind: Pod\nmetadata: {annotations: {built: 2026-01-02}}")[0].annotations == {
            "built": "2026-01-02"
        }

    def test_documents_that_are_no_objects_are_left_out(self) -> None:
        assert parse("---\n---\n- a\n---\nengine: {}\n---\n") == []

    @pytest.mark.parametrize(
        ("text", "file"),
        [
            ("kind: Pod\na: b: c\n", "x.yaml:2"),
            ("kind: Pod\nmetadata: {name: a\n", "x.yaml:3"),
            ("kind: Pod\nspec: {{ .Values.x }}\n", "x.yaml:2"),
            ("kind: Pod\n\tspec: 1\n", "x.yaml:2"),
            ("kind: *nothing\n", "x.yaml:1"),
            ("[" * 5000, "x.yaml:1"),
            ("kind: Pod\x00", "x.yaml"),
        ],
    )
    def test_broken_yaml_names_file_and_line(self, text: str, file: str) -> None:
        with pytest.raises(SpecdecError) as caught:
            parse(text, "x.yaml")
        assert caught.value.code == "unreadable-yaml"
        assert (caught.value.file or "").startswith(file)

    @given(st.text())
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        with contextlib.suppress(SpecdecError):
            parse(text)

    @given(
        st.lists(
            st.sampled_from(
                [
                    "kind: Pod\n",
                    "items:\n",
                    "- ",
                    "&a ",
                    "*a",
                    "{",
                    "}",
                    "<<: ",
                    "? ",
                    ": ",
                    "---\n",
                    "!!int x",
                    "!!float .",
                    "!!binary ''",
                    "!!set {a}",
                    "1:60",
                    "0o9",
                    "'",
                    '"',
                    "|\n",
                    "\n",
                    "\t",
                    "  ",
                ]
            )
        )
    )
    def test_any_yaml_like_text_is_read_or_refused(self, parts: list[str]) -> None:
        with contextlib.suppress(SpecdecError):
            parse("".join(parts))


class TestPaths:
    @given(st.lists(st.integers(0, 99) | st.text("ab./-_", min_size=1), min_size=1).map(tuple))
    def test_a_path_survives_as_text(self, path: tuple[str | int, ...]) -> None:
        assert keys(dotted(path)) == path


class TestEngines:
    def test_the_seeds(self) -> None:
        (engine,) = engines(parse(SEED, "seed.yaml"))
        assert (engine.engine_version, engine.runner, engine.gpus, engine.replicas) == ("0.6.3.post1", "v0", 2, 2)
        assert engine.env["NCCL_DEBUG"] == "WARN"
        assert engine.env["HUGGING_FACE_HUB_TOKEN"] is None
        assert engine.manifest.get(engine.path_of("--max-num-seqs")) == "--max-num-seqs"

    @pytest.mark.parametrize(
        ("kind", "spec", "path"),
        [
            ("Pod", "spec: {containers: [%s]}", "spec.containers[0]"),
            ("Deployment", "spec: {template: {spec: {containers: [%s]}}}", "spec.template.spec.containers[0]"),
            ("Job", "spec: {template: {spec: {containers: [%s]}}}", "spec.template.spec.containers[0]"),
            (
                "CronJob",
                "spec: {jobTemplate: {spec: {template: {spec: {containers: [%s]}}}}}",
                "spec.jobTemplate.spec.template.spec.containers[0]",
            ),
            ("InferenceService", "spec: {predictor: {model: %s}}", "spec.predictor.model"),
            ("InferenceService", "spec: {predictor: {containers: [%s]}}", "spec.predictor.containers[0]"),
            ("LLMInferenceService", "spec: {template: {containers: [%s]}}", "spec.template.containers[0]"),
            (
                "LeaderWorkerSet",
                "spec: {leaderWorkerTemplate: {leaderTemplate: {spec: {containers: [%s]}}}}",
                "spec.leaderWorkerTemplate.leaderTemplate.spec.containers[0]",
            ),
        ],
    )
    def test_wherever_a_pod_is_described(self, kind: str, spec: str, path: str) -> None:
        container = "{image: 'vllm/vllm-openai:v0.32.0', args: [--model=org/m, -tp=2]}"
        (engine,) = engines(parse(f"kind: {kind}\nmetadata: {{name: x}}\n{spec % container}\n"))
        assert dotted(engine.container_path) == path
        assert (engine.args.model, engine.args.tensor_parallel_size) == ("org/m", 2)

    @pytest.mark.parametrize(
        "container",
        [
            "{image: 'vllm/vllm-openai:v0.32.0', command: [python3, prefetch.py]}",
            "{image: 'vllm/vllm-router:0.1.17', args: [--model, x]}".replace("--model, x", "--policy, random"),
            "{image: 'localhost/router:1', command: [python3, -m, vllm_router.launch_router]}",
            "{image: 'vllm/vllm-openai:v0.32.0', command: [vllm, bench, serve]}",
            "{image: nginx, args: [-g, daemon off]}",
            "{image: 'vllm/vllm-openai', command: [sh, -c, 'sleep infinity']}",
        ],
    )
    def test_containers_that_serve_no_model(self, container: str) -> None:
        assert engines(parse(f"kind: Pod\nmetadata: {{name: x}}\nspec: {{containers: [{container}]}}\n")) == []

    @pytest.mark.parametrize(
        ("image", "version"),
        [
            ("vllm/vllm-openai:v0.6.3.post1", "0.6.3.post1"),
            ("registry:5000/vllm/vllm-openai:v0.10.1.1-cu128", "0.10.1.1"),
            ("vllm/vllm-openai:0.32.0@sha256:" + "0" * 64, "0.32.0"),
            ("vllm/vllm-openai:latest", None),
            ("vllm/vllm-openai:nightly-0123abc", None),
            ("vllm/vllm-openai@sha256:" + "0" * 64, None),
        ],
    )
    def test_the_version_in_an_image(self, image: str, version: str | None) -> None:
        (engine,) = engines(parse(f"kind: Pod\nspec: {{containers: [{{image: '{image}', args: [m]}}]}}\n"))
        assert engine.engine_version == version

    def test_our_annotation_wins_over_the_image(self) -> None:
        text = """
kind: Pod
metadata: {name: x, annotations: {vllm-speculative/engine-version: 0.32.0, vllm-speculative/accelerator: l4}}
spec: {containers: [{image: 'mirror/vllm:latest', args: [m]}]}
"""
        (engine,) = engines(parse(text))
        assert (engine.engine_version, engine.accelerator, engine.runner) == ("0.32.0", "l4", "v2")

    def test_variables_in_arguments_are_put_in_as_kubernetes_does(self) -> None:
        text = """
kind: Pod
spec:
  containers:
    - image: vllm/vllm-openai:v0.32.0
      args: [$(MODEL), --served-model-name, $$(MODEL), --dtype, $(UNKNOWN)]
      env: [{name: MODEL, value: org/m}]
"""
        (engine,) = engines(parse(text))
        assert engine.argv == ["org/m", "--served-model-name", "$(MODEL)", "--dtype", "$(UNKNOWN)"]


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every path in a document."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, child in children for found in places(child, (*path, key)))]


DOCUMENTS = list(yaml.safe_load_all(SEED))
PLACES = [(index, path) for index, document in enumerate(DOCUMENTS) for path in places(document) if path]
ODD: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text("a1{}$(-\n")
    | st.just([])
    | (st.just({}) | st.just([None]) | st.just([[1]]) | st.just({"a": [1]}) | st.just([{"name": {}}]))
)


@given(st.lists(st.tuples(st.sampled_from(PLACES), ODD), min_size=1, max_size=4))
def test_rules_survive_manifests_with_anything_anywhere(changes: list[tuple[Any, Any]]) -> None:
    documents = [yaml.safe_load(yaml.safe_dump(document)) for document in DOCUMENTS]
    for (index, path), odd in changes:
        holder = documents[index]
        for key in path[:-1]:
            try:
                holder = holder[key]
            except (TypeError, KeyError, IndexError):
                holder = None
        if isinstance(holder, dict) or (
            isinstance(holder, list) and isinstance(path[-1], int) and path[-1] < len(holder)
        ):
            holder[path[-1]] = odd
    for finding in rules.check(parse(yaml.safe_dump_all(documents), "odd.yaml")):
        assert finding.line >= 1

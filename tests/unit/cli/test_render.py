"""`specdec render` and environments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from specdec import environments, helm
from specdec.cli import main
from specdec.commands.render import only
from specdec.errors import SpecdecError

ROOT = Path(__file__).resolve().parents[3]
VALUES = ROOT / "helm" / "vllm-speculative" / "ci"


@pytest.fixture(autouse=True)
def clean_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RELEASE", "NAMESPACE", "KUBECONTEXT"):
        monkeypatch.delenv(name, raising=False)


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    assert stop.value.code == 0
    return capsys.readouterr().out


class TestRendering:
    def test_an_environment_is_kubernetes_objects(self, capsys: pytest.CaptureFixture[str]) -> None:
        documents = list(yaml.safe_load_all(output(capsys, "render", "prod")))
        assert {"StatefulSet", "Service"} <= {document["kind"] for document in documents if document}

    def test_json_is_a_list_of_the_same(self, capsys: pytest.CaptureFixture[str]) -> None:
        objects = json.loads(output(capsys, "render", "prod", "--format", "json"))
        documents = [document for document in yaml.safe_load_all(output(capsys, "render", "prod")) if document]
        assert objects == json.loads(json.dumps(documents, default=str))

    def test_a_value_on_the_command_line_comes_last(self, capsys: pytest.CaptureFixture[str]) -> None:
        text = output(capsys, "render", "prod", "--set", "engine.replicas=7")
        assert 7 in [d["spec"].get("replicas") for d in yaml.safe_load_all(text) if d and d["kind"] == "StatefulSet"]

    def test_release_and_namespace(self) -> None:
        text = helm.render([VALUES / "cpu-values.yaml"], [], "chat", "models")
        objects = [document for document in yaml.safe_load_all(text) if document]
        assert {document["metadata"].get("namespace", "models") for document in objects} == {"models"}
        assert all(document["metadata"]["name"].startswith("chat") for document in objects)

    def test_one_engine_of_several(self) -> None:
        text = helm.render([VALUES / "engines-values.yaml"])
        names = {
            document["metadata"]["labels"].get("vllm-speculative/engine")
            for document in yaml.safe_load_all(text)
            if document
        } - {None}
        assert len(names) > 1
        for name in names:
            kept = [document for document in yaml.safe_load_all(only(text, name)) if document]
            assert {document["metadata"]["labels"]["vllm-speculative/engine"] for document in kept} == {name}
            assert "StatefulSet" in {document["kind"] for document in kept}

    def test_an_engine_that_is_not_there(self) -> None:
        with pytest.raises(SpecdecError, match="unknown engine 'nobody'"):
            only(helm.render([VALUES / "cpu-values.yaml"]), "nobody")

    def test_the_same_values_give_the_same_bytes(self) -> None:
        assert helm.render([VALUES / "cpu-values.yaml"]) == helm.render([VALUES / "cpu-values.yaml"])

    def test_no_helm(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "")
        monkeypatch.setattr(helm.os, "access", lambda *_: False)
        with pytest.raises(SpecdecError) as caught:
            helm.executable()
        assert caught.value.code == "helm-missing"


class TestEnvironment:
    @pytest.fixture
    def prod(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        (tmp_path / "prod").mkdir()
        (tmp_path / "prod" / "values.yaml").write_text("{}", encoding="utf-8")
        (tmp_path / "empty").mkdir()
        monkeypatch.setenv("SPECDEC_ENVIRONMENTS", str(tmp_path))
        return tmp_path

    def test_defaults(self, prod: Path) -> None:
        found = environments.load("prod")
        assert found.values == [prod / "prod" / "values.yaml"]
        assert (found.release, found.namespace, found.kubecontext) == ("speculative", "ai-inference", None)

    @pytest.mark.usefixtures("prod")
    def test_variables_and_then_options(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("RELEASE", "NAMESPACE", "KUBECONTEXT"):
            monkeypatch.setenv(name, name.lower())
        assert environments.load("prod").release == "release"
        found = environments.Environment.named("prod", namespace="here", kubecontext="there")
        assert (found.release, found.namespace, found.kubecontext) == ("release", "here", "there")

    def test_values_files_come_on_top_of_an_environment(self, prod: Path) -> None:
        extra = prod / "extra.yaml"
        extra.write_text("{}", encoding="utf-8")
        assert environments.choose("prod", [extra]).values == [prod / "prod" / "values.yaml", extra]

    @pytest.mark.usefixtures("prod")
    @pytest.mark.parametrize(("name", "code"), [("prd", "unknown-environment"), ("empty", "values-missing")])
    def test_what_is_not_there(self, name: str, code: str) -> None:
        with pytest.raises(SpecdecError) as caught:
            environments.load(name)
        assert caught.value.code == code

    def test_a_values_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(SpecdecError) as caught:
            environments.Environment.of_files([tmp_path / "none.yaml"])
        assert caught.value.code == "values-missing"

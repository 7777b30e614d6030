"""What an upgrade would change, before it happens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from specdec import helm
from specdec.cli import main
from specdec.compare import Comparison, compare
from specdec.manifests import parse

ENGINE = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: chat}
spec:
  replicas: 2
  serviceName: chat-headless
  template:
    spec:
      containers:
        - image: vllm/vllm-openai:v0.32.0
          args: [org/m, --max-num-seqs, "128", --speculative-config, '{"method": "ngram", "num_speculative_tokens": 3}']
"""


def change(old: str, new: str, text: str = ENGINE) -> Comparison:
    assert old in text
    return compare(parse(text), parse(text.replace(old, new)))


def test_nothing_changes() -> None:
    same = compare(parse(ENGINE), parse(ENGINE))
    assert (same.objects, same.arguments, same.risks) == ([], [], [])


def test_k_is_shown_by_itself_and_restarts_the_pods() -> None:
    changes = change('_tokens": 3', '_tokens": 5')
    (argument,) = changes.arguments
    assert (argument.flag, argument.old, argument.new) == ("--speculative-config.num_speculative_tokens", "3", "5")
    assert changes.risks[0] == "engine chat: its 2 pods restart and load their weights again"
    assert "K 3 becomes 5" in changes.risks[1]


def test_more_replicas_restart_nothing() -> None:
    changes = change("replicas: 2", "replicas: 3")
    assert (changes.arguments, changes.risks) == ([], [])
    assert [(field.path, field.old, field.new) for field in changes.objects[0].fields] == [("spec.replicas", 2, 3)]


@pytest.mark.parametrize(
    ("old", "new", "risk"),
    [
        ("replicas: 2", "replicas: 1", "2 replicas become 1"),
        ("chat-headless", "other", "spec.serviceName of a StatefulSet cannot change"),
        ("v0.32.0", "v0.33.0", "vLLM 0.32.0 becomes 0.33.0"),
        ("org/m", "org/n", "clients get another model, org/n for org/m"),
        (', --speculative-config, \'{"method": "ngram", "num_speculative_tokens": 3}\'', "", "speculation goes off"),
        ("name: chat", "name: talk", "engine chat is removed"),
        ("StatefulSet", "Deployment", "StatefulSet/chat becomes a Deployment"),
        ("[org/m,", "[org/m, --served-model-name, talk,", "clients that ask for org/m get 404"),
        ("[org/m,", "[org/m, --quantization, fp8,", "--quantization (none) becomes fp8: the answers may differ"),
        ('_tokens": 3', '_tokens": 8', "K 3 becomes 8"),
        ('"ngram"', '"suffix"', "drafts come from suffix and no longer from ngram"),
        ("[org/m,", "[org/m, --tensor-parallel-size, '2',", "TP 1 x PP 1 x DP 1 becomes TP 2 x PP 1 x DP 1"),
    ],
)
def test_what_is_risky(old: str, new: str, risk: str) -> None:
    assert any(risk in found for found in change(old, new).risks)


@pytest.mark.parametrize(
    ("kind", "old", "new", "risk"),
    [
        (
            "Deployment",
            "selector: {matchLabels: {app: a}}",
            "selector: {matchLabels: {app: b}}",
            "spec.selector cannot",
        ),
        (
            "PersistentVolumeClaim",
            "storageClassName: fast",
            "storageClassName: slow",
            "spec.storageClassName of a claim",
        ),
        (
            "PersistentVolumeClaim",
            "resources: {requests: {storage: 200Gi}}",
            "resources: {requests: {storage: 100Gi}}",
            "a claim cannot shrink",
        ),
        ("Service", "clusterIP: None", "type: ClusterIP", "spec.clusterIP cannot change"),
        ("Service", "selector: {app: a}", "selector: {app: b}", "other pods get its requests"),
        ("Service", "ports: [{port: 8000}]", "ports: [{port: 80}]", "its ports change"),
        ("Job", "template: {spec: {a: 1}}", "template: {spec: {a: 2}}", "spec.template of a Job cannot change"),
    ],
)
def test_fields_that_the_api_server_does_not_let_change(kind: str, old: str, new: str, risk: str) -> None:
    text = f"kind: {kind}\nmetadata: {{name: x}}\nspec: {{{{}}}}\n"
    left, right = (text.replace("{{}}", f"{{{fields}}}") for fields in (old, new))
    assert any(risk in found for found in compare(parse(left), parse(right)).risks)
    assert compare(parse(left), parse(left)).risks == []


def test_a_claim_may_grow() -> None:
    claim = "kind: PersistentVolumeClaim\nmetadata: {name: x}\nspec: {resources: {requests: {storage: %s}}}\n"
    assert compare(parse(claim % "100Gi"), parse(claim % "200Gi")).risks == []


KNOWN = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: chat}
spec:
  template:
    spec:
      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h100-80gb}
      containers:
        - image: vllm/vllm-openai:v0.32.0
          resources: {limits: {nvidia.com/gpu: "4"}}
          args:
            - meta-llama/Llama-3.1-70B-Instruct
            - --tensor-parallel-size=4
            - --max-model-len=8192
            - --speculative-config
            - '{"method": "draft_model", "model": "meta-llama/Llama-3.2-1B-Instruct", "num_speculative_tokens": 3}'
"""


class TestWhatThePlannerAndTheRulesSay:
    def test_memory_that_a_larger_draft_takes(self) -> None:
        changes = change("Llama-3.2-1B-Instruct", "Llama-3.1-8B-Instruct", KNOWN)
        (memory,) = changes.memory
        assert memory.old_tokens
        assert memory.new_tokens
        assert memory.new_tokens < memory.old_tokens
        assert any("measure acceptance again" in risk for risk in changes.risks)

    def test_a_target_that_no_longer_fits_is_found(self) -> None:
        found = {finding.code: finding for finding in change("nvidia-h100-80gb", "nvidia-l4", KNOWN).findings}
        assert "the weights alone do not fit" in found["SD320"].message

    def test_gpus_of_a_larger_tensor_parallel_size(self) -> None:
        larger = KNOWN.replace("size=4", "size=8").replace('gpu: "4"', 'gpu: "8"')
        risks = compare(parse(KNOWN), parse(larger)).risks
        assert any("each of its 1 pods needs 8 GPUs where it had 4" in risk for risk in risks)

    def test_a_version_without_the_method(self) -> None:
        changes = change("v0.32.0", "v0.13.0", KNOWN)
        found = {finding.code: finding for finding in changes.findings}
        assert "NotImplementedError" in found["SD113"].message

    def test_a_version_without_a_flag(self) -> None:
        with_flag = KNOWN.replace("--max-model-len=8192", "--max-model-len=8192\n            - --swap-space=4")
        old = with_flag.replace("v0.32.0", "v0.15.0")
        found = {finding.code for finding in compare(parse(old), parse(with_flag)).findings}
        assert "SD101" in found

    def test_what_was_wrong_before_is_not_said_again(self) -> None:
        assert compare(parse(KNOWN), parse(KNOWN)).findings == []
        codes = {finding.code for finding in change("nvidia-h100-80gb", "nvidia-h200-141gb", KNOWN).findings}
        assert not codes & {"SD403", "SD703", "SD705"}


def test_a_claim_that_goes_takes_its_data_with_it() -> None:
    claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: weights}\n"
    changes = compare(parse(claim), [])
    assert [(gone.change, gone.resource) for gone in changes.objects] == [("removed", "PersistentVolumeClaim/weights")]
    assert len(changes.risks) == 1


def test_a_secret_is_compared_and_not_shown() -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {token: %s}\n"
    changes = compare(parse(secret % "old-token"), parse(secret % "new-token"))
    assert [field.path for field in changes.objects[0].fields] == ["stringData.token"]
    assert "token" not in str(changes.objects[0].fields[0].new)


def test_hooks_are_no_part_of_a_release() -> None:
    hook = 'kind: Pod\nmetadata: {name: t, annotations: {"helm.sh/hook": test}}\n'
    assert compare([], parse(hook)).objects == []


def test_against_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "deployed.yaml"
    file.write_text(helm.render([Path(__file__).resolve().parents[3] / "environments" / "prod" / "values.yaml"]))
    with pytest.raises(SystemExit) as stop:
        main(["diff", "prod", "--against", str(file), "--set", "engine.maxNumSeqs=77", "--format", "json"])
    changes = json.loads(capsys.readouterr().out)
    assert stop.value.code == 0
    assert [(item["flag"], item["new"]) for item in changes["arguments"]] == [("--max-num-seqs", "77")]
    assert {item["change"] for item in changes["objects"]} == {"changed"}

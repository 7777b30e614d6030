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
    assert changes.risks == ["engine chat: its 2 pods restart and load their weights again"]


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
    ],
)
def test_what_is_risky(old: str, new: str, risk: str) -> None:
    assert any(risk in found for found in change(old, new).risks)


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

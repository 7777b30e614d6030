"""Field cases C13 to C19: values that nobody reads, gateways that cut, the draft's repository."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .deployment import IN_PLACE, deployment
from .helpers import COMMIT, LLAMA_1B, LLAMA_8B, drafted, finds, passes, pod, refuses, renders, values


class TestC13ValuesThatAreSilentlyIgnored:
    @pytest.mark.parametrize(
        ("wrong", "says"),
        [
            ({"engine": {"maxSeqs": 64}}, "maxSeqs"),
            ({"speculative": {"numToken": 4}}, "numToken"),
            ({"modelCache": {"emptyDir": {"size": "10Gi"}}}, "size"),
            ({"autoscalling": {}}, "autoscalling"),
        ],
    )
    def test_c13_a_value_that_no_template_reads(self, wrong: dict[str, Any], says: str) -> None:
        refuses(values(**wrong), says)
        renders(values())

    def test_c13_a_service_whose_selector_matches_no_pod(self) -> None:
        def behind(label: str) -> str:
            service = {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "chat"},
                "spec": {"selector": {"app": label}, "ports": [{"port": 8000}]},
            }
            return f"{json.dumps(service)}\n---\n{deployment(IN_PLACE)}"

        finds(behind("engines"), "SD502", "app=engines")
        passes(behind("engine"), "SD502")

    def test_c13_a_workload_whose_selector_is_not_its_pods(self) -> None:
        good = json.loads(deployment(IN_PLACE))
        bad = json.loads(deployment(IN_PLACE))
        bad["spec"]["selector"]["matchLabels"] = {"app": "chat"}
        finds(json.dumps(bad), "SD434", "app=chat")
        passes(json.dumps(good), "SD434")


def route(timeout: str) -> str:
    return json.dumps(
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {"name": "chat"},
            "spec": {"rules": [{"timeouts": {"request": timeout}, "backendRefs": [{"name": "chat", "port": 8000}]}]},
        }
    )


class TestC15GatewaysThatCut:
    @pytest.mark.parametrize("timeout", ["10s", "60s", "1m30s"])
    def test_c15_a_request_timeout_below_one_answer(self, timeout: str) -> None:
        finds(route(timeout), "SD504", "requests are cut after")
        passes(route("1800s"), "SD504")
        passes(route("0s"), "SD504")

    def test_c15_annotations_and_policies_of_gateways(self) -> None:
        policy = {"apiVersion": "networking.gke.io/v1", "kind": "GCPBackendPolicy", "metadata": {"name": "a"}}
        finds(json.dumps({**policy, "spec": {"default": {"timeoutSec": 30}}}), "SD504", "after 30 s")
        passes(json.dumps({**policy, "spec": {"default": {"timeoutSec": 1800}}}), "SD504")


class TestC16TheDraftsRepository:
    def test_c16_prefetch_lists_both_with_the_same_secret(self) -> None:
        done = renders(drafted(huggingFace={"tokenSecret": {"name": "hub"}}))
        (fetch,) = done.engine().get("spec.template.spec.initContainers")
        assert fetch["args"] == [LLAMA_8B, COMMIT, LLAMA_1B, COMMIT]
        token = next(item for item in fetch["env"] if item["name"] == "HF_TOKEN")
        assert token["valueFrom"]["secretKeyRef"]["name"] == "hub"
        env = {item["name"]: item.get("value") for item in done.container()["env"]}
        assert env["HF_HUB_OFFLINE"] == env["TRANSFORMERS_OFFLINE"] == "1"
        assert "hub" not in done.args()

    def test_c16_an_init_container_that_forgets_the_draft(self) -> None:
        def fetching(*models: str) -> Any:
            mounts = [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "models", "mountPath": "/models"}]
            secret = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}
            return pod(
                model=LLAMA_8B,
                speculative={"method": "draft_model", "model": LLAMA_1B, "num_speculative_tokens": 3},
                env=[("HF_HOME", "/models"), ("HF_HUB_OFFLINE", "1")],
                container={"volumeMounts": mounts},
                initContainers=[{"name": "fetch", "image": "hub:1", "args": list(models), "env": [secret]}],
                volumes=[
                    {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
                    {"name": "models", "emptyDir": {"sizeLimit": "100Gi"}},
                ],
            )

        finds(fetching(LLAMA_8B), "SD445", f"{LLAMA_1B} is not, and the engine is offline")
        passes(fetching(LLAMA_8B, LLAMA_1B), "SD445")

    def test_c16_offline_with_a_name_of_the_hub(self) -> None:
        draft = {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}
        offline = [("HF_HUB_OFFLINE", "1")]
        finds(pod(speculative=draft, env=offline), "SD428", "org/head has to be fetched")
        passes(pod(speculative={**draft, "model": "/models/head"}, env=offline), "SD428")

    def test_c16_a_token_comes_from_a_secret_alone(self) -> None:
        finds(pod("--hf-token=hf_x"), "SD702", "the value of --hf-token stands in the arguments")
        finds(pod(env=[("HF_TOKEN", "hf_x")]), "SD702", "HF_TOKEN")
        refuses(values(engine={"extraEnv": [{"name": "HF_TOKEN", "value": "hf_x"}]}), "SD753", "HF_TOKEN")
        refuses(values(engine={"extraArgs": ["--hf-token=hf_x"]}), "huggingFace.tokenSecret")
        renders(values(huggingFace={"tokenSecret": {"name": "hub"}}))
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        finds(json.dumps({**config, "data": {"HF_TOKEN": "hf_x"}}), "SD707", "HF_TOKEN")
        passes(json.dumps({**config, "data": {"HF_HOME": "/models"}}), "SD707")


class TestC19TypedFieldsWin:
    """A free list beside typed values is a second place for the same decision, so what both say is refused."""

    @pytest.mark.parametrize(
        ("argument", "value"),
        [
            ("--max-model-len=4096", "engine.maxModelLen"),
            ("--max_model_len=4096", "engine.maxModelLen"),
            ("-tp=2", "engine.tensorParallelSize"),
            ('--speculative-config={"method":"ngram"}', "speculative"),
        ],
    )
    def test_c19_a_conflict_is_an_error(self, argument: str, value: str) -> None:
        refuses(values(engine={"extraArgs": [argument]}), "SD156", value)
        renders(values(engine={"extraArgs": ["--max-logprobs=5"]}))

    def test_c19_in_anyones_manifest_the_last_one_holds(self) -> None:
        finds(pod("--max-num-seqs=64", "--max-num-seqs=256"), "SD109", "as 64 and as 256; the last one holds")
        passes(pod("--max-num-seqs=256"), "SD109")


def test_c15_kserves_own_timeout() -> None:
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "chat"},
    }
    finds(json.dumps({**service, "spec": {"predictor": {"timeout": 60}}}), "SD504", "after 60 s")
    passes(json.dumps({**service, "spec": {"predictor": {"timeout": 1800}}}), "SD504")

"""Objects of a release: their names, who selects whom, several engines, the baseline and the router."""

from __future__ import annotations

from itertools import pairwise

import pytest

from .conftest import each_scenario, lookup, pair


def test_a_single_engine_has_the_name_of_the_release(render):
    rendering = render(lookup())
    assert rendering.engines() == ["speculative"]
    names = {(m["kind"], m["metadata"]["name"]) for m in rendering.manifests}
    assert names >= {
        ("StatefulSet", "speculative"),
        ("Service", "speculative"),
        ("Service", "speculative-headless"),
        ("ServiceAccount", "speculative"),
        ("PodDisruptionBudget", "speculative"),
        ("Deployment", "speculative-router"),
        ("Service", "speculative-router"),
        ("Role", "speculative-router"),
        ("RoleBinding", "speculative-router"),
    }
    assert rendering.workload()["spec"]["serviceName"] == "speculative-headless"
    assert rendering.one("Service", "speculative-headless")["spec"]["clusterIP"] == "None"


def test_facts_for_tools_stand_on_the_pods(render):
    metadata = render(pair()).workload()["spec"]["template"]["metadata"]
    assert metadata["labels"] | {
        "app.kubernetes.io/name": "vllm-speculative",
        "app.kubernetes.io/instance": "speculative",
        "app.kubernetes.io/component": "engine",
        "app.kubernetes.io/version": "0.32.0",
        "app.kubernetes.io/managed-by": "Helm",
        "vllm-speculative/engine": "speculative",
    } == metadata["labels"]  # fmt: skip
    assert metadata["annotations"] == {
        "vllm-speculative/engine-version": "0.32.0",
        "vllm-speculative/runner": "v2",
        "vllm-speculative/accelerator": "h100-80gb",
        "vllm-speculative/pod-security": "restricted",
        "vllm-speculative/model": "meta-llama/Llama-3.1-8B-Instruct",
        "vllm-speculative/model-revision": "a" * 40,
        "vllm-speculative/speculative-method": "draft_model",
        "vllm-speculative/draft-model": "meta-llama/Llama-3.2-1B-Instruct",
        "vllm-speculative/draft-model-revision": "b" * 40,
    }


def test_several_engines_are_overrides_of_what_stands_at_the_top(render):
    rendering = render("engines")
    assert rendering.engines() == ["speculative-deep", "speculative-plain", "speculative-shallow"]
    assert rendering.speculation("speculative-deep")["num_speculative_tokens"] == 6
    assert rendering.speculation("speculative-shallow")["num_speculative_tokens"] == 2
    assert rendering.workload("speculative-deep")["spec"]["replicas"] == 2
    assert rendering.workload("speculative-shallow")["spec"]["replicas"] == 1
    assert "--speculative-config" not in rendering.args("speculative-plain")
    assert rendering.flag("--served-model-name", "speculative-plain") == "plain"
    budgets = {m["metadata"]["name"] for m in rendering.all("PodDisruptionBudget")}
    assert budgets == {"speculative-deep", "speculative-shallow", "speculative-router"}


def test_false_zero_and_null_override_too(render):
    values = pair(
        engine={"enforceEager": True, "maxModelLen": 4096, "replicas": 3},
        engines={"a": {"engine": {"enforceEager": False, "maxModelLen": None, "replicas": 0}}},
    )
    rendering = render(values)
    assert "--enforce-eager" not in rendering.args("speculative-a")
    assert "--max-model-len" not in rendering.args("speculative-a")
    assert rendering.workload("speculative-a")["spec"]["replicas"] == 0


def test_one_engine_does_not_change_another(render):
    values = pair(engines={"a": {"engine": {"extraEnv": [{"name": "X", "value": "1"}]}}, "b": {}})
    rendering = render(values)
    assert "X" in rendering.env("speculative-a")
    assert "X" not in rendering.env("speculative-b")


def test_the_baseline_differs_in_speculation_alone(render):
    rendering = render(pair(engine={"replicas": 4, "maxModelLen": 4096}, baseline={"enabled": True, "replicas": 2}))
    args, plain = rendering.args(), rendering.args("speculative-baseline")
    at = args.index("--speculative-config")
    assert args[:at] + args[at + 2 :] == plain
    assert rendering.container()["resources"] == rendering.container("speculative-baseline")["resources"]
    assert rendering.env() == rendering.env("speculative-baseline")
    assert rendering.workload("speculative-baseline")["spec"]["replicas"] == 2
    annotations = rendering.workload("speculative-baseline")["spec"]["template"]["metadata"]["annotations"]
    assert annotations["vllm-speculative/speculative-method"] == "none"


def matches(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())


@each_scenario()
def test_selectors_find_the_pods_of_their_own_and_no_others(render, scenario):
    rendering = render(scenario)
    workloads = rendering.all("StatefulSet") + rendering.all("Deployment")
    labels = {w["metadata"]["name"]: w["spec"]["template"]["metadata"]["labels"] for w in workloads}
    for workload in workloads:
        selector = workload["spec"]["selector"]["matchLabels"]
        assert [n for n, each in labels.items() if matches(selector, each)] == [workload["metadata"]["name"]]
    for service in rendering.all("Service"):
        found = [name for name, each in labels.items() if matches(service["spec"]["selector"], each)]
        assert found == [service["metadata"]["name"].removesuffix("-headless")]
        container = rendering.container(found[0])
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= {
            port["name"] for port in container["ports"]
        }
    labels |= {m["metadata"]["name"]: m["spec"]["predictor"]["labels"] for m in rendering.all("InferenceService")}
    labels |= {m["metadata"]["name"]: m["spec"]["labels"] for m in rendering.all("LLMInferenceService")}
    for each in rendering.all("PodDisruptionBudget"):
        selector = each["spec"]["selector"]["matchLabels"]
        assert [n for n, pod in labels.items() if matches(selector, pod)] == [each["metadata"]["name"]]


def router_selector(rendering) -> dict[str, str]:
    args = rendering.args("speculative-router")
    start = args.index("--selector") + 1
    words = []
    for word in args[start:]:
        if word.startswith("--"):
            break
        words.append(word)
    return dict(word.split("=", 1) for word in words)


@pytest.mark.parametrize(
    ("scenario", "routed"),
    [
        ("cpu", ["speculative"]),
        ("engines", ["speculative-deep", "speculative-shallow"]),
        ("h100-draft-model", ["speculative"]),
    ],
)
def test_the_router_finds_the_engines_that_it_should(render, scenario, routed):
    rendering = render(scenario)
    selector = router_selector(rendering)
    workloads = rendering.all("StatefulSet") + rendering.all("Deployment")
    found = [w["metadata"]["name"] for w in workloads if matches(selector, w["spec"]["template"]["metadata"]["labels"])]
    assert sorted(found) == routed


def test_the_router_is_told_what_the_values_say(render):
    router = {
        "policy": "round_robin",
        "requestTimeoutSeconds": 600,
        "maxConcurrentRequests": 1000000,
        "queue": {"size": 0, "timeoutSeconds": 5},
        "retries": {"max": 2, "initialBackoffMs": 10, "maxBackoffMs": 100, "backoffMultiplier": 1.5, "jitterFactor": 0},
        "circuitBreaker": {"failureThreshold": 9, "successThreshold": 1, "timeoutSeconds": 3, "windowSeconds": 7},
        "healthCheck": {"intervalSeconds": 2, "timeoutSeconds": 1, "failureThreshold": 1, "successThreshold": 2},
        "logLevel": "debug",
    }
    args = render(lookup(router=router)).args("speculative-router")
    told = {flag: value for flag, value in pairwise(args) if flag.startswith("--")}
    assert told | {
        "--service-discovery-namespace": "ai-inference",
        "--service-discovery-port": "8000",
        "--policy": "round_robin",
        "--request-timeout-secs": "600",
        "--max-concurrent-requests": "1000000",
        "--queue-size": "0",
        "--queue-timeout-secs": "5",
        "--retry-max-retries": "2",
        "--retry-initial-backoff-ms": "10",
        "--retry-max-backoff-ms": "100",
        "--retry-backoff-multiplier": "1.5",
        "--retry-jitter-factor": "0",
        "--cb-failure-threshold": "9",
        "--cb-success-threshold": "1",
        "--cb-timeout-duration-secs": "3",
        "--cb-window-duration-secs": "7",
        "--health-check-interval-secs": "2",
        "--health-check-timeout-secs": "1",
        "--health-failure-threshold": "1",
        "--health-success-threshold": "2",
        "--log-level": "debug",
    } == told  # fmt: skip


def test_retries_and_circuit_breaker_can_be_off(render):
    values = lookup(router={"retries": {"enabled": False}, "circuitBreaker": {"enabled": False}})
    args = render(values).args("speculative-router")
    assert "--disable-retries" in args
    assert "--disable-circuit-breaker" in args
    assert not [arg for arg in args if arg.startswith(("--retry-", "--cb-"))]


def test_the_router_may_read_pods_of_its_namespace_and_nothing_else(render):
    rendering = render(lookup())
    (role,) = rendering.all("Role")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    (binding,) = rendering.all("RoleBinding")
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "speculative-router", "namespace": "ai-inference"}
    ]
    assert rendering.pod("speculative-router")["serviceAccountName"] == "speculative-router"


def test_two_routers_on_different_nodes_where_there_are(render):
    rendering = render(lookup())
    assert rendering.workload("speculative-router")["spec"]["replicas"] == 2
    rule = rendering.pod("speculative-router")["affinity"]["podAntiAffinity"]
    (preferred,) = rule["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"


def test_a_router_lives_on_while_engines_load(render):
    container = render(lookup()).container("speculative-router")
    assert container["livenessProbe"]["httpGet"]["path"] == "/liveness"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readiness"


def test_without_the_router_the_engines_service_is_left(render):
    rendering = render("no-router")
    assert not [m for m in rendering.manifests if "router" in m["metadata"]["name"]]
    assert rendering.one("Service", "speculative")["spec"]["ports"] == [
        {"name": "http", "port": 8000, "targetPort": "http"}
    ]


@pytest.mark.parametrize(
    ("scenario", "asked"),
    [
        ("cpu", {"speculative-test": "http://speculative-router.ai-inference.svc:8000"}),
        ("no-router", {"speculative-test": "http://speculative.ai-inference.svc:8000"}),
    ],
)
def test_helm_test_asks_where_clients_ask(render, scenario, asked):
    rendering = render(scenario)
    pods = {pod["metadata"]["name"]: pod for pod in rendering.all("Pod")}
    assert {name: pod["spec"]["containers"][0]["args"][0] for name, pod in pods.items()} == asked
    for pod in pods.values():
        assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
        assert pod["spec"]["containers"][0]["image"] == rendering.container()["image"]


def test_the_same_values_give_the_same_bytes(helm):
    from .conftest import _template, _text

    first = _template.__wrapped__(helm, _text("engines"), ()).stdout
    assert first
    assert first == _template.__wrapped__(helm, _text("engines"), ()).stdout


@pytest.mark.parametrize("name", ["off", "yes", "1", "null", "chat"])
def test_a_name_that_yaml_reads_as_something_else_stays_a_name(render, name):
    """A label that is no text is refused by the API server; a selector that is none finds nothing."""
    served = {"engine": {"model": {"servedName": "a"}}}
    rendering = render(lookup(engines={name: served}, router={"entries": {name: [name]}}))
    labels = rendering.workload(f"speculative-{name}")["spec"]["template"]["metadata"]["labels"]
    assert labels["vllm-speculative/engine"] == name
    for manifest in rendering.all("Service"):
        assert all(isinstance(value, str) for value in manifest["spec"]["selector"].values())
    for manifest in rendering.manifests:
        assert all(isinstance(value, str) for value in manifest["metadata"].get("labels", {}).values())

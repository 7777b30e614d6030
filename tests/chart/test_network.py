"""NetworkPolicies, joined with the pods of the rendering: what is needed passes, everything else does not."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Rendering, lookup, merged, pair
from .policies import End, pods, reaches

ON = {"networkPolicy": {"enabled": True}}
HUB, API_SERVER, METADATA = End(address="18.154.227.67"), End(address="10.96.0.1"), End(address="169.254.169.252")
NEIGHBOUR, STRANGER = End({"app": "web"}), End({"app": "web"}, namespace="elsewhere")
PROMETHEUS = End({"app.kubernetes.io/name": "prometheus"}, namespace="monitoring")
DNS = End({"k8s-app": "kube-dns"}, namespace="kube-system")
TWO = pair(
    **ON,
    engines={"a": {"engine": {"model": {"servedName": "a"}}}, "b": {"engine": {"model": {"servedName": "b"}}}},
    router={"entries": {"a": ["a"], "b": ["b"]}},
)
SHARED = {"type": "pvc", "pvc": {"accessMode": "ReadWriteMany"}, "prefetch": {"mode": "job"}}


def named(rendering: Rendering) -> dict[str, End]:
    return dict(pods(rendering))


def job(rendering: Rendering) -> End:
    (found,) = [end for name, end in pods(rendering) if end.labels["app.kubernetes.io/component"] == "prefetch"]
    return found


def test_without_the_value_there_are_no_policies(render):
    assert render(lookup()).all("NetworkPolicy") == []


@pytest.mark.parametrize("scenario", ["gcs-fuse", "air-gapped", "kserve"])
def test_no_pod_of_the_release_is_left_out(render, scenario):
    rendering = render(scenario)
    anywhere = End(address="93.184.216.34")
    for name, pod in pods(rendering):
        assert not reaches(rendering, STRANGER, pod, 8000), name
        assert not reaches(rendering, pod, anywhere, 80), name


def test_clients_reach_the_router_and_nobody_the_engine_past_it(render):
    rendering = render(pair(**ON))
    all_pods = named(rendering)
    router, engine = all_pods["speculative-router"], all_pods["speculative"]
    assert reaches(rendering, NEIGHBOUR, router, 8000)
    assert not reaches(rendering, STRANGER, router, 8000)
    assert not reaches(rendering, NEIGHBOUR, router, 29000)
    assert reaches(rendering, router, engine, 8000)
    assert not reaches(rendering, router, engine, 22)
    assert not reaches(rendering, NEIGHBOUR, engine, 8000)


def test_the_gateway_s_namespace_is_let_in_where_the_values_name_it(render):
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gateways"}}}
    rendering = render(pair(networkPolicy={"enabled": True, "clients": [peer]}))
    router = named(rendering)["speculative-router"]
    assert reaches(rendering, End({"app": "envoy"}, namespace="gateways"), router, 8000)
    assert not reaches(rendering, NEIGHBOUR, router, 8000)


def test_no_clients_means_nobody(render):
    rendering = render(pair(networkPolicy={"enabled": True, "clients": [], "prometheus": []}))
    router = named(rendering)["speculative-router"]
    assert not reaches(rendering, NEIGHBOUR, router, 8000)
    assert not reaches(rendering, PROMETHEUS, router, 29000)


def test_each_router_reaches_its_own_engines_alone(render):
    rendering = render(TWO)
    all_pods = named(rendering)
    for mine, other in (("a", "b"), ("b", "a")):
        router = all_pods[f"speculative-{mine}-router"]
        assert reaches(rendering, router, all_pods[f"speculative-{mine}"], 8000)
        assert not reaches(rendering, router, all_pods[f"speculative-{other}"], 8000)


def test_clients_reach_engines_where_there_is_no_router(render):
    rendering = render(pair(**ON, router={"enabled": False}, baseline={"enabled": True}))
    all_pods = named(rendering)
    assert reaches(rendering, NEIGHBOUR, all_pods["speculative"], 8000)
    assert not reaches(rendering, NEIGHBOUR, all_pods["speculative-baseline"], 8000)


def test_prometheus_reads_the_metrics_of_both(render):
    rendering = render(pair(**ON))
    all_pods = named(rendering)
    assert reaches(rendering, PROMETHEUS, all_pods["speculative"], 8000)
    assert reaches(rendering, PROMETHEUS, all_pods["speculative-router"], 29000)
    assert not reaches(rendering, End({}, namespace="monitoring2"), all_pods["speculative"], 8000)


def test_the_ports_of_the_policies_are_those_of_the_containers(render):
    rendering = render(pair(**ON))
    assert {port["containerPort"] for port in rendering.container()["ports"]} == {8000}
    assert {port["containerPort"] for port in rendering.container("speculative-router")["ports"]} == {8000, 29000}


@pytest.mark.parametrize("values", [pair(**ON), TWO, pair(**ON, modelCache=SHARED)])
def test_every_pod_resolves_names_and_those_that_discover_reach_the_api_server(render, values):
    rendering = render(values)
    for name, pod in pods(rendering):
        assert reaches(rendering, pod, DNS, 53, "UDP"), name
        assert reaches(rendering, pod, DNS, 53, "TCP"), name
        watches = pod.labels["app.kubernetes.io/component"] in ("router", "endpoint-picker")
        assert reaches(rendering, pod, API_SERVER, 443) is watches, name


def test_only_the_prefetch_job_reaches_the_hub(render):
    rendering = render(pair(**ON, modelCache=SHARED))
    fetching = job(rendering)
    assert reaches(rendering, fetching, HUB, 443)
    others = [name for name, pod in pods(rendering) if pod != fetching and reaches(rendering, pod, HUB, 443)]
    # Routers reach port 443 anywhere until the API server's addresses are named.
    assert others == ["speculative-router"]
    narrow = {"networkPolicy": {"apiServer": {"peers": [{"ipBlock": {"cidr": "10.96.0.1/32"}}]}}}
    rendering = render(merged(pair(**ON, modelCache=SHARED), narrow))
    others = [name for name, pod in pods(rendering) if pod != fetching and reaches(rendering, pod, HUB, 443)]
    assert others == []
    assert reaches(rendering, named(rendering)["speculative-router"], API_SERVER, 443)


def test_an_engine_that_fetches_in_its_own_pod_reaches_the_hub_and_one_with_its_models_does_not(render):
    fetches = render(pair(**ON))
    assert reaches(fetches, named(fetches)["speculative"], HUB, 443)
    itself = render(pair(**ON, modelCache={"prefetch": {"enabled": False}}))
    assert reaches(itself, named(itself)["speculative"], HUB, 443)
    offline = render(
        lookup(**ON, engine={"model": {"name": "/srv/model", "revision": ""}}, huggingFace={"offline": True})
    )
    assert not reaches(offline, named(offline)["speculative"], HUB, 443)


def test_private_addresses_are_not_the_hub(render):
    rendering = render(pair(**ON))
    engine = named(rendering)["speculative"]
    for address in ("10.1.2.3", "172.20.0.1", "192.168.1.1", "169.254.169.254"):
        assert not reaches(rendering, engine, End(address=address), 443), address


def test_a_bucket_is_read_with_the_node_s_credentials(render):
    rendering = render("gcs-fuse")
    engine = named(rendering)["speculative"]
    assert reaches(rendering, engine, METADATA, 988)
    assert reaches(rendering, engine, HUB, 443)
    plain = render(pair(**ON))
    assert not reaches(plain, named(plain)["speculative"], METADATA, 988)


def test_the_chart_s_own_tests_reach_what_they_ask(render):
    rendering = render(pair(**ON, baseline={"enabled": True}))
    all_pods = named(rendering)
    test = all_pods["speculative-test"]
    benchmark = End({**test.labels, "app.kubernetes.io/component": "benchmark"})
    for client in (test, benchmark):
        assert reaches(rendering, client, all_pods["speculative-router"], 8000)
    assert reaches(rendering, benchmark, all_pods["speculative-baseline"], 8000)
    assert not reaches(rendering, NEIGHBOUR, test, 8000)


def benchmark_of(rendering: Rendering) -> End:
    """The pod of `specdec bench`, which the chart does not render."""
    return End({**named(rendering)["speculative"].labels, "app.kubernetes.io/component": "benchmark"})


def test_a_benchmark_reaches_the_hub_only_where_the_models_lie_in_another_pod_s_own_cache(render):
    """It needs the tokenizer: from the engine's cache where it can mount that, else from where the engine had it."""
    for values, fetches in ((pair(**ON), True), (pair(**ON, modelCache=SHARED), False)):
        rendering = render(values)
        assert reaches(rendering, benchmark_of(rendering), HUB, 443) is fetches
    private = End(address="10.1.2.3")
    assert not reaches(rendering, benchmark_of(rendering), private, 443)


def test_a_benchmark_mounts_the_bucket_that_the_engines_mount(render):
    rendering = render("gcs-fuse")
    assert reaches(rendering, benchmark_of(rendering), METADATA, 988)


@pytest.mark.parametrize("name", ["deny", "clients", "benchmark"])
def test_an_engine_cannot_take_the_name_of_a_policy(refused, name):
    assert "SD455" in refused(lookup(engines={name: {}}))


def test_a_gateway_asks_the_endpoint_picker_which_reads_the_engines_metrics(render):
    traffic: dict[str, Any] = {
        "gateway": {"enabled": True, "parentRefs": [{"name": "gw"}]},
        "inferencePool": {"enabled": True},
    }
    rendering = render(pair(**ON, router={"enabled": False}, traffic=traffic))
    all_pods = named(rendering)
    picker, engine = all_pods["speculative-epp"], all_pods["speculative"]
    assert reaches(rendering, NEIGHBOUR, picker, 9002)
    assert reaches(rendering, picker, engine, 8000)
    assert reaches(rendering, picker, API_SERVER, 443)
    assert reaches(rendering, PROMETHEUS, picker, 9090)
    # The gateway sends the request itself to the pod that the picker chose.
    assert reaches(rendering, NEIGHBOUR, engine, 8000)


def test_rules_of_one_s_own_come_on_top(render):
    rendering = render("air-gapped")
    engine = named(rendering)["speculative"]
    assert reaches(rendering, End({"app": "evaluation"}), engine, 8000)
    assert reaches(rendering, engine, End(address="10.30.0.9"), 4317)
    assert reaches(rendering, engine, End(address="10.20.0.9"), 8443)
    assert not reaches(rendering, engine, HUB, 443)

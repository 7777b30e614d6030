"""Ways in: routers for several models, Ingress, HTTPRoute, GKE's policies, endpoint pickers, the clients' key."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from .conftest import TARGET, TARGET_REVISION, Rendering, each_scenario, lookup, merged, pair
from .test_release import matches

GATEWAY = {"enabled": True, "parentRefs": [{"name": "gw", "namespace": "infra", "port": 443}]}
TWO_MODELS: dict[str, Any] = lookup(
    engines={
        "chat": {"engine": {"model": {"servedName": "chat"}}},
        "chat2": {"engine": {"model": {"servedName": "chat"}}},
        "code": {"engine": {"model": {"servedName": "code"}}},
    },
    router={"entries": {"chat": ["chat", "chat2"], "code": ["code"]}},
)
POOL = lookup(router={"enabled": False}, traffic={"gateway": GATEWAY, "inferencePool": {"enabled": True}})


def pods_behind(rendering: Rendering, service: str) -> list[str]:
    """Names of the workloads whose pods a Service or InferencePool selects."""
    kind = "Service" if any(m["metadata"]["name"] == service for m in rendering.all("Service")) else "InferencePool"
    selector = rendering.one(kind, service)["spec"]["selector"]
    selector = selector.get("matchLabels", selector)
    workloads = rendering.all("StatefulSet") + rendering.all("Deployment")
    return [w["metadata"]["name"] for w in workloads if matches(selector, w["spec"]["template"]["metadata"]["labels"])]


def router_pods(rendering: Rendering, router: str) -> list[str]:
    """Names of the engines that a router discovers."""
    args = rendering.args(router)
    words = []
    for word in args[args.index("--selector") + 1 :]:
        if word.startswith("--"):
            break
        words.append(word)
    wanted = dict(word.split("=", 1) for word in words)
    engines = [rendering.workload(name) for name in rendering.engines()]
    return [e["metadata"]["name"] for e in engines if matches(wanted, e["spec"]["template"]["metadata"]["labels"])]


def seconds(duration: str) -> int:
    assert re.fullmatch(r"\d{1,5}s", duration), duration
    return int(duration.removesuffix("s"))


def test_two_models_in_one_release_have_a_router_each(render):
    rendering = render(TWO_MODELS)
    assert sorted(router_pods(rendering, "speculative-chat-router")) == ["speculative-chat", "speculative-chat2"]
    assert router_pods(rendering, "speculative-code-router") == ["speculative-code"]
    for router in ("speculative-chat-router", "speculative-code-router"):
        assert pods_behind(rendering, router) == [router]
        assert rendering.pod(router)["serviceAccountName"] == router
        assert rendering.one("RoleBinding", router)["subjects"][0]["name"] == router
        assert rendering.one("PodDisruptionBudget", router)
    asked = {pod["metadata"]["name"]: pod["spec"]["containers"][0]["args"][0] for pod in rendering.all("Pod")}
    assert asked == {
        "speculative-chat-test": "http://speculative-chat-router.ai-inference.svc:8000",
        "speculative-chat2-test": "http://speculative-chat-router.ai-inference.svc:8000",
        "speculative-code-test": "http://speculative-code-router.ai-inference.svc:8000",
    }


def test_an_engine_outside_every_entry_has_no_router(render):
    values = merged(TWO_MODELS, {"router": {"entries": {"chat": ["chat"], "code": ["code"]}}})
    rendering = render(values)
    assert router_pods(rendering, "speculative-chat-router") == ["speculative-chat"]
    assert (
        "vllm-speculative/routed"
        not in rendering.workload("speculative-chat2")["spec"]["template"]["metadata"]["labels"]
    )


def test_the_hosts_of_each_entry_lead_to_its_router(render):
    rendering = render("ingress")
    leads = {}
    for ingress in rendering.all("Ingress"):
        for rule in ingress["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                assert path["pathType"] == "Prefix"
                service = path["backend"]["service"]
                ports = rendering.one("Service", service["name"])["spec"]["ports"]
                assert service["port"]["number"] in [port["port"] for port in ports]
                leads[rule["host"], path["path"]] = service["name"]
        assert ingress["spec"]["tls"] == [
            {"secretName": "models-tls", "hosts": [rule["host"] for rule in ingress["spec"]["rules"]]}
        ]
    assert leads == {
        ("chat.example.com", "/v1"): "speculative-chat-router",
        ("chat.example.com", "/health"): "speculative-chat-router",
        ("code.example.com", "/v1"): "speculative-code-router",
        ("code.example.com", "/health"): "speculative-code-router",
    }


def test_only_the_api_is_let_through_by_default(render):
    rendering = render(lookup(traffic={"ingress": {"enabled": True}, "gateway": GATEWAY}))
    (ingress,) = rendering.all("Ingress")
    assert [path["path"] for path in ingress["spec"]["rules"][0]["http"]["paths"]] == ["/v1"]
    assert "host" not in ingress["spec"]["rules"][0]
    (route,) = rendering.all("HTTPRoute")
    assert route["spec"]["rules"][0]["matches"] == [{"path": {"type": "PathPrefix", "value": "/v1"}}]
    assert route["spec"]["parentRefs"] == GATEWAY["parentRefs"]
    assert "hostnames" not in route["spec"]


@pytest.mark.parametrize(
    ("router", "given", "wanted"),
    [
        ({}, None, 1890),
        ({"requestTimeoutSeconds": 7200, "queue": {"timeoutSeconds": 300}}, None, 7530),
        ({}, 1800, 1800),
    ],
)
def test_ways_in_wait_longer_than_the_router(render, router, given, wanted):
    traffic = {"timeoutSeconds": given, "gateway": GATEWAY, "ingress": {"enabled": True, "controller": "nginx"}}
    rendering = render(lookup(router=router, traffic=traffic))
    limit = int(
        rendering.args("speculative-router")[rendering.args("speculative-router").index("--request-timeout-secs") + 1]
    )
    (route,) = rendering.all("HTTPRoute")
    timeouts = route["spec"]["rules"][0]["timeouts"]
    assert seconds(timeouts["request"]) == seconds(timeouts["backendRequest"]) == wanted >= limit
    annotations = rendering.all("Ingress")[0]["metadata"]["annotations"]
    assert annotations["nginx.ingress.kubernetes.io/proxy-read-timeout"] == str(wanted)
    assert annotations["nginx.ingress.kubernetes.io/proxy-send-timeout"] == str(wanted)


def test_nginx_neither_buffers_streams_nor_sends_a_request_twice(render):
    own = {"nginx.ingress.kubernetes.io/proxy-body-size": "8m", "example.com/a": "b"}
    ingress = {"enabled": True, "controller": "nginx", "className": "web", "annotations": own}
    (made,) = render(lookup(traffic={"ingress": ingress})).all("Ingress")
    assert made["spec"]["ingressClassName"] == "web"
    assert made["metadata"]["annotations"] | own | {
        "nginx.ingress.kubernetes.io/proxy-buffering": "off",
        "nginx.ingress.kubernetes.io/proxy-next-upstream": "off",
    } == made["metadata"]["annotations"]  # fmt: skip


def test_aws_balances_over_pods_and_waits_at_most_4000_seconds(render):
    values = lookup(
        cloud="eks", router={"requestTimeoutSeconds": 5000}, traffic={"ingress": {"enabled": True, "controller": "alb"}}
    )
    annotations = render(values).all("Ingress")[0]["metadata"]["annotations"]
    prefix = "alb.ingress.kubernetes.io/"
    assert annotations == {
        prefix + "target-type": "ip",
        prefix + "healthcheck-path": "/readiness",
        prefix + "load-balancer-attributes": "idle_timeout.timeout_seconds=4000",
        prefix + "target-group-attributes": "deregistration_delay.timeout_seconds=90",
    }


@pytest.mark.parametrize("controller", ["traefik", "other"])
def test_controllers_that_stream_by_themselves_get_no_annotations(render, controller):
    (made,) = render(lookup(traffic={"ingress": {"enabled": True, "controller": controller}})).all("Ingress")
    assert "annotations" not in made["metadata"]


def test_gke_s_ingress_is_told_by_a_backend_config_that_the_service_names(render):
    rendering = render(lookup(cloud="gke", traffic={"ingress": {"enabled": True, "controller": "gce"}}))
    (config,) = rendering.all("BackendConfig")
    assert config["spec"]["timeoutSec"] == 1890
    assert config["spec"]["healthCheck"]["requestPath"] == "/readiness"
    assert config["spec"]["connectionDraining"] == {"drainingTimeoutSec": 90}
    annotations = rendering.one("Service", "speculative-router")["metadata"]["annotations"]
    assert json.loads(annotations["cloud.google.com/backend-config"]) == {"default": config["metadata"]["name"]}
    assert json.loads(annotations["cloud.google.com/neg"]) == {"ingress": True}


def policies(rendering: Rendering) -> list[str]:
    return [m["kind"] for m in rendering.manifests if m["apiVersion"] == "networking.gke.io/v1"]


@pytest.mark.parametrize(
    ("cloud", "when", "options", "made"),
    [
        ("gke", "auto", ("--api-versions", "networking.gke.io/v1/GCPBackendPolicy"), True),
        ("gke", "auto", (), False),
        ("generic", "auto", ("--api-versions", "networking.gke.io/v1/GCPBackendPolicy"), False),
        ("gke", "always", (), True),
        ("gke", "never", ("--api-versions", "networking.gke.io/v1/GCPBackendPolicy"), False),
    ],
)
def test_gke_s_policies_come_where_the_api_exists_or_the_values_say_so(render, cloud, when, options, made):
    rendering = render(lookup(cloud=cloud, traffic={"gateway": GATEWAY, "gke": {"policies": when}}), *options)
    assert sorted(policies(rendering)) == (["GCPBackendPolicy", "HealthCheckPolicy"] if made else [])
    (route,) = rendering.all("HTTPRoute")
    # Whichever is there says how long an answer may take.
    assert ("timeouts" in route["spec"]["rules"][0]) is not made


def test_gke_asks_the_router_s_own_path_and_lets_streams_end(render):
    rendering = render("gateway-gke")
    (health,) = rendering.all("HealthCheckPolicy")
    (backend,) = rendering.all("GCPBackendPolicy")
    container = rendering.container("speculative-router")
    config = health["spec"]["default"]["config"]["httpHealthCheck"]
    assert config["requestPath"] == container["readinessProbe"]["httpGet"]["path"]
    assert config["port"] in [port["containerPort"] for port in container["ports"]]
    assert backend["spec"]["default"] == {"timeoutSec": 1890, "connectionDraining": {"drainingTimeoutSec": 300}}
    for policy in (health, backend):
        assert policy["spec"]["targetRef"] == {"group": "", "kind": "Service", "name": "speculative-router"}


def test_a_pool_and_its_picker_select_the_same_engines_as_the_service(render):
    rendering = render(POOL)
    (pool,) = rendering.all("InferencePool")
    assert pods_behind(rendering, "speculative") == ["speculative"]
    assert matches(
        pool["spec"]["selector"]["matchLabels"], rendering.workload()["spec"]["template"]["metadata"]["labels"]
    )
    assert pool["spec"]["targetPorts"] == [{"number": rendering.container()["ports"][0]["containerPort"]}]
    picker = pool["spec"]["endpointPickerRef"]
    service = rendering.one("Service", picker["name"])
    assert picker["port"]["number"] in [port["port"] for port in service["spec"]["ports"]]
    assert pods_behind(rendering, picker["name"]) == [picker["name"]]
    args = rendering.args(picker["name"])
    assert "--pool-name=" + pool["metadata"]["name"] in args
    assert "--pool-namespace=ai-inference" in args
    (route,) = rendering.all("HTTPRoute")
    assert route["spec"]["rules"][0]["backendRefs"] == [
        {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": pool["metadata"]["name"]}
    ]
    assert not [m for m in rendering.manifests if "router" in m["metadata"]["name"]]


def test_a_picker_weighs_what_the_values_say(render):
    rendering = render("inference-pool")
    config = yaml.safe_load(rendering.flag("--config-text", "speculative-epp"))
    (profile,) = config["schedulingProfiles"]
    assert {each["pluginRef"]: each["weight"] for each in profile["plugins"]} == {
        "queue-scorer": 1,
        "prefix-cache-scorer": 2.5,
    }
    named = {plugin["type"] for plugin in config["plugins"]}
    assert {each["pluginRef"] for each in profile["plugins"]} <= named
    assert {"metrics-data-source", "core-metrics-extractor"} <= named


def test_several_pickers_elect_a_leader_and_may_hold_the_lease(render):
    several, one = render("inference-pool"), render(POOL)
    assert "--ha-enable-leader-election" in several.args("speculative-epp")
    assert "--ha-enable-leader-election" not in one.args("speculative-epp")
    leases = [rule for rule in several.one("Role", "speculative-epp")["rules"] if "leases" in rule["resources"]]
    assert leases
    assert {"create", "update"} <= set(leases[0]["verbs"])
    assert not [rule for rule in one.one("Role", "speculative-epp")["rules"] if "leases" in rule["resources"]]


def test_the_clients_key_comes_from_a_secret_and_stands_nowhere(render):
    rendering = render(lookup(traffic={"apiKeySecret": {"name": "clients", "key": "k"}}))
    reference = {"secretKeyRef": {"name": "clients", "key": "k"}}
    assert rendering.env()["VLLM_API_KEY"] == reference
    assert "--api-key" not in rendering.args()
    (test,) = rendering.all("Pod")
    assert test["spec"]["containers"][0]["env"] == [{"name": "VLLM_API_KEY", "valueFrom": reference}]
    # The engine guards /v1 alone, so probes and the router's own questions need no key.
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert rendering.container()[probe]["httpGet"] == {"path": "/health", "port": "http"}
    router = rendering.args("speculative-router")
    assert router[router.index("--health-check-endpoint") + 1] == "/health"
    assert "VLLM_API_KEY" not in rendering.env("speculative-router")


def test_a_key_of_one_s_own_is_not_set_twice(render):
    own = {"name": "VLLM_API_KEY", "valueFrom": {"secretKeyRef": {"name": "mine", "key": "k"}}}
    rendering = render(lookup(engine={"extraEnv": [own]}, traffic={"apiKeySecret": {"name": "clients"}}))
    assert [each for each in rendering.container()["env"] if each["name"] == "VLLM_API_KEY"] == [own]


@each_scenario()
def test_every_way_in_leads_to_something_that_exists(render, scenario):
    rendering = render(scenario)
    named = {(m["kind"], m["metadata"]["name"]) for m in rendering.manifests}
    for route in rendering.all("HTTPRoute"):
        for rule in route["spec"]["rules"]:
            for backend in rule["backendRefs"]:
                assert (backend.get("kind", "Service"), backend["name"]) in named
    for ingress in rendering.all("Ingress"):
        for rule in ingress["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                assert ("Service", path["backend"]["service"]["name"]) in named
    for kind in ("HealthCheckPolicy", "GCPBackendPolicy"):
        for policy in rendering.all(kind):
            assert (policy["spec"]["targetRef"]["kind"], policy["spec"]["targetRef"]["name"]) in named


MODEL = {"model": {"name": TARGET, "revision": TARGET_REVISION}}
BAD: dict[str, tuple[dict[str, Any], tuple[str, str, str], dict[str, Any]]] = {
    "two models behind one router": (
        {**TWO_MODELS, "router": {}},
        ("SD552", "router.engines", "router.entries {chat: [chat, chat2], code: [code]}"),
        TWO_MODELS,
    ),
    "two models behind one entry": (
        {**TWO_MODELS, "router": {"entries": {"chat": ["chat", "chat2", "code"]}}},
        ("SD552", "router.entries.chat", "chat, code"),
        TWO_MODELS,
    ),
    "an entry of an engine that is not there": (
        merged(TWO_MODELS, {"router": {"entries": {"code": ["cod"]}}}),
        ("SD570", "router.entries.code", "one of chat, chat2, code"),
        TWO_MODELS,
    ),
    "one engine behind two routers": (
        merged(TWO_MODELS, {"router": {"entries": {"other": ["chat"]}}}),
        ("SD571", "router.entries", "two routers for one engine"),
        TWO_MODELS,
    ),
    "a router and an endpoint picker": (
        merged(POOL, {"router": {"enabled": True}}),
        ("SD571", "traffic.inferencePool.enabled", "two routers for one engine"),
        POOL,
    ),
    "a router whose name is too long": (
        lookup(engines={"a": {}}, router={"entries": {"n" * 50: ["a"]}}),
        ("SD457", "router.entries." + "n" * 50, "63 are the limit"),
        lookup(engines={"a": {}}, router={"entries": {"n" * 40: ["a"]}}),
    ),
    "entries beside a list of engines": (
        merged(TWO_MODELS, {"router": {"engines": ["chat"]}}),
        ("SD578", "router.engines", "router.entries is set too"),
        TWO_MODELS,
    ),
    "a host that does not say which router": (
        merged(TWO_MODELS, {"traffic": {"gateway": GATEWAY, "hosts": [{"host": "a.example.com"}]}}),
        ("SD572", "traffic.hosts[0].entry", "one of chat, code"),
        merged(TWO_MODELS, {"traffic": {"gateway": GATEWAY, "hosts": [{"host": "a.example.com", "entry": "code"}]}}),
    ),
    "a route to several routers without a host": (
        merged(TWO_MODELS, {"traffic": {"gateway": GATEWAY}}),
        ("SD572", "traffic.hosts", "chat, code"),
        merged(TWO_MODELS, {"traffic": {"gateway": GATEWAY, "hosts": [{"host": "a.example.com", "entry": "chat"}]}}),
    ),
    "a host of an entry that is not there": (
        lookup(traffic={"hosts": [{"host": "a.example.com", "entry": "chat"}]}),
        ("SD573", "traffic.hosts[0].entry", "one of router"),
        lookup(traffic={"hosts": [{"host": "a.example.com", "entry": "router"}]}),
    ),
    "a gateway that gives up before the router": (
        lookup(traffic={"timeoutSeconds": 60}),
        ("SD574", "traffic.timeoutSeconds", "60 s at the Gateway"),
        lookup(traffic={"timeoutSeconds": 60}, router={"requestTimeoutSeconds": 60}),
    ),
    "a route without a gateway": (
        lookup(traffic={"gateway": {"enabled": True}}),
        ("SD575", "traffic.gateway.parentRefs", "without a parent"),
        lookup(traffic={"gateway": GATEWAY}),
    ),
    "an ingress in front of an endpoint picker": (
        merged(POOL, {"traffic": {"ingress": {"enabled": True}}}),
        ("SD576", "traffic.ingress.enabled", "endpoint picker"),
        POOL,
    ),
    "gke's policies on eks": (
        lookup(cloud="eks", traffic={"gke": {"policies": "always"}}),
        ("SD577", "traffic.gke.policies", "cloud is eks"),
        lookup(cloud="gke", traffic={"gke": {"policies": "always"}}),
    ),
    "gke's ingress elsewhere": (
        lookup(traffic={"ingress": {"enabled": True, "controller": "gce"}}),
        ("SD577", "traffic.ingress.controller", "cloud is generic"),
        lookup(cloud="gke", traffic={"ingress": {"enabled": True, "controller": "gce"}}),
    ),
    "a certificate for no host": (
        lookup(traffic={"ingress": {"enabled": True, "tls": {"secretName": "t"}}}),
        ("SD579", "traffic.ingress.tls.secretName", "no host"),
        lookup(
            traffic={"hosts": [{"host": "a.example.com"}], "ingress": {"enabled": True, "tls": {"secretName": "t"}}}
        ),
    ),
    "a key among the arguments": (
        pair(engine={"extraArgs": ["--api-key=k"]}),
        ("SD753", "engine.extraArgs[0]", "traffic.apiKeySecret"),
        pair(traffic={"apiKeySecret": {"name": "clients"}}),
    ),
}


@pytest.mark.parametrize("story", BAD)
def test_traffic_that_would_not_arrive_is_refused(refused, render, story):
    values, (code, path, part), good = BAD[story]
    message = refused(values)
    assert f"{code}: {path}" in message
    assert part in message
    assert " fix: " in message
    render(good)

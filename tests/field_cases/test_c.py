"""Field cases C: charts and serving stacks. Each names its case; the reports stand beside the rules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .helpers import COMMIT, LLAMA_1B, LLAMA_8B, LLAMA_70B, drafted, finds, found, passes, pod, refuses, renders, values


def spec(**more: Any) -> dict[str, Any]:
    return {"method": "ngram", "num_speculative_tokens": 3, **more}


class TestC1JsonBrokenOnTheWay:
    """One element of a list, made by toJson; never a shell, never a printed map."""

    def test_c1_typed_values_arrive_as_json_with_whole_numbers(self) -> None:
        done = renders(values(engine={"maxModelLen": 100000, "maxNumBatchedTokens": 131072}))
        assert done.speculation() == {"method": "ngram", "num_speculative_tokens": 3}
        assert isinstance(done.speculation()["num_speculative_tokens"], int)
        args = done.args()
        assert args[args.index("--max-model-len") + 1] == "100000"
        assert args[args.index("--max-num-batched-tokens") + 1] == "131072"
        assert done.container()["command"][0] not in ("sh", "bash", "/bin/sh", "/bin/bash")

    @pytest.mark.parametrize(
        "argument",
        [
            '--override-generation-config={"temperature":0.2}',
            "--chat-template=/models/a path/100% of {{ it }}.jinja",
            """--hf-overrides={"a": "it's \\"quoted\\""}""",
        ],
    )
    def test_c1_what_stands_in_extra_args_arrives_as_it_is(self, argument: str) -> None:
        assert argument in renders(values(engine={"extraArgs": [argument]})).args()

    def test_c1_a_variable_of_kubernetes_is_escaped(self) -> None:
        args = renders(values(engine={"extraArgs": ['--hf-overrides={"a": "$(HOME)"}']})).args()
        assert '--hf-overrides={"a": "$$(HOME)"}' in args

    @pytest.mark.parametrize(
        ("broken", "says"),
        [
            ("map[method:ngram num_speculative_tokens:3]", "is not JSON"),
            ("'" + json.dumps(spec()) + "'", "take the quotes away"),
            ("{method: ngram}", "is not JSON"),
            ("{}{}", "is not JSON"),
            ('["ngram"]', "has to be a JSON object"),
        ],
    )
    def test_c1_what_shells_and_printers_make_of_it(self, broken: str, says: str) -> None:
        finds(pod("--speculative-config", broken), "SD103", says)
        passes(pod(speculative=spec()), "SD103")

    def test_c1_a_variable_that_nobody_sets(self) -> None:
        finds(pod("--max-model-len", "$(LENGTH)"), "SD105", "$(LENGTH) is not a variable")
        passes(pod("--max-model-len", "$(LENGTH)", env=[("LENGTH", "8192")]), "SD105")

    def test_c1_the_shells_own_command_line_is_read(self) -> None:
        def shell(config: str) -> Any:
            command = f"exec vllm serve /models/target --shutdown-timeout 60 --speculative-config '{config}'"
            return pod(container={"command": ["bash", "-c"], "args": [command]})

        finds(shell(json.dumps(spec(num_speculative_tokens=0))), "SD110", "num_speculative_tokens is 0")
        passes(shell(json.dumps(spec())), "SD110")


class TestC2SharedMemory:
    def test_c2_two_ranks_and_no_volume(self) -> None:
        finds(pod("-tp=2", gpus=2, volumes=[]), "SD420", "2 ranks share 64 MiB")
        passes(pod("-tp=2", gpus=2), "SD420")
        assert "/dev/shm" in str(renders(values(engine={"tensorParallelSize": 2})).container()["volumeMounts"])

    def test_c2_the_volume_counts_against_the_memory_limit(self) -> None:
        limits = {"resources": {"limits": {"nvidia.com/gpu": "1", "memory": "16Gi"}}}
        finds(pod(container=limits), "SD421", "/dev/shm may hold 16.0 GiB", "limit is 16.0 GiB")
        passes(pod(), "SD421")
        small = {"resources": {"requests": {"memory": "12Gi"}, "limits": {"memory": "12Gi"}}}
        refuses(values(engine=small, sharedMemory={"size": "16Gi"}), "SD353")
        renders(values(engine=small, sharedMemory={"size": "2Gi"}))

    def test_c2_a_size_beside_the_place_where_it_is_read(self) -> None:
        refuses(values(engine={"shmSize": "16Gi"}), "shmSize")
        renders(values(sharedMemory={"size": "16Gi"}))


PROBE = {"httpGet": {"path": "/health", "port": 8000}}


class TestC3ProbesAgainstBytes:
    """70B in bf16 at 200 MB/s is 705 s; KServe's 60 x 10 s are too few, 8B is there after 80 s."""

    @staticmethod
    def starting(model: str, threshold: int, tp: int) -> Any:
        startup = {**PROBE, "periodSeconds": 10, "failureThreshold": threshold}
        return pod(f"-tp={tp}", model=model, gpus=tp, container={"startupProbe": startup})

    def test_c3_seventy_billion_in_six_hundred_seconds(self) -> None:
        finds(self.starting(LLAMA_70B, 60, 4), "SD402", "gives up after 600 s", "131.4 GiB", "706 s at 200 MB/s")
        passes(self.starting(LLAMA_70B, 106, 4), "SD402")
        passes(self.starting(LLAMA_8B, 60, 1), "SD402")

    def test_c3_the_drafts_bytes_count_too(self) -> None:
        draft = {"method": "draft_model", "model": LLAMA_8B, "num_speculative_tokens": 3}
        startup = {**PROBE, "periodSeconds": 10, "failureThreshold": 75}
        given = {"gpus": 4, "container": {"startupProbe": startup}, "model": LLAMA_70B}
        finds(pod("-tp=4", speculative=draft, **given), "SD402", "146.4 GiB", "786 s")
        passes(pod("-tp=4", **given), "SD402")

    def test_c3_liveness_that_does_not_wait(self) -> None:
        early = {"startupProbe": None, "livenessProbe": {**PROBE, "initialDelaySeconds": 120}}
        finds(pod("-tp=4", model=LLAMA_70B, gpus=4, container=early), "SD401", "after 150 s", "706 s")
        assert not found(self.starting(LLAMA_70B, 106, 4), "SD401")

    def test_c3_a_path_that_the_server_does_not_have(self) -> None:
        wrong = {"httpGet": {"path": "/healthz", "port": 8000}}
        finds(pod(container={"livenessProbe": wrong}), "SD405", "/healthz", "path: /health")
        passes(pod(container={"livenessProbe": PROBE}), "SD405")

    def test_c3_a_probe_that_gives_up_after_one_failure(self) -> None:
        finds(pod(container={"livenessProbe": {**PROBE, "failureThreshold": 1}}), "SD407", "after 1 failures")
        passes(pod(container={"livenessProbe": {**PROBE, "failureThreshold": 3}}), "SD407")

    def test_c3_our_budget_follows_from_the_bytes(self) -> None:
        def seconds(given: dict[str, Any]) -> int:
            probe = renders(given).container()["startupProbe"]
            assert "initialDelaySeconds" not in probe
            return int(probe["periodSeconds"]) * int(probe["failureThreshold"])

        name = {"engine": {"model": {"name": LLAMA_70B}, "tensorParallelSize": 4}}
        assert seconds(values(**name)) >= 705
        assert seconds(drafted(name=LLAMA_8B, **name)) > seconds(values(**name)) > seconds(values())


def deployment(
    strategy: dict[str, Any] | None = None, replicas: int = 1, gpus: int = 4, pool: int | None = None
) -> str:
    labels = {"app": "engine"}
    container = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.32.0",
        "args": ["/models/target", f"--tensor-parallel-size={gpus}"],
        "resources": {"limits": {"nvidia.com/gpu": str(gpus), "memory": "64Gi"}},
        "readinessProbe": PROBE,
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }
    shm = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}}
    annotations = {"vllm-speculative/pool-gpus": str(pool)} if pool else {}
    return json.dumps(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "engine", "annotations": annotations},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                **({"strategy": strategy} if strategy else {}),
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": [shm]}},
            },
        }
    )


IN_PLACE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


class TestC5RolloutsWithoutSpareGpus:
    def test_c5_kubernetes_default_with_one_replica(self) -> None:
        finds(deployment(), "SD424", "an update needs 4 spare GPUs")
        passes(deployment(IN_PLACE), "SD424")
        passes(deployment({"type": "Recreate"}), "SD424")

    def test_c5_neither_more_nor_fewer(self) -> None:
        both = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}
        finds(deployment(both), "SD430", "both 0")
        passes(deployment(IN_PLACE), "SD430")

    def test_c5_replicas_and_surge_against_the_pool(self) -> None:
        surging = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
        finds(
            deployment(surging, replicas=2, pool=8), "SD431", "12 GPUs are needed, 4 of them during a rollout", "has 8"
        )
        passes(deployment(surging, replicas=2, pool=12), "SD431")
        passes(deployment(IN_PLACE, replicas=2, pool=8), "SD431")

    def test_c5_ours_replaces_pods_in_place(self) -> None:
        for workload in ("StatefulSet", "Deployment"):
            done = renders(values(engine={"workload": workload}))
            assert not found(done.text, "SD424"), workload


WRITABLE = ("HOME", "HF_HOME", "VLLM_CACHE_ROOT", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")


class TestC8NobodysUserAndAReadOnlyRoot:
    VOLUMES = (("shm", "/dev/shm"), ("tmp", "/tmp"), ("home", "/home/engine"))

    def read_only(self, *env: tuple[str, str]) -> Any:
        mounts = [{"name": name, "mountPath": path} for name, path in self.VOLUMES]
        volumes: list[dict[str, Any]] = [{"name": name, "emptyDir": {}} for name, _ in self.VOLUMES[1:]]
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}})
        container = {"securityContext": {"readOnlyRootFilesystem": True}, "volumeMounts": mounts}
        return pod(env=env, container=container, volumes=volumes)

    @pytest.mark.parametrize("name", ["HF_HOME", "VLLM_CACHE_ROOT", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"])
    def test_c8_each_cache_has_to_be_writable(self, name: str) -> None:
        home = ("HOME", "/home/engine")
        finds(self.read_only(home, (name, "/var/cache/x")), "SD440", f"{name} (/var/cache/x)")
        passes(self.read_only(home, (name, "/home/engine/x")), "SD440")

    def test_c8_without_a_home_everything_is_at_the_root(self) -> None:
        finds(self.read_only(("LANG", "C")), "SD440", "VLLM_CACHE_ROOT (/.cache/vllm)")

    def test_c8_a_user_without_a_home(self) -> None:
        context = {"runAsNonRoot": True, "runAsUser": 2000}
        finds(pod(securityContext=context), "SD441", "user 2000")
        passes(pod(securityContext=context, env=[("HOME", "/tmp")]), "SD441")

    def test_c8_our_pod_has_every_cache_on_a_writable_mount(self) -> None:
        done = renders(values())
        container = done.container()
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        env = {item["name"]: item.get("value") for item in container["env"]}
        mounts = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
        for name in WRITABLE:
            assert any(f"{env[name]}/".startswith(f"{mount}/") for mount in mounts), name
        assert done.engine().get("spec.template.spec.securityContext.fsGroup")


class TestC9RequestsCutOnShutdown:
    @staticmethod
    def stopping(grace: int, before: int = 15, drain: int = 40) -> Any:
        return pod(
            f"--shutdown-timeout={drain}",
            terminationGracePeriodSeconds=grace,
            container={"lifecycle": {"preStop": {"sleep": {"seconds": before}}}},
        )

    def test_c9_the_grace_period_holds_both(self) -> None:
        finds(self.stopping(55), "SD410", "55 s ends before preStop (15 s) and the drain (40 s)")
        finds(self.stopping(30), "SD410", "30 s")
        passes(self.stopping(60), "SD410")

    def test_c9_a_shell_that_keeps_the_signal(self) -> None:
        def shell(command: str) -> Any:
            return pod(container={"command": ["bash", "-c"], "args": [command]})

        wrapped = "vllm serve /models/target --shutdown-timeout 60; echo done"
        finds(shell(wrapped), "SD412", "bash is PID 1")
        passes(shell("exec vllm serve /models/target --shutdown-timeout 60"), "SD412")

    def test_c9_the_flag_by_version(self) -> None:
        finds(pod("--shutdown-timeout=60", version="0.17.0"), "SD101", "0.17.0", "from 0.18.0 on")
        passes(pod("--shutdown-timeout=60", version="0.18.0"), "SD101")
        assert "--shutdown-timeout" not in renders(values(engine={"version": "0.17.0"})).args()
        assert "--shutdown-timeout" in renders(values(engine={"version": "0.18.0"})).args()

    def test_c9_ours_keeps_the_inequality(self) -> None:
        done = renders(values(shutdown={"preStopSeconds": 20, "timeoutSeconds": 90}))
        grace = done.engine().get("spec.template.spec.terminationGracePeriodSeconds")
        assert grace > 20 + 90
        assert done.container()["command"][0].startswith("python")


def rule_on(expression: str, version: str = "0.32.0") -> str:
    group = {"name": "engine", "rules": [{"alert": "A", "expr": expression}]}
    alert = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "engine"},
        "spec": {"groups": [group]},
    }
    engine = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "engine", "labels": {"app": "engine"}},
        "spec": {"containers": [{"name": "e", "image": f"vllm/vllm-openai:v{version}", "args": ["/models/target"]}]},
    }
    return "\n---\n".join(json.dumps(item) for item in (alert, engine))


class TestC10DeadMetrics:
    @pytest.mark.parametrize(
        ("dead", "version", "instead", "lived"),
        [
            ("vllm:gpu_cache_usage_perc", "0.32.0", "vllm:kv_cache_usage_perc", "0.9.1"),
            ("vllm:time_per_output_token_seconds_sum", "0.13.0", "vllm:request_time_per_output_token_seconds", "0.9.2"),
            ("vllm:num_requests_swapped", "0.32.0", "did you mean", "0.6.3"),
        ],
    )
    def test_c10_a_name_that_a_version_took_away(self, dead: str, version: str, instead: str, lived: str) -> None:
        finds(rule_on(f"avg({dead}) > 1", version), "SD601", dead, version, instead)
        assert not found(rule_on(f"avg({dead}) > 1", lived), "SD601")

    def test_c10_the_seeds_two_names(self) -> None:
        finds(
            rule_on("rate(vllm:num_spec_tokens_accepted_total[5m]) < 0.5"),
            "SD601",
            "vllm:spec_decode_num_accepted_tokens_total",
        )
        finds(
            rule_on("vllm:avg_inference_latency_seconds > 1"),
            "SD601",
            "vllm:request_time_per_output_token_seconds",
        )

    def test_c10_percentages_of_two_pods_are_not_added_up(self) -> None:
        finds(rule_on("sum(vllm:kv_cache_usage_perc) > 0.8"), "SD604", "shares are added up")
        passes(rule_on("avg(vllm:kv_cache_usage_perc) > 0.8"), "SD604")

    def test_c10_dashboards_are_read_too(self) -> None:
        def dashboard(expression: str) -> str:
            document = {"panels": [{"title": "KV", "panels": [{"title": "use", "targets": [{"expr": expression}]}]}]}
            return json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "dashboard"},
                    "data": {"engine.json": json.dumps(document)},
                }
            )

        finds(dashboard("vllm:cpu_cache_usage"), "SD601", "vllm:cpu_cache_usage", "panel 'use'")
        passes(dashboard("vllm:kv_cache_usage_perc"), "SD601")


def scaled(query: str, replicas: int | None = None, least: int = 1, strict: bool = True) -> str:
    metadata = {"serverAddress": "http://prometheus:9090", "query": query, "threshold": "5"}
    metadata |= {"ignoreNullValues": "false"} if strict else {}
    scaler = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "engine"},
        "spec": {
            "scaleTargetRef": {"name": "engine"},
            "minReplicaCount": least,
            "maxReplicaCount": 4,
            "triggers": [{"type": "prometheus", "metadata": metadata}],
        },
    }
    workload = json.loads(deployment(IN_PLACE))
    workload["spec"].pop("replicas")
    if replicas is not None:
        workload["spec"]["replicas"] = replicas
    workload["spec"]["template"]["spec"]["containers"][0]["args"].append("--served-model-name=chat")
    return "\n---\n".join(json.dumps(item) for item in (scaler, workload))


WAITING = 'sum(vllm:num_requests_waiting{model_name="chat"})'


class TestC11TriggersThatNeverFire:
    def test_c11_an_underscore_for_the_colon(self) -> None:
        finds(scaled("sum(vllm_num_requests_waiting)"), "SD602", "vllm:num_requests_waiting")
        passes(scaled(WAITING), "SD602")

    def test_c11_a_label_of_another_model(self) -> None:
        finds(scaled(WAITING.replace("chat", "talk")), "SD516", 'model_name="talk"', "chat")
        passes(scaled(WAITING), "SD516")

    def test_c11_no_series_counts_as_zero(self) -> None:
        finds(scaled(WAITING, strict=False), "SD511", 'ignoreNullValues: "false"')
        passes(scaled(WAITING), "SD511")

    def test_c11_replicas_that_every_upgrade_puts_back(self) -> None:
        finds(scaled(WAITING, replicas=1), "SD510", "ScaledObject/engine scales it", "says 1")
        passes(scaled(WAITING), "SD510")

    def test_c11_nothing_wakes_what_was_scaled_to_zero(self) -> None:
        finds(scaled(WAITING, least=0), "SD512", "scaled to 0")
        passes(scaled(WAITING, least=1), "SD512")


def monitored(selector: str = "engine", port: str = "http", namespace: str = "ai") -> str:
    monitor = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": "engine", "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": selector}}, "endpoints": [{"port": port}]},
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "engine", "namespace": "ai", "labels": {"app": "engine"}},
        "spec": {"ports": [{"name": "http", "port": 8000}]},
    }
    return "\n---\n".join(json.dumps(item) for item in (monitor, service))


class TestC12MonitorsThatScrapeNothing:
    def test_c12_labels_that_the_service_does_not_have(self) -> None:
        finds(monitored(selector="vllm"), "SD610", "no Service here has these labels")
        passes(monitored(), "SD610")

    def test_c12_a_port_that_the_service_does_not_have(self) -> None:
        finds(monitored(port="metrics"), "SD611", "no port called metrics: it has http")
        passes(monitored(), "SD611")

    def test_c12_a_service_in_another_namespace(self) -> None:
        finds(monitored(namespace="monitoring"), "SD610", "namespace ai is out of its reach", "matchNames: [ai]")


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


class TestC2ToC16Claims:
    """Modes of claims: who may mount them, and who may write."""

    CLAIM = "\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: weights}\nspec: {accessModes: [%s]}\n"

    @staticmethod
    def mounting(replicas: int) -> str:
        given = json.loads(deployment(IN_PLACE, replicas=replicas))
        volume = {"name": "weights", "persistentVolumeClaim": {"claimName": "weights"}}
        given["spec"]["template"]["spec"]["volumes"].append(volume)
        return json.dumps(given)

    @pytest.mark.parametrize("mode", ["ReadWriteOnce", "ReadWriteOncePod"])
    def test_a_claim_of_one_node_and_two_pods(self, mode: str) -> None:
        finds(self.mounting(2) + self.CLAIM % mode, "SD425", "up to 2 pods mount")
        passes(self.mounting(1) + self.CLAIM % mode, "SD425")
        passes(self.mounting(2) + self.CLAIM % "ReadOnlyMany", "SD425")


def test_c15_kserves_own_timeout() -> None:
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "chat"},
    }
    finds(json.dumps({**service, "spec": {"predictor": {"timeout": 60}}}), "SD504", "after 60 s")
    passes(json.dumps({**service, "spec": {"predictor": {"timeout": 1800}}}), "SD504")

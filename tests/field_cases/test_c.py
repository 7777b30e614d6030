"""Field cases C: the pod and how it starts, rolls and ends. Each names its case; the reports stand beside the rules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .deployment import IN_PLACE, PROBE, deployment
from .helpers import LLAMA_8B, LLAMA_70B, drafted, finds, found, passes, pod, refuses, renders, values


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

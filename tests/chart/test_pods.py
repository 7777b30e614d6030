"""Pods that run: memory, writable paths, rights, accelerators and the nodes that have them."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import each_scenario, lookup, pair

MEBI = 2**20
CACHES = [
    "HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "VLLM_CACHE_ROOT",
    "VLLM_CONFIG_ROOT",
    "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "NUMBA_CACHE_DIR",
    "MPLCONFIGDIR",
    "HF_HOME",
]


def memory(quantity: str) -> int:
    units = {"Gi": 2**30, "Mi": 2**20, "Ki": 2**10, "G": 10**9, "M": 10**6}
    for unit, factor in units.items():
        if quantity.endswith(unit):
            return int(float(quantity.removesuffix(unit)) * factor)
    return int(quantity)


def volume(pod: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [each for each in pod["volumes"] if each["name"] == name]
    return found


@each_scenario()
def test_shared_memory_is_memory_and_counted_in_the_limit(render, scenario):
    rendering = render(scenario)
    for name in rendering.engines():
        shm = volume(rendering.pod(name), "shm")["emptyDir"]
        assert shm["medium"] == "Memory"
        container = rendering.container(name)
        assert {"name": "shm", "mountPath": "/dev/shm"} in container["volumeMounts"]
        assert memory(container["resources"]["limits"]["memory"]) > memory(shm["sizeLimit"])


def test_a_limit_that_is_left_out_is_the_request_and_shared_memory(render):
    values = lookup(engine={"resources": {"requests": {"memory": "100Gi"}}}, sharedMemory={"size": "512Mi"})
    assert memory(render(values).container()["resources"]["limits"]["memory"]) == 100 * 1024 * MEBI + 512 * MEBI


def test_a_limit_that_is_given_is_kept(render):
    values = lookup(engine={"resources": {"requests": {"memory": "100Gi"}, "limits": {"memory": "180Gi", "cpu": "32"}}})
    limits = render(values).container()["resources"]["limits"]
    assert limits == {"memory": "180Gi", "cpu": "32", "nvidia.com/gpu": "1"}


def test_sizes_written_as_bytes_stay_integers(render):
    values = lookup(
        engine={"resources": {"requests": {"memory": 68719476736, "cpu": 8}}}, sharedMemory={"size": 17179869184}
    )
    rendering = render(values)
    assert rendering.container()["resources"]["requests"] == {
        "memory": "68719476736",
        "cpu": "8",
        "nvidia.com/gpu": "1",
    }
    assert volume(rendering.pod(), "shm")["emptyDir"]["sizeLimit"] == 17179869184
    assert "e+" not in rendering.text


@each_scenario()
def test_whatever_is_written_lies_on_a_writable_volume(render, scenario):
    rendering = render(scenario)
    for name in rendering.engines():
        container, env = rendering.container(name), rendering.env(name)
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        writable = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
        for variable in CACHES:
            assert any(env[variable].startswith(path) for path in writable), variable
        assert "/tmp" in writable
        # Libraries ask for the user's name, which the image does not have.
        assert env["USER"] == env["LOGNAME"] == "engine"
        if "nvidia.com/gpu" in container["resources"]["limits"]:
            for variable in ("CUDA_CACHE_PATH", "FLASHINFER_WORKSPACE_BASE"):
                assert any(env[variable].startswith(path) for path in writable)


@each_scenario()
def test_every_container_has_the_least_rights(render, scenario):
    rendering = render(scenario)
    pods = [w["spec"]["template"]["spec"] for w in rendering.all("StatefulSet") + rendering.all("Deployment")]
    pods += [pod["spec"] for pod in rendering.all("Pod")]
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["fsGroup"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["enableServiceLinks"] is False
        for container in pod["containers"] + pod.get("initContainers", []):
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["readOnlyRootFilesystem"] is True
            assert "memory" in container["resources"]["limits"]


@each_scenario()
def test_only_what_discovers_engines_may_ask_the_api_server(render, scenario):
    rendering = render(scenario)
    for workload in rendering.all("StatefulSet") + rendering.all("Deployment"):
        component = workload["metadata"]["labels"]["app.kubernetes.io/component"]
        mounted = workload["spec"]["template"]["spec"]["automountServiceAccountToken"]
        assert mounted is (component in ("router", "endpoint-picker"))
    assert all(account["automountServiceAccountToken"] is False for account in rendering.all("ServiceAccount"))


@pytest.mark.parametrize(
    ("tensor", "pipeline", "data", "gpus"), [(1, 1, 1, "1"), (4, 1, 1, "4"), (2, 2, 1, "4"), (2, 1, 2, "4")]
)
def test_gpus_follow_from_the_parallel_sizes(render, tensor, pipeline, data, gpus):
    sizes = {"tensorParallelSize": tensor, "pipelineParallelSize": pipeline, "dataParallelSize": data}
    resources = render(pair(engine=sizes, speculative={"enabled": False})).container()["resources"]
    assert resources["limits"]["nvidia.com/gpu"] == resources["requests"]["nvidia.com/gpu"] == gpus


GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("cloud", "accelerator", "selector"),
    [
        (
            "gke",
            {"type": "h100-80gb", "machineType": "a3-highgpu-8g"},
            {
                "cloud.google.com/gke-accelerator": "nvidia-h100-80gb",
                "node.kubernetes.io/instance-type": "a3-highgpu-8g",
            },
        ),
        ("gke", {"type": "l4"}, {"cloud.google.com/gke-accelerator": "nvidia-l4"}),
        ("eks", {"type": "a10g", "machineType": "g5.48xlarge"}, {"node.kubernetes.io/instance-type": "g5.48xlarge"}),
        ("eks", {"type": "a10g"}, {"nvidia.com/gpu.product": "NVIDIA-A10G"}),
        ("generic", {"type": "h100-80gb"}, {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}),
    ],
)
def test_nodes_with_the_accelerator_are_selected_by_cloud(render, cloud, accelerator, selector):
    pod = render(lookup(cloud=cloud, accelerator=accelerator)).pod()
    assert pod["nodeSelector"] == selector
    assert GPU_TAINT in pod["tolerations"]


def test_own_node_labels_come_on_top(render):
    pod = render(
        lookup(engine={"nodeSelector": {"pool": "llm"}, "tolerations": [{"key": "x", "operator": "Exists"}]})
    ).pod()
    assert pod["nodeSelector"]["pool"] == "llm"
    assert pod["tolerations"] == [GPU_TAINT, {"key": "x", "operator": "Exists"}]


def test_a_cpu_engine_asks_for_no_gpu(render):
    rendering = render("cpu")
    for name in ("speculative", "speculative-baseline"):
        assert "nvidia.com/gpu" not in rendering.container(name)["resources"]["limits"]
        assert "nodeSelector" not in rendering.pod(name)
        assert "tolerations" not in rendering.pod(name)
        assert rendering.flag("--kv-cache-memory-bytes", name) == "1073741824"
    assert rendering.container()["image"] == "vllm/vllm-openai-cpu:v0.32.0"


def test_an_update_needs_no_spare_accelerator(render):
    assert render(lookup()).workload()["spec"]["updateStrategy"] == {"type": "RollingUpdate"}
    assert render(lookup()).workload()["spec"]["podManagementPolicy"] == "Parallel"
    deployment = render(lookup(engine={"workload": "Deployment"})).workload()
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_a_new_chart_version_alone_restarts_nothing(render):
    template = render(lookup()).workload()["spec"]["template"]
    assert "helm.sh/chart" not in template["metadata"]["labels"]


def test_own_variables_take_the_place_of_ours(render):
    values = lookup(
        engine={"extraEnv": [{"name": "VLLM_NO_USAGE_STATS", "value": "0"}, {"name": "NCCL_DEBUG", "value": "WARN"}]}
    )
    names = [each["name"] for each in render(values).container()["env"]]
    assert names.count("VLLM_NO_USAGE_STATS") == 1
    assert render(values).env()["VLLM_NO_USAGE_STATS"] == "0"
    assert render(values).env()["NCCL_DEBUG"] == "WARN"


def test_images_can_come_from_a_mirror(render):
    rendering = render(
        lookup(**{"global": {"imageRegistry": "mirror.example", "imagePullSecrets": [{"name": "pull"}]}})
    )
    images = [rendering.container()["image"], rendering.container("speculative-router")["image"]]
    assert images == ["mirror.example/vllm/vllm-openai:v0.32.0", "mirror.example/vllm/vllm-router:0.1.17"]
    assert (
        rendering.pod()["imagePullSecrets"]
        == rendering.pod("speculative-router")["imagePullSecrets"]
        == [{"name": "pull"}]
    )

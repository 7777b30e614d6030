"""Manifests in the forms of other projects: the same rules hold for each, at the line where it stands."""

from __future__ import annotations

import re

import pytest
from specdec.manifests import engines, parse

from .helpers import finds, found, passes

BROKEN = '{"method": "ngram", "num_speculative_tokens": 0}'
SOUND = '{"method": "ngram", "num_speculative_tokens": 3}'

# A chart that writes the command into one list, with the shell's quotes gone and its own Service named vllm.
STACK = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: stack-chat-deployment-vllm
  labels: {model: chat}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector: {matchLabels: {model: chat}}
  template:
    metadata: {labels: {model: chat}}
    spec:
      containers:
        - name: vllm
          image: "vllm/vllm-openai:v0.32.0"
          command:
            - "vllm"
            - "serve"
            - "/data/chat"
            - "--host"
            - "0.0.0.0"
            - "--port"
            - "8000"
            - "--speculative-config"
            - 'CONFIG'
          env:
            - {name: HF_HOME, value: /data}
          resources: {limits: {nvidia.com/gpu: "1", memory: 64Gi}}
          readinessProbe: {httpGet: {path: /health, port: 8000}}
"""

# A model service whose container is started by a shell.
SERVICE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: ms-decode}
spec:
  replicas: 1
  strategy: {type: Recreate}
  template:
    metadata: {labels: {llm-d.ai/role: decode}}
    spec:
      containers:
        - name: vllm
          image: ghcr.io/llm-d/llm-d:v0.4.0
          command: ["/bin/sh", "-c"]
          args:
            - |
              export HF_HOME=/models
              exec vllm serve /models/chat \\
                --port 8200 \\
                --speculative-config 'CONFIG'
          resources: {limits: {nvidia.com/gpu: "1", memory: 64Gi}}
          readinessProbe: {httpGet: {path: /health, port: 8200}}
"""

INFERENCE_SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: chat}
spec:
  predictor:
    minReplicas: 1
    model:
      modelFormat: {name: huggingface}
      image: vllm/vllm-openai:v0.32.0
      args:
        - --model=/mnt/models
        - --speculative-config=CONFIG
      resources: {limits: {nvidia.com/gpu: "1", memory: 64Gi}}
"""

LLM_INFERENCE_SERVICE = """
apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceService
metadata: {name: chat}
spec:
  model: {uri: "hf://org/chat", name: chat}
  template:
    containers:
      - name: main
        image: vllm/vllm-openai:v0.32.0
        command: [vllm, serve, /mnt/models]
        args:
          - --speculative-config
          - 'CONFIG'
        resources: {limits: {nvidia.com/gpu: "1", memory: 64Gi}}
"""

LEADER_WORKER_SET = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: chat}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 2
    leaderTemplate:
      metadata: {labels: {role: leader}}
      spec:
        containers:
          - name: leader
            image: vllm/vllm-openai:v0.32.0
            command: [bash, -c]
            args:
              - "bash /vllm-workspace/multi-node-serving.sh leader --ray_cluster_size=2;
                exec python3 -m vllm.entrypoints.openai.api_server --model /models/chat --port 8080
                --speculative-config 'CONFIG'"
            resources: {limits: {nvidia.com/gpu: "8", memory: 64Gi}}
            readinessProbe: {tcpSocket: {port: 8080}}
            volumeMounts: [{name: shm, mountPath: /dev/shm}]
        volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]
    workerTemplate:
      spec:
        containers:
          - name: worker
            image: vllm/vllm-openai:v0.32.0
            command: [bash, -c, "bash /vllm-workspace/multi-node-serving.sh worker"]
"""

FORMS = {
    "a stack's chart": STACK,
    "a model service with a shell": SERVICE,
    "KServe's InferenceService": INFERENCE_SERVICE,
    "KServe's LLMInferenceService": LLM_INFERENCE_SERVICE,
    "LeaderWorkerSet": LEADER_WORKER_SET,
}


SERVING = """---
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec: {{selector: {{{selector}}}, ports: [{{port: {port}}}]}}
"""


def quoted(text: str, config: str) -> str:
    """The form with that speculative config: inside a YAML string with double quotes they are escaped."""
    inside = text is LEADER_WORKER_SET
    if text is INFERENCE_SERVICE:
        return text.replace("--speculative-config=CONFIG", f"'--speculative-config={config}'")
    return text.replace("CONFIG", config.replace('"', '\\"') if inside else config)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
class TestEachForm:
    def test_the_engine_in_it_is_found(self, form: str) -> None:
        (engine,) = engines(parse(quoted(form, SOUND)))
        assert engine.args.speculative
        assert engine.args.speculative.num_speculative_tokens == 3
        assert engine.args.errors == []

    def test_a_wrong_argument_is_found_in_it_and_the_right_one_passes(self, form: str) -> None:
        finding = finds(quoted(form, BROKEN), "SD110", "num_speculative_tokens is 0")
        line = quoted(form, BROKEN).splitlines()[finding.line - 1]
        near = "".join(quoted(form, BROKEN).splitlines()[finding.line - 2 : finding.line + 4])
        assert "speculative-config" in near, line
        assert not found(quoted(form, SOUND), "SD110")

    def test_items_of_a_list_are_read_alike(self, form: str) -> None:
        body = "\n".join(f"    {line}" for line in quoted(form, BROKEN).strip("\n").splitlines())
        listed = f"apiVersion: v1\nkind: List\nitems:\n  -{body[3:]}\n"
        finds(listed, "SD110", "num_speculative_tokens is 0")


class TestWhatTheseFormsGetWrong:
    def test_a_service_called_vllm_beside_the_stack(self) -> None:
        service = SERVING.format(name="vllm", selector="model: chat", port=8000)
        finds(quoted(STACK, SOUND) + service, "SD427", "the Service vllm sets VLLM_PORT")
        passes(quoted(STACK, SOUND) + service.replace("name: vllm", "name: chat"), "SD427")

    def test_a_service_on_the_port_that_the_shell_names(self) -> None:
        def on(port: int) -> str:
            return quoted(SERVICE, SOUND) + SERVING.format(name="ms", selector="llm-d.ai/role: decode", port=port)

        finds(on(8000), "SD507", "listens on 8200", "sends to 8000")
        passes(on(8200), "SD507")

    def test_an_image_of_another_version_scheme_decides_nothing(self) -> None:
        # llm-d's own v0.4.0 is no version of vLLM; the option says which one it holds.
        flag = quoted(SERVICE, SOUND).replace("--port 8200", "--port 8200 --shutdown-timeout 60")
        assert not [f for f in found(flag, version="0.32.0") if f.code == "SD101"]
        assert [f for f in found(flag, version="0.16.0") if f.code == "SD101"]

    def test_a_leader_with_a_probe_of_the_port_alone(self) -> None:
        leader = quoted(LEADER_WORKER_SET, SOUND).replace("readinessProbe", "livenessProbe")
        finds(leader, "SD404", "asks the port")

    def test_the_environment_of_the_engine(self) -> None:
        legacy = quoted(STACK, SOUND).replace("{name: HF_HOME, value: /data}", '{name: VLLM_USE_V1, value: "0"}')
        finds(legacy, "SD131", "does not read VLLM_USE_V1", "before 0.11.1")
        typo = quoted(STACK, SOUND).replace("{name: HF_HOME, value: /data}", "{name: VLLM_CACHE_ROOTS, value: /data}")
        finds(typo, "SD134", "did you mean VLLM_CACHE_ROOT?")
        passes(quoted(STACK, SOUND), "SD134")

    @pytest.mark.parametrize(
        "image", ["lmcache/vllm-openai:v0.3.9post2", "ghcr.io/llm-d/llm-d:v0.4.0", "nvcr.io/nvidia/vllm:26.02-py3"]
    )
    def test_a_tag_that_counts_another_project(self, image: str) -> None:
        text = quoted(STACK, SOUND).replace("vllm/vllm-openai:v0.32.0", image)
        assert engines(parse(text))[0].engine_version is None
        finds(text, "SD106", image)
        passes(text.replace(image, "vllm/vllm-openai:v0.32.0"), "SD106")

    def test_what_a_shell_fills_in_later_is_not_judged(self) -> None:
        text = quoted(SERVICE, SOUND).replace("--port 8200", "--port ${PORT} --max-model-len $LENGTH")
        assert not found(text, "SD104")
        finds(text.replace("$LENGTH", "LENGTH"), "SD104", "'LENGTH', not a number")

    def test_pods_of_a_ray_cluster_are_pods(self) -> None:
        pod = "{metadata: {labels: {app: ray}}, spec: {containers: [{name: a}]}}"
        cluster = (
            "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: ray}\n"
            f"spec:\n  headGroupSpec: {{template: {pod}}}\n  workerGroupSpecs: [{{template: {pod}}}]\n"
        )
        finds(cluster + SERVING.format(name="ray", selector="app: rays", port=80), "SD502", "app=rays")
        passes(cluster + SERVING.format(name="ray", selector="app: ray", port=80), "SD502")

    def test_a_patch_of_a_container_is_no_engine_of_its_own(self) -> None:
        patch = STACK.replace('          image: "vllm/vllm-openai:v0.32.0"\n', "")
        assert found(quoted(patch, BROKEN)) == []

    def test_labels_that_a_controller_gives_are_no_mistake(self) -> None:
        leader = SERVING.format(name="chat", selector="leaderworkerset.sigs.k8s.io/name: chat, role: leader", port=8080)
        assert not found(quoted(LEADER_WORKER_SET, SOUND) + leader, "SD502")
        finds(quoted(LEADER_WORKER_SET, SOUND) + leader.replace("role: leader", "role: first"), "SD502", "role=first")

    def test_values_that_kubernetes_fills_in_from_elsewhere(self) -> None:
        text = quoted(STACK, SOUND).replace('- "8000"', "- $(PORT)")
        text = text.replace(
            "- {name: HF_HOME, value: /data}", "- {name: PORT, valueFrom: {configMapKeyRef: {name: a, key: b}}}"
        )
        assert not {"SD104", "SD105"} & {finding.code for finding in found(text)}


class TestMemoryOnTheEdge:
    """What only the band allows is a warning: refusing what may run is a false alarm."""

    @staticmethod
    def on_l4(length: int) -> str:
        text = quoted(STACK, SOUND).replace("/data/chat", "meta-llama/Llama-3.1-8B-Instruct")
        text = text.replace('- "--host"', f'- "--max-model-len"\n            - "{length}"\n            - "--host"')
        return text.replace(
            "      containers:", "      nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}\n      containers:"
        )

    def test_a_length_within_the_band_and_one_beyond_it(self) -> None:
        left = int(re.search(r"(\d+) tokens$", finds(self.on_l4(65536), "SD320").message).group(1))  # by best guess
        finds(self.on_l4(left + 1024), "SD303", f"{left} tokens")
        assert not found(self.on_l4(left + 1024), "SD320")
        finds(self.on_l4(65536), "SD320", "of KV cache")
        assert not found(self.on_l4(65536), "SD303")
        assert not {"SD303", "SD320"} & {finding.code for finding in found(self.on_l4(left - 1024))}

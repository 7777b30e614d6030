"""SD7xx: code and images that change under you, secrets in the open, rights that are not needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from specdec.manifests import EngineWorkload, pod_containers, pod_specs
from specdec.objects import Path, mapping, sequence
from specdec.rules.model import Problem, Severity, World, each_engine, rule

POD_SECURITY = "https://kubernetes.io/docs/concepts/security/pod-security-standards/"


@rule(
    "SD701",
    "trust-remote-code",
    Severity.warning,
    reason="Python code out of the model's repository runs with the engine's rights: its token, its network, its GPUs. "
    "Models that vLLM implements itself do not need it.",
    fix="take --trust-remote-code away; where a model needs it, pin --code-revision to a commit that you have read",
    source="https://docs.vllm.ai/en/latest/usage/security.html",
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --trust-remote-code]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60]
""",
)
@each_engine
def trust_remote_code(engine: EngineWorkload) -> Iterator[Problem]:
    if engine.args.trust_remote_code:
        path = engine.path_of("--trust-remote-code")
        yield Problem(engine.manifest, path, f"{engine.args.model or 'the model'} may run code of its own")


SECRET_FLAGS = ("--api-key", "--hf-token", "--ssl-keyfile-password")
SECRET_VARIABLE = re.compile(r"(TOKEN|API_KEY|PASSWORD|SECRET|SECRET_ACCESS_KEY|ACCESS_KEY)$")
HUB_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{20,}\b")
# Variables that end like a secret and are none, and values that only point to one.
NOT_SECRET = re.compile(r"TOKENIZERS|MAX_|NUM_|TOKEN_(FILE|PATH)$|_PATH$|_FILE$")


@rule(
    "SD702",
    "secret-in-plain-text",
    Severity.error,
    reason="Arguments and literal variables stand in the manifest, in Git, in the process list and in every `kubectl "
    "describe`.",
    fix="env with valueFrom.secretKeyRef; the engine reads HF_TOKEN and VLLM_API_KEY",
    source="https://kubernetes.io/docs/concepts/configuration/secret/",
    bad="""
containers:
  - env: [{name: HF_TOKEN, value: hf_not_a_real_token}]
""",
    good="""
containers:
  - env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}]
""",
)
def secret_in_plain_text(world: World) -> Iterator[Problem]:
    for engine in world.engines:
        for flag, value in engine.args.raw:
            if flag in SECRET_FLAGS and value and not value.startswith("$("):
                yield Problem(engine.manifest, engine.path_of(flag), f"the value of {flag} stands in the arguments")
        for path, variable in _variables(engine):
            name = str(variable.get("name"))
            if looks_secret(name, variable.get("value")):
                yield Problem(engine.manifest, path, f"the value of {name} stands in the manifest")
    # A token of the Hub is known by its form, in whatever downloads: an init container, a Job, a DaemonSet.
    for manifest in world.manifests:
        for path, spec in pod_specs(manifest):
            for container, place in pod_containers(spec, path):
                for part in ("command", "args"):
                    if any(HUB_TOKEN.search(str(word)) for word in sequence(container.get(part))):
                        yield Problem(manifest, (*place, part), f"a token of the Hub stands in the {part}")


def _variables(engine: EngineWorkload) -> Iterator[tuple[Path, dict[str, object]]]:
    for container, path in pod_containers(engine.pod_spec, engine.path):
        for position, variable in enumerate(sequence(container.get("env"))):
            if isinstance(variable, dict):
                yield (*path, "env", position), variable


@rule(
    "SD703",
    "runs-as-root",
    Severity.warning,
    reason="A process that runs as root in the container has more to break out with, and a namespace with the "
    "restricted pod security standard refuses the pod.",
    fix="securityContext: {runAsNonRoot: true, runAsUser: 1000}, and HOME and the caches on a writable volume",
    source=POD_SECURITY,
    bad="""
securityContext: null
""",
    good="""
securityContext: {runAsNonRoot: true, runAsUser: 1000}
""",
)
@each_engine
def runs_as_root(engine: EngineWorkload) -> Iterator[Problem]:
    for container, path in containers(engine):
        own = mapping(container.get("securityContext"))
        together = {**mapping(engine.pod_spec.get("securityContext")), **own}
        if together.get("runAsUser") == 0 or not (together.get("runAsNonRoot") or together.get("runAsUser")):
            place = (*path, "securityContext") if own else path
            yield Problem(engine.manifest, place, f"container {container.get('name')} may run as root")


def containers(engine: EngineWorkload) -> Iterator[tuple[dict[str, Any], Path]]:
    """The engine's own container and those that run before it, with their places."""
    yield engine.container, engine.container_path
    for container, path in pod_containers(engine.pod_spec, engine.path):
        if "initContainers" in path:
            yield container, path


@rule(
    "SD704",
    "mutable-image",
    Severity.warning,
    reason="latest and nightly name another engine tomorrow: two replicas may run two versions, and a rollback brings "
    "nothing back.",
    fix="a tag with a version, better with a digest: vllm/vllm-openai:v0.32.0@sha256:...",
    source="https://kubernetes.io/docs/concepts/containers/images/#image-names",
    bad="""
containers:
  - image: vllm/vllm-openai:latest
""",
    good="""
containers:
  - image: vllm/vllm-openai:v0.32.0
""",
)
@each_engine
def mutable_image(engine: EngineWorkload) -> Iterator[Problem]:
    for container, path in containers(engine):
        image = str(container.get("image") or "")
        if not image or "@" in image:
            continue
        tag = image.rsplit("/", 1)[-1].partition(":")[2]
        if not re.search(r"\d", tag) or tag.startswith(("latest", "nightly")):
            yield Problem(engine.manifest, (*path, "image"), f"{image} {'has no tag' if not tag else 'may change'}")


@rule(
    "SD705",
    "mutable-revision",
    Severity.warning,
    reason="Without a commit the engine loads whatever the model's repository holds when the pod starts. A head that "
    "no longer fits its target, or changed weights, arrive with a restart.",
    fix='--revision with the commit, 40 hexadecimal digits; for the draft "revision" in the speculative config',
    source="https://huggingface.co/docs/hub/repositories-getting-started",
    bad="""
containers:
  - args: [Qwen/Qwen3-8B, --shutdown-timeout=60]
""",
    good="""
containers:
  - args: [Qwen/Qwen3-8B, --shutdown-timeout=60, --revision, 0123456789abcdef0123456789abcdef01234567]
""",
)
@each_engine
def mutable_revision(engine: EngineWorkload) -> Iterator[Problem]:
    asked = engine.args.speculative
    # Versions with single flags cannot pin the draft.
    draft = None if asked is None or asked.legacy else (asked.model, asked.revision, "--speculative-config")
    for name, revision, flag in filter(None, [(engine.args.model, engine.args.revision, "--revision"), draft]):
        if name and re.fullmatch(r"[\w.-]+/[\w.-]+", name) and not re.fullmatch(r"[0-9a-f]{40}", revision or ""):
            at = f"at {revision}, which is no commit" if revision else "at no revision"
            yield Problem(engine.manifest, engine.path_of(flag), f"{name} is loaded {at}")


@rule(
    "SD706",
    "privileged",
    Severity.error,
    reason="A privileged container, or one with the node's process or network namespaces, owns the node. GPUs need "
    "none of it: the device plugin hands them out.",
    fix="take privileged, hostPID and hostNetwork away",
    source=POD_SECURITY,
    bad="""
containers:
  - securityContext: {privileged: true}
""",
    good="""
containers:
  - securityContext: {privileged: false, allowPrivilegeEscalation: false}
""",
)
@each_engine
def privileged(engine: EngineWorkload) -> Iterator[Problem]:
    for container, path in containers(engine):
        if mapping(container.get("securityContext")).get("privileged") is True:
            message = f"container {container.get('name')} is privileged"
            yield Problem(engine.manifest, (*path, "securityContext", "privileged"), message)
    for key in ("hostPID", "hostNetwork"):
        # Engines over several nodes use the network of their nodes for RDMA.
        if engine.pod_spec.get(key) is True and engine.manifest.kind != "LeaderWorkerSet":
            yield Problem(engine.manifest, (*engine.path, key), f"{key}: true")


@rule(
    "SD707",
    "secret-in-config-map",
    Severity.error,
    reason="A ConfigMap is readable by everyone who can read the namespace, and stands in Git.",
    fix="a Secret",
    source="https://kubernetes.io/docs/concepts/configuration/configmap/",
    bad="""
apiVersion: v1
kind: ConfigMap
metadata: {name: engine}
data: {HF_TOKEN: hf_not_a_real_token}
""",
    good="""
apiVersion: v1
kind: ConfigMap
metadata: {name: engine}
data: {HF_HOME: /models}
""",
)
def secret_in_config_map(world: World) -> Iterator[Problem]:
    for manifest in world.of_kind("ConfigMap"):
        for key, value in mapping(manifest.data.get("data")).items():
            if looks_secret(str(key), value):
                yield Problem(manifest, ("data", key), f"the value of {key} looks like a secret")


def looks_secret(name: str, value: object) -> bool:
    """Whether a variable is a credential: by its name, or a Hugging Face token by its form."""
    if isinstance(value, str) and HUB_TOKEN.fullmatch(value):
        return True
    return bool(value) and bool(SECRET_VARIABLE.search(name)) and not NOT_SECRET.search(name)

"""SD708 to SD714: rights, servers and switches that open more than the engine needs."""

from __future__ import annotations

from collections.abc import Iterator

from specdec.manifests import EngineWorkload
from specdec.objects import mapping, sequence
from specdec.rules.model import Edit, Problem, Severity, World, each_engine, rule
from specdec.rules.security import POD_SECURITY
from specdec.rules.variables import variable_path

SECURITY = "https://docs.vllm.ai/en/latest/usage/security.html"


@rule(
    "SD708",
    "token-of-the-service-account",
    Severity.warning,
    reason="Kubernetes puts a token for its API into every pod. An engine never asks the API server, and whoever gets "
    "into it, by a model's code for example, has the token's rights.",
    fix="automountServiceAccountToken: false",
    source="https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/",
    bad="""
automountServiceAccountToken: null
""",
    good="""
automountServiceAccountToken: false
""",
)
def token_of_the_service_account(world: World) -> Iterator[Problem]:
    closed = {
        (account.namespace, account.name)
        for account in world.of_kind("ServiceAccount")
        if account.data.get("automountServiceAccountToken") is False
    }
    for engine in world.engines:
        mounted = engine.pod_spec.get("automountServiceAccountToken")
        account = (engine.manifest.namespace, str(engine.pod_spec.get("serviceAccountName")))
        if mounted is True or (mounted is None and account not in closed):
            path = (*engine.path, "automountServiceAccountToken")
            message = f"{engine.name} gets a token for the Kubernetes API"
            yield Problem(engine.manifest, path, message, None, (Edit(path, False),))


@rule(
    "SD709",
    "may-gain-privileges",
    Severity.warning,
    reason="With allowPrivilegeEscalation: true a set-uid program in the image turns any user into root; capabilities "
    "that are added are there to be used. GPUs need neither, and the restricted pod security standard refuses the pod.",
    fix="securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}",
    source=POD_SECURITY,
    bad="""
containers:
  - securityContext: {capabilities: {add: [SYS_ADMIN]}}
""",
    good="""
containers:
  - securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
""",
)
@each_engine
def may_gain_privileges(engine: EngineWorkload) -> Iterator[Problem]:
    own = mapping(engine.container.get("securityContext"))
    path = (*engine.container_path, "securityContext")
    # Engines over RDMA lock memory.
    added = [name for name in sequence(mapping(own.get("capabilities")).get("add")) if name != "IPC_LOCK"]
    if added:
        message = f"the container has the capabilities {', '.join(map(str, added))}"
        yield Problem(engine.manifest, (*path, "capabilities", "add"), message)
    elif own.get("allowPrivilegeEscalation") is True:
        yield Problem(engine.manifest, (*path, "allowPrivilegeEscalation"), "the container may gain privileges")


SWITCHES = {
    "VLLM_SERVER_DEV_MODE": "anyone may reset caches, put the engine to sleep and call its workers",
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "messages between processes are unpickled, which runs code",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "anyone may load an adapter from a path of their choice",
    "VLLM_TORCH_PROFILER_DIR": "anyone may start the profiler, which slows every request",
}


@rule(
    "SD710",
    "development-switch",
    Severity.warning,
    reason="These variables are for development: they add endpoints or ways in that ask nobody for a key.",
    fix="take the variable away",
    source=f"vllm/envs.py; {SECURITY}",
    bad="""
containers:
  - env: [{name: VLLM_SERVER_DEV_MODE, value: "1"}]
""",
    good="""
containers:
  - env: [{name: VLLM_SERVER_DEV_MODE, value: "0"}]
""",
)
@each_engine
def development_switch(engine: EngineWorkload) -> Iterator[Problem]:
    for name, opens in SWITCHES.items():
        if (engine.env.get(name) or "0").lower() not in ("0", "false", ""):
            yield Problem(engine.manifest, variable_path(engine, name), f"{name}: {opens}")


@rule(
    "SD711",
    "media-from-everywhere",
    Severity.error,
    reason="Clients may name files below --allowed-local-media-path in their requests. With / that is every file that "
    "the engine can read: its token, its keys, other models.",
    fix="a folder that holds nothing else, or no such argument",
    source=f"vllm/config/model.py: allowed_local_media_path; {SECURITY}",
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --allowed-local-media-path=/]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --allowed-local-media-path=/media]
""",
)
@each_engine
def media_from_everywhere(engine: EngineWorkload) -> Iterator[Problem]:
    flag = "--allowed-local-media-path"
    path = (engine.args.value(flag) or "").rstrip("/")
    if engine.args.has(flag) and path in ("", "/root", "/var", "/etc", "/home", "/run", "/proc"):
        yield Problem(engine.manifest, engine.path_of(flag), f"clients may read every file below {path or '/'}")


OUTSIDE = """
apiVersion: v1
kind: Service
metadata: {name: engine}
spec: {type: LoadBalancer, selector: {app: engine}, ports: [{port: 80, targetPort: 8000}]%s}
---
apiVersion: v1
kind: Pod
metadata: {name: engine, labels: {app: engine}}
spec:
  containers:
    - name: engine
      image: vllm/vllm-openai:v0.32.0
      args: [/models/target]
"""


@rule(
    "SD712",
    "open-to-the-internet",
    Severity.warning,
    reason="A Service of type LoadBalancer or NodePort straight to the engines gives whoever finds the address free "
    "GPUs: the engine asks for a key only when it is given one, and for none at all on /metrics and its other paths.",
    fix="a gateway in front, an internal load balancer, or VLLM_API_KEY from a Secret with loadBalancerSourceRanges",
    source=SECURITY,
    bad=OUTSIDE % "",
    good=OUTSIDE % ", loadBalancerSourceRanges: [10.0.0.0/8]",
)
def open_to_the_internet(world: World) -> Iterator[Problem]:
    for service in world.of_kind("Service"):
        kind = service.get("spec.type")
        internal = any("internal" in f"{key}={value}".lower() for key, value in service.annotations.items())
        if kind not in ("LoadBalancer", "NodePort") or internal or service.get("spec.loadBalancerSourceRanges"):
            continue
        wanted = mapping(service.get("spec.selector"))
        for engine in world.engines:
            labels = mapping(engine.pod_metadata.get("labels"))
            keyed = engine.args.has("--api-key") or "VLLM_API_KEY" in engine.env
            same = engine.manifest.namespace == service.namespace
            if wanted and same and wanted.items() <= labels.items() and not keyed:
                yield Problem(service, ("spec", "type"), f"{engine.name} answers everyone: a {kind} and no key")


@rule(
    "SD713",
    "wide-cross-origin",
    Severity.note,
    reason="With credentials allowed from every origin, any web page that a signed-in user opens may ask the engine in "
    "their name.",
    fix="--allowed-origins with the origins that are meant",
    source="https://developer.mozilla.org/docs/Web/HTTP/CORS",
    bad="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --allow-credentials]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout=60, --allow-credentials, --allowed-origins, '["https://chat.example"]']
""",
)
@each_engine
def wide_cross_origin(engine: EngineWorkload) -> Iterator[Problem]:
    origins = engine.args.value("--allowed-origins") or '["*"]'
    if engine.args.has("--allow-credentials") and "*" in origins:
        path = engine.path_of("--allow-credentials")
        yield Problem(engine.manifest, path, "credentials are allowed from every origin")


@rule(
    "SD714",
    "code-at-start",
    Severity.warning,
    reason="What is installed or downloaded by the container's command is another thing at every start, needs the "
    "Internet and a writable root, and nobody has scanned it.",
    fix="an image of your own with what it needs, named by its digest",
    source="https://kubernetes.io/docs/concepts/containers/images/",
    bad="""
containers:
  - command: [bash, -c]
    args: ["pip install arctic-inference && exec vllm serve /models/target --shutdown-timeout 60"]
""",
    good="""
containers:
  - command: [bash, -c]
    args: ["exec vllm serve /models/target --shutdown-timeout 60"]
""",
)
@each_engine
def code_at_start(engine: EngineWorkload) -> Iterator[Problem]:
    from specdec.engine_args import shell_script

    script = shell_script(engine.argv) or ""
    found = next(
        (word for word in ("pip install", "uv pip", "apt-get install", "curl ", "wget ") if word in script), None
    )
    if found:
        path = (*engine.container_path, "args" if engine.container.get("args") else "command")
        yield Problem(engine.manifest, path, f"the container's command runs {found.strip()}")

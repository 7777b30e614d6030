"""The files of a new environment, as text. Every choice in them is made before."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass

from specdec.init.answers import NONE, Answers

RELEASE = "speculative"
NAMESPACE = "ai-inference"


@dataclass(frozen=True)
class Choice:
    """What the answers were made into.

    cpus, memory_gib  of the machine, for one engine's share
    cache_gib         room for both checkpoints
    """

    machine: str
    zones: tuple[str, ...]
    tensor_parallel_size: int
    num_tokens: int
    cpus: int
    memory_gib: int
    cache_gib: int
    max_nodes: int
    engine_version: str


def values(answers: Answers, choice: Choice) -> str:
    """values.yaml of the chart."""
    model = answers.model.split("/")[-1]
    lines = [
        *textwrap.wrap(f"{purpose(answers, choice)}.", 116, initial_indent="# ", subsequent_indent="# "),
        f"cloud: {answers.cloud}",
        "accelerator:",
        f"  type: {answers.accelerator}",
        f"  machineType: {choice.machine}",
        "engine:",
        f"  version: {choice.engine_version}",
        f"  replicas: {answers.replicas}",
        "  model:",
        f"    name: {answers.model}",
        f'    revision: "{answers.revision}"',
        f"    servedName: {model.lower()}",
        *([f"  quantization: {answers.quantization}"] if answers.quantization else []),
        f"  tensorParallelSize: {choice.tensor_parallel_size}",
        f"  maxModelLen: {answers.max_model_len}",
        "  maxNumSeqs: 64",
        "  gpuMemoryUtilization: 0.9",
        "  resources:",
        f'    requests: {{cpu: "{choice.cpus}", memory: {choice.memory_gib}Gi}}',
        f"    limits: {{memory: {round(choice.memory_gib * 1.3)}Gi}}",
        *_selector(answers),
        "speculative:",
    ]
    if answers.method == NONE:
        lines.append("  enabled: false")
    else:
        lines += [f"  method: {answers.method}", f"  numTokens: {choice.num_tokens}"]
        if answers.draft:
            lines += ["  model:", f"    name: {answers.draft}", f'    revision: "{answers.draft_revision}"']
        if answers.method in ("ngram", "ngram_gpu"):
            lines.append("  promptLookup: {min: 3, max: 5}")
    lines += [
        "modelCache:",
        "  # The nodes put ephemeral storage on their local disks, so this is NVMe.",
        "  type: emptyDir",
        "  emptyDir:",
        f"    sizeLimit: {choice.cache_gib}Gi",
        "huggingFace:",
        "  tokenSecret: {name: hf-token}",
        "sharedMemory:",
        f"  size: {min(32, max(2, 8 * (choice.tensor_parallel_size // 2)))}Gi",
    ]
    if answers.provisioning == "spot":
        lines += [
            "shutdown:",
            "  # A spot node is taken back at short notice: of GKE's 30 seconds pods have 15.",
            "  preStopSeconds: 3",
            "  timeoutSeconds: 8",
            "  marginSeconds: 4",
        ]
    return "\n".join([*lines, ""])


def _selector(answers: Answers) -> list[str]:
    """Nodes bought in that way and no other: the chart's alert on a node's end, for one, looks at this."""
    label = {"spot": "gke-spot", "flex_start": "gke-flex-start", "queued": "gke-flex-start"}.get(answers.provisioning)
    if answers.cloud != "gke" or label is None:
        return []
    return ["  nodeSelector:", f'    cloud.google.com/{label}: "true"']


def tfvars(answers: Answers, choice: Choice) -> str:
    """terraform.tfvars of the cloud's root."""
    region = [f'region = "{answers.region}"', f'name   = "{cluster(answers)}"']
    pool = [
        "gpu_pools = {",
        f"  {pool_name(answers)} = {{",
        f'    machine_type    = "{choice.machine}"',
        f"    zones           = {json.dumps(list(choice.zones))}",
        f'    provisioning    = "{answers.provisioning}"',
        f"    gpus_per_engine = {choice.tensor_parallel_size}",
        f"    max_nodes       = {choice.max_nodes}",
        "  }",
        "}",
    ]
    head = f"# Variables of terraform/{answers.cloud}. GPU nodes come when an engine wants them, and go when none does."
    if answers.cloud == "gke":
        rest = [
            f'project_id = "{answers.project}"',
            f'name       = "{cluster(answers)}"',
            f'region     = "{answers.region}"',
            "",
            *pool,
            "",
            f'workload_secrets = {{ hf-token = "{NAMESPACE}/{RELEASE}" }}',
            f'resource_labels  = {{ environment = "{answers.name}" }}',
        ]
    else:
        rest = [
            *region,
            f"zones  = {json.dumps(list(choice.zones))}",
            "",
            *pool,
            "",
            "# Whoever applies terraform/platform has to be among them.",
            'admins = { platform = "arn:aws:iam::123456789012:role/platform" }',
            "",
            "pod_identities = {",
            "  engines = {",
            f'    namespace       = "{NAMESPACE}"',
            f'    service_account = "{RELEASE}"',
            f'    secret_arns     = ["arn:aws:secretsmanager:{answers.region}:123456789012:secret:hf-token-AbCdEf"]',
            "  }",
            "}",
            "",
            f'tags = {{ environment = "{answers.name}" }}',
        ]
    return "\n".join([head, *rest, ""])


def backend(answers: Answers, root: str) -> str:
    """Where a root keeps its state."""
    if answers.cloud == "gke":
        settings = [f'bucket = "{_bucket(answers)}"', f'prefix = "{answers.name}/{root}"']
    else:
        settings = [
            f'bucket       = "{_bucket(answers)}"',
            f'key          = "{answers.name}/{root}"',
            f'region       = "{answers.region}"',
            "encrypt      = true",
            "use_lockfile = true",
        ]
    file = f"environments/{answers.name}/backend.{root}.hcl"
    return "\n".join([f"# terraform -chdir=terraform/{root} init -backend-config=../../{file}", *settings, ""])


def platform(answers: Answers) -> str:
    """platform.tfvars."""
    if answers.cloud == "gke":
        state = f'config  = {{ bucket = "{_bucket(answers)}", prefix = "{answers.name}/gke" }}'
    else:
        place = f'bucket = "{_bucket(answers)}", key = "{answers.name}/eks", region = "{answers.region}"'
        state = f"config  = {{ {place} }}"
    return "\n".join(
        [
            "# Variables of terraform/platform.",
            "cluster_state = {",
            f'  backend = "{"gcs" if answers.cloud == "gke" else "s3"}"',
            f"  {state}",
            "}",
            "",
            "external_secrets   = { enabled = true }",
            f'hugging_face_token = {{ remote_secret = "hf-token", service_account = "{RELEASE}" }}',
            "",
        ]
    )


def files(answers: Answers, choice: Choice) -> dict[str, str]:
    """Text by file name."""
    return {
        "values.yaml": values(answers, choice),
        "terraform.tfvars": tfvars(answers, choice),
        "platform.tfvars": platform(answers),
        f"backend.{answers.cloud}.hcl": backend(answers, answers.cloud),
        "backend.platform.hcl": backend(answers, "platform"),
    }


def cluster(answers: Answers) -> str:
    """The cluster's name: GKE has room for 24 characters, and wants 6."""
    long = f"inference-{answers.name}"
    return long if len(long) <= 24 else answers.name


def pool_name(answers: Answers) -> str:
    """At most 13 characters: h100-80gb is h100."""
    return answers.accelerator.split("-")[0] if answers.accelerator != "rtx-pro-6000" else "rtx-pro-6000"


def purpose(answers: Answers, choice: Choice) -> str:
    """What the environment is, in one line."""
    engines = "One engine" if answers.replicas == 1 else f"{answers.replicas} engines"
    gpus = f"{choice.tensor_parallel_size} × {answers.accelerator}"
    how = {NONE: "without speculation"}.get(answers.method, f"with {answers.method}")
    draft = f" ({answers.draft.split('/')[-1]})" if answers.draft else ""
    return f"{engines} of {gpus} on {answers.cloud.upper()}: {answers.model.split('/')[-1]} {how}{draft}"


def _bucket(answers: Answers) -> str:
    return f"{answers.project or 'my-company'}-terraform-state"

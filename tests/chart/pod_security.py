"""The restricted and baseline levels of Kubernetes' Pod Security Standards, applied to a pod's specification.

https://kubernetes.io/docs/concepts/security/pod-security-standards/ (the checks of Kubernetes 1.34).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Pod = dict[str, Any]
RESTRICTED_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
}  # fmt: skip
BASELINE_CAPABILITIES = {
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}  # fmt: skip


def containers(spec: Pod) -> list[dict[str, Any]]:
    return [*spec.get("initContainers", []), *spec["containers"], *spec.get("ephemeralContainers", [])]


def above_baseline(spec: Pod) -> Iterator[str]:
    """What the baseline level refuses."""
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(key):
            yield key
    for volume in spec.get("volumes", []):
        if "hostPath" in volume:
            yield f"volume {volume['name']} is a hostPath"
    if spec.get("securityContext", {}).get("seccompProfile", {}).get("type") == "Unconfined":
        yield "seccomp Unconfined"
    if spec.get("securityContext", {}).get("sysctls"):
        yield "sysctls"
    for container in containers(spec):
        name, context = container["name"], container.get("securityContext", {})
        if context.get("privileged"):
            yield f"{name} is privileged"
        if not set(context.get("capabilities", {}).get("add", [])) <= BASELINE_CAPABILITIES:
            yield f"{name} adds capabilities"
        if any("hostPort" in port for port in container.get("ports", [])):
            yield f"{name} has a host port"
        if context.get("procMount", "Default") != "Default":
            yield f"{name} has an open /proc"
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(probe, {}).get("httpGet", {}).get("host"):
                yield f"{name} probes another host"


def above_restricted(spec: Pod) -> Iterator[str]:
    """What the restricted level refuses."""
    yield from above_baseline(spec)
    for volume in spec.get("volumes", []):
        if not set(volume) - {"name"} <= RESTRICTED_VOLUMES:
            yield f"volume {volume['name']} is a {', '.join(set(volume) - {'name'})}"
    shared = spec.get("securityContext", {})
    if shared.get("runAsUser") == 0:
        yield "the pod runs as root"
    for container in containers(spec):
        name, own = container["name"], container.get("securityContext", {})
        context = {**shared, **own}
        if own.get("allowPrivilegeEscalation") is not False:
            yield f"{name} may escalate"
        if context.get("runAsNonRoot") is not True:
            yield f"{name} may run as root"
        if own.get("runAsUser") == 0:
            yield f"{name} runs as root"
        if context.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
            yield f"{name} has no seccomp profile"
        capabilities = own.get("capabilities", {})
        if "ALL" not in capabilities.get("drop", []) or not set(capabilities.get("add", [])) <= {"NET_BIND_SERVICE"}:
            yield f"{name} keeps capabilities"


def level(spec: Pod) -> str:
    """The least level that admits the pod."""
    if not list(above_restricted(spec)):
        return "restricted"
    return "privileged" if list(above_baseline(spec)) else "baseline"

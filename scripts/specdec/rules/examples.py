"""Examples of rules, completed to whole manifests: what an example leaves out is sound."""

from __future__ import annotations

import copy
from typing import Any

from specdec.objects import Manifest, document, parse

SOUND = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: engine}
spec:
  replicas: 1
  serviceName: engine-headless
  selector: {matchLabels: {app: engine}}
  template:
    metadata: {labels: {app: engine}}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: 120
      securityContext: {runAsNonRoot: true, runAsUser: 1000}
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.32.0
          command: [vllm, serve]
          args: [/models/target, --shutdown-timeout, "60"]
          lifecycle: {preStop: {sleep: {seconds: 15}}}
          resources:
            limits: {nvidia.com/gpu: "1", memory: 64Gi}
          startupProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 10, failureThreshold: 180}
          livenessProbe: {httpGet: {path: /health, port: 8000}}
          readinessProbe: {httpGet: {path: /health, port: 8000}}
          volumeMounts:
            - {name: shm, mountPath: /dev/shm}
      volumes:
        - {name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}
"""


def manifests_of(example: str) -> list[Manifest]:
    """The manifests that an example stands for: itself where it has a kind, else a sound engine changed by it."""
    shown = document(example, "example.yaml")
    if shown is not None and "kind" in shown.data:
        return parse(example, "example.yaml")
    sound = parse(SOUND, "example.yaml")[0]
    spec = sound.data["spec"]["template"]["spec"]
    if shown is not None:
        sound.data["spec"]["template"]["spec"] = _merged(spec, shown.data)
    return [sound]


def _merged(base: Any, change: Any) -> Any:
    """Mappings merge, containers merge one by one, null removes, and everything else is replaced."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return copy.deepcopy(change)
    result = dict(base)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        elif key == "containers":
            result[key] = [_merged(result[key][0], container) for container in value]
        else:
            result[key] = _merged(result.get(key), value)
    return result

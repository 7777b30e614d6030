"""SD001 and SD002: the annotation that ignores rules, and keys that YAML takes twice."""

from __future__ import annotations

from collections.abc import Iterator

from specdec.duplicates import repeated
from specdec.errors import nearest
from specdec.objects import dotted
from specdec.rules.ignore import ANNOTATION, entries
from specdec.rules.model import RULES, Problem, Severity, World, rule


@rule(
    "SD001",
    "ignore-without-reason",
    Severity.error,
    reason="A finding that is ignored without a reason cannot be judged by whoever reads the manifest next, and a code "
    "that does not exist ignores nothing.",
    fix=f'{ANNOTATION}: "SD426=why it is right here"; several are parted by ";"',
    source="docs/rules",
    bad="""
apiVersion: v1
kind: Pod
metadata:
  name: a
  annotations:
    vllm-speculative/ignore: "SD426"
spec: {containers: []}
""",
    good="""
apiVersion: v1
kind: Pod
metadata:
  name: a
  annotations:
    vllm-speculative/ignore: "SD426=the pool's nodes have no other local disk"
spec: {containers: []}
""",
)
def ignore_without_reason(world: World) -> Iterator[Problem]:
    for manifest in world.manifests:
        for path, code, reason in entries(manifest):
            if code not in RULES:
                guess = nearest(code, RULES)
                yield Problem(manifest, path, f"there is no rule {code}", f"did you mean {guess}?" if guess else None)
            elif not reason:
                yield Problem(manifest, path, f"{code} is ignored without a reason")


@rule(
    "SD002",
    "key-given-twice",
    Severity.error,
    reason="A key stands twice in one mapping. Parsers take the last and drop what the first holds, a whole list of "
    "variables or arguments; kubectl apply and kustomize refuse the file.",
    fix="one key with everything that both hold",
    source="https://yaml.org/spec/1.2.2/#3212-mapping; https://kubernetes.io/docs/reference/using-api/api-concepts/"
    "#field-validation",
    bad="""
apiVersion: v1
kind: ConfigMap
metadata: {name: engine}
data:
  HF_HOME: /models
  HF_HOME: /cache
""",
    good="""
apiVersion: v1
kind: ConfigMap
metadata: {name: engine}
data:
  HF_HOME: /models
""",
)
def key_given_twice(world: World) -> Iterator[Problem]:
    for manifest in world.manifests:
        for path, first, line in repeated(manifest.node):
            yield Problem(manifest, path, f"{dotted(path)} stands on line {first} and on line {line}; the last holds")

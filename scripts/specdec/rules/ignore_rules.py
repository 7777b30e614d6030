"""Rules on the annotation that ignores rules."""

from __future__ import annotations

from collections.abc import Iterator

from specdec.errors import nearest
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

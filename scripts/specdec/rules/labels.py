"""SD135 and SD136: the version that labels state and the image has, and whether it is one that the tables know."""

from __future__ import annotations

from collections.abc import Iterator

from specdec import facts
from specdec.errors import SpecdecError
from specdec.manifests import EngineWorkload, image_tag, same_version, tag_counts, version_of_image
from specdec.rules.examples import SOUND
from specdec.rules.model import Problem, Severity, each_engine, rule

LABELLED = SOUND.replace(
    "labels: {app: engine}}", "labels: {app: engine, vllm-speculative/engine-version: 0.32.0}}"
).replace("vllm-openai:v0.32.0", "vllm-openai:v%s")


@rule(
    "SD135",
    "label-and-image-of-two-versions",
    Severity.error,
    reason="The arguments, probes and variables were written for the version that the label states, and the image's "
    "tag is another: flags come and go with almost every release, so the engine may not start. Kustomize's `images:` "
    "and scripts that set the image of a finished manifest do this.",
    fix="render again with engine.version of the new image, instead of changing the image of what is rendered",
    source="https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/images/",
    bad=LABELLED % "0.31.0",
    good=LABELLED % "0.32.0",
)
@each_engine
def label_and_image_of_two_versions(engine: EngineWorkload) -> Iterator[Problem]:
    stated, tagged = engine.stated_version, version_of_image(engine.image)
    if stated and tagged and tag_counts(engine.image) and not same_version(stated, tagged):
        message = (
            f"the image's tag is {image_tag(engine.image)}, and the label vllm-speculative/engine-version says {stated}"
        )
        again = f"render again with engine.version {tagged}, or "
        known = facts.in_range(facts.engines()["versions"], tagged)
        fix = f"{again if known else ''}the image's tag v{stated}"
        yield Problem(engine.manifest, (*engine.container_path, "image"), message, fix)


@rule(
    "SD136",
    "version-not-known",
    Severity.warning,
    reason="The tables know the flags, fields and methods of a range of releases. A newer one is checked as the "
    "newest of them and an older one as the oldest: what came or went since is not seen, and a finding may be wrong.",
    fix="an image of a version that is known, or a newer specdec",
    source="engines.yaml: versions",
    bad=LABELLED.replace("0.32.0", "0.99.0") % "0.99.0",
    good=LABELLED % "0.32.0",
)
@each_engine
def version_not_known(engine: EngineWorkload) -> Iterator[Problem]:
    version = engine.engine_version
    try:
        if version is None or facts.in_range(facts.engines()["versions"], version):
            return
        taken = facts.nearest_version(version)
    except SpecdecError:
        return
    path = (*engine.container_path, "image")
    message = f"vLLM {version} is not known ({facts.known_versions()}): checked as {taken}"
    yield Problem(engine.manifest, path, message)

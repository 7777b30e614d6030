"""SD41x: what happens to requests in flight when a pod stops."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from specdec import engine_args
from specdec.manifests import EngineWorkload
from specdec.objects import mapping, sequence
from specdec.rules.model import Edit, Problem, Severity, each_engine, rule
from specdec.rules.probes import restarts_pods
from specdec.rules.versions import has

TERMINATION = "https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination"


def pre_stop_seconds(container: dict[str, Any]) -> int:
    """Seconds that the preStop hook sleeps, as far as it says so."""
    hook = mapping(mapping(container.get("lifecycle")).get("preStop"))
    seconds = mapping(hook.get("sleep")).get("seconds")
    if isinstance(seconds, int):
        return seconds
    words = " ".join(str(word) for word in sequence(mapping(hook.get("exec")).get("command")))
    return sum(int(number) for number in re.findall(r"\bsleep (\d{1,6})\b", words))


@rule(
    "SD410",
    "grace-period-too-short",
    Severity.error,
    reason="The grace period counts from the deletion, preStop hook included. When it ends the kubelet kills the "
    "process, and every request that is still streaming is cut.",
    fix="terminationGracePeriodSeconds > preStop + --shutdown-timeout, for example 60 = 15 + 40 + 5",
    source=TERMINATION,
    bad="""
terminationGracePeriodSeconds: 60
containers:
  - args: [/models/target, --shutdown-timeout, "60"]
    lifecycle: {preStop: {sleep: {seconds: 15}}}
""",
    good="""
terminationGracePeriodSeconds: 80
containers:
  - args: [/models/target, --shutdown-timeout, "60"]
    lifecycle: {preStop: {sleep: {seconds: 15}}}
""",
)
@each_engine
def grace_period_too_short(engine: EngineWorkload) -> Iterator[Problem]:
    period = engine.pod_spec.get("terminationGracePeriodSeconds", 30)
    before, drain = pre_stop_seconds(engine.container), engine.args.shutdown_timeout or 0
    if isinstance(period, int) and period <= before + drain and before + drain > 0:
        message = f"the grace period of {period} s ends before preStop ({before} s) and the drain ({drain} s)"
        path = (*engine.path, "terminationGracePeriodSeconds")
        yield Problem(engine.manifest, path, message, None, (Edit(path, before + drain + 5),))


@rule(
    "SD411",
    "no-drain",
    Severity.warning,
    reason="On SIGTERM the engine aborts what it is generating unless --shutdown-timeout gives it time: its default is "
    "0. Every rollout and every node drain then cuts streams.",
    fix="--shutdown-timeout 60, and a grace period above it",
    source="vllm/config/vllm.py: shutdown_timeout",
    bad="""
containers:
  - args: [/models/target]
""",
    good="""
containers:
  - args: [/models/target, --shutdown-timeout, "60"]
""",
)
@each_engine
def no_drain(engine: EngineWorkload) -> Iterator[Problem]:
    drains = has("flags", "--shutdown-timeout", engine.engine_version)
    if restarts_pods(engine) and drains and not engine.args.shutdown_timeout:
        message = f"vLLM {engine.engine_version} aborts requests in flight when it stops: --shutdown-timeout is not set"
        yield Problem(engine.manifest, engine.path_of("--shutdown-timeout"), message)


@rule(
    "SD412",
    "shell-keeps-the-signal",
    Severity.warning,
    reason="PID 1 of the container is a shell that does not pass SIGTERM on, so the engine never hears that it should "
    "stop: it runs until the grace period ends and is killed with its requests. sh (dash) keeps itself in the way "
    "always, bash when anything follows the command, or when it is part of a pipeline.",
    fix="exec vllm serve ..., or no shell at all",
    source=TERMINATION,
    bad="""
containers:
  - command: [sh, -c]
    args: ["vllm serve /models/target --shutdown-timeout 60"]
""",
    good="""
containers:
  - command: [sh, -c]
    args: ["exec vllm serve /models/target --shutdown-timeout 60"]
""",
)
@each_engine
def shell_keeps_the_signal(engine: EngineWorkload) -> Iterator[Problem]:
    script = engine_args.shell_script(engine.argv)
    if script is None or re.search(r"(^|[;&|\n({]|\bthen|\bdo)\s*exec\s", script):
        return
    shell = engine.argv[0].rsplit("/", 1)[-1]
    alone = re.search(r"(vllm\s+serve|vllm\.entrypoints)(?:\\\n|'[^']*'|\"[^\"]*\"|[^;&|\n'\"])*\s*$", script)
    if shell == "bash" and alone and "trap " not in script:
        return
    yield Problem(engine.manifest, (*engine.container_path, "command"), f"{shell} is PID 1 and keeps SIGTERM to itself")

"""What the cases are put through: `helm template` of our chart, and the rules of `specdec validate`."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from specdec import rules
from specdec.manifests import Manifest, parse
from specdec.rules import Finding
from specdec.rules.examples import manifests_of

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "vllm-speculative"
COMMIT = "a" * 40
LLAMA_8B, LLAMA_70B = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"
LLAMA_1B = "meta-llama/Llama-3.2-1B-Instruct"
EAGLE3_8B = "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"


@dataclass(frozen=True)
class Helm:
    """What helm template said: manifests, or why not."""

    ok: bool
    text: str
    message: str

    def engine(self) -> Manifest:
        """The one engine's workload."""
        (found,) = [
            manifest
            for manifest in parse(self.text)
            if manifest.labels.get("app.kubernetes.io/component") == "engine"
            and manifest.kind in ("StatefulSet", "Deployment")
        ]
        return found

    def container(self) -> dict[str, Any]:
        (container,) = self.engine().get("spec.template.spec.containers")
        return dict(container)

    def args(self) -> list[str]:
        return [str(word) for word in self.container()["args"]]

    def speculation(self) -> dict[str, Any]:
        args = self.args()
        return dict(json.loads(args[args.index("--speculative-config") + 1]))


def template(values: dict[str, Any], *options: str) -> Helm:
    """The chart rendered with these values."""
    return _template(json.dumps(values), options)


@cache
def _template(values: str, options: tuple[str, ...]) -> Helm:
    helm = shutil.which("helm") or shutil.which("helm", path=str(ROOT / ".tools" / "bin"))
    assert helm, "helm is not on PATH: make setup"
    command = [helm, "template", "speculative", str(CHART), "--namespace", "ai", *options, "--values", "-"]
    done = subprocess.run(command, input=values, capture_output=True, text=True, check=False)
    message = " ".join(line for line in done.stderr.splitlines() if not line.startswith("Use --debug"))
    return Helm(done.returncode == 0, done.stdout, message)


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    both = dict(base)
    for key, value in over.items():
        nested = isinstance(value, dict) and isinstance(both.get(key), dict)
        both[key] = merged(both[key], value) if nested else value
    return both


def values(**over: Any) -> dict[str, Any]:
    """Values of a sound engine with n-gram drafts, and the given sections laid over them."""
    base = {
        "engine": {"model": {"name": LLAMA_8B, "revision": COMMIT}},
        "speculative": {"method": "ngram", "numTokens": 3},
    }
    return merged(base, over)


def drafted(method: str = "draft_model", name: str = LLAMA_1B, **over: Any) -> dict[str, Any]:
    """Values of an engine whose draft is a model or a head."""
    speculation = {"method": method, "model": {"name": name, "revision": COMMIT}, "numTokens": 3}
    return merged(merged(values(), {"speculative": speculation}), over)


def pod(
    *args: str,
    speculative: dict[str, Any] | None = None,
    version: str = "0.32.0",
    model: str = "/models/target",
    gpus: int = 1,
    env: Sequence[tuple[str, str]] = (),
    accelerator: str | None = None,
    **spec: Any,
) -> list[Manifest]:
    """Anyone's StatefulSet with one engine in it; what is not said is sound."""
    argv = [model, *args]
    if speculative is not None:
        argv += ["--speculative-config", json.dumps(speculative)]
    container = {
        "image": f"vllm/vllm-openai:v{version}",
        "args": argv,
        "env": [{"name": name, "value": value} for name, value in env],
        "resources": {"limits": {"nvidia.com/gpu": str(gpus), "memory": "64Gi"}},
        **spec.pop("container", {}),
    }
    if accelerator:
        spec["nodeSelector"] = {"nvidia.com/gpu.product": accelerator}
        spec["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    return manifests_of(json.dumps({"containers": [container], **spec}))


def found(manifests: str | list[Manifest], code: str | None = None, version: str | None = None) -> list[Finding]:
    """What the rules find in these manifests, of one code or of all."""
    given = parse(manifests) if isinstance(manifests, str) else manifests
    return [finding for finding in rules.check(given, version) if code in (None, finding.code)]


def finds(manifests: str | list[Manifest], code: str, *says: str) -> Finding:
    """That code is found, and its message or fix says all of this."""
    findings = found(manifests, code)
    assert findings, f"{code} is silent; found: {[f'{f.code} {f.message}' for f in found(manifests)]}"
    told = f"{findings[0].message} | {findings[0].fix}"
    for part in says:
        assert part in told, told
    return findings[0]


def passes(manifests: str | list[Manifest], code: str) -> None:
    """That code is not found, and no error is."""
    findings = found(manifests)
    assert code not in {finding.code for finding in findings}, [f"{f.code} {f.message}" for f in findings]
    assert not [f"{f.code} {f.message}" for f in findings if f.severity == "error"]


def refuses(given: dict[str, Any], *says: str) -> None:
    """The chart refuses these values, and says all of this."""
    done = template(given)
    assert not done.ok, "it renders"
    for part in says:
        assert part in done.message, done.message


def renders(given: dict[str, Any]) -> Helm:
    """The chart renders these values, and no rule calls the rendering wrong."""
    done = template(given)
    assert done.ok, done.message
    wrong = [finding for finding in found(done.text) if finding.severity == "error"]
    assert not wrong, [f"{f.code} {f.message}" for f in wrong]
    return done

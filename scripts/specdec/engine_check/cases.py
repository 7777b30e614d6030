"""What chart and engine are both asked: good and bad values, made for one version out of the chart's own tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec import facts
from specdec.engine_check.samples import companions, value_for

Values = dict[str, Any]
# What every engine takes.
PLAIN = "no speculation"

TARGET_OF = {"mtp": "deepseek", "dflash": "qwen", "dspark": "qwen"}
DRAFT_OF = {
    "draft_model": "draft",
    "eagle": "eagle",
    "eagle3": "eagle3",
    "medusa": "medusa",
    "mlp_speculator": "mlp-speculator",
    "dflash": "dflash",
    "dspark": "dspark",
}
TOKENS_OF = {"mtp": 1, "mlp_speculator": 3}
SCHEDULE = [{"from": 1, "to": 4, "tokens": 4}, {"from": 5, "to": 64, "tokens": 1}]


@dataclass(frozen=True)
class Case:
    name: str
    values: Values

    @property
    def method(self) -> str:
        return str(self.values["speculative"]["method"])

    @property
    def has_arctic_inference(self) -> bool:
        return bool(self.values.get("engine", {}).get("image", {}).get("hasArcticInference"))


def merged(base: Values, over: Values) -> Values:
    """`over` laid on `base`, neither changed."""
    both = dict(base)
    for key, value in over.items():
        deeper = isinstance(value, dict) and isinstance(both.get(key), dict)
        both[key] = merged(both[key], value) if deeper else value
    return both


def nested(path: str, value: Any) -> Values:
    """`{"a": {"b": value}}` for "a.b"."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return dict(value)


class Cases:
    """The cases for one version; `models` is the folder that holds the tiny models."""

    def __init__(self, version: str, models: Path) -> None:
        self.version, self.models = version, models
        self.methods = facts.engines()["methods"]
        self.run = [name for name, method in self.methods.items() if facts.in_range(method["rows"], version)]

    def base(self, method: str, **over: Any) -> Values:
        """Values that a version with the method runs, with sections laid over them."""
        speculative: Values = {"method": method, "numTokens": TOKENS_OF.get(method, 4)}
        if method in DRAFT_OF:
            speculative["model"] = {"name": str(self.models / DRAFT_OF[method]), "sizeGiB": 1}
        if method == "ngram":
            speculative["promptLookup"] = {"min": 2, "max": 4}
        target = {"name": str(self.models / TARGET_OF.get(method, "target")), "sizeGiB": 1}
        engine: Values = {"version": self.version, "model": target, "maxModelLen": 1024}
        if method == "suffix":
            engine["image"] = {"hasArcticInference": True, "repository": "registry.example/vllm-with-arctic"}
        return merged({"engine": engine, "speculative": speculative}, over)

    def plain(self, **engine: Any) -> Values:
        """Without speculation."""
        return merged(self.base("ngram"), {"speculative": {"enabled": False}, "engine": engine})

    def drafter(self) -> str:
        """A method with a second model that the version runs."""
        return next(name for name in ("draft_model", "eagle3", "eagle") if name in self.run)

    def all(self) -> list[Case]:
        parts = (self.each_method(), self.parallel(), self.schedules(), self.each_value(), self.bad(), self.bad_pairs())
        return [Case(name, values) for part in parts for name, values in part]

    def each_method(self) -> Iterator[tuple[str, Values]]:
        yield PLAIN, self.plain()
        for method in self.methods:
            yield method, self.base(method)
            yield f"{method}, one token", self.base(method, speculative={"numTokens": 1})

    def parallel(self) -> Iterator[tuple[str, Values]]:
        for method in self.methods:
            yield f"{method}, TP 4", self.base(method, engine={"tensorParallelSize": 4})
        for method in ("draft_model", "eagle", "eagle3", "medusa", "mlp_speculator"):
            for size in (1, 2, 4):
                parallel = {"engine": {"tensorParallelSize": 4}, "speculative": {"draftTensorParallelSize": size}}
                yield f"{method}, TP 4, draft TP {size}", self.base(method, **parallel)
        for method in ("ngram", self.drafter()):
            yield f"{method}, two pipeline stages", self.base(method, engine={"pipelineParallelSize": 2})
            yield f"{method}, data parallel", self.base(method, engine={"dataParallelSize": 2})

    def schedules(self) -> Iterator[tuple[str, Values]]:
        for method in self.run:
            tokens = TOKENS_OF.get(method, 4)
            steps = [{**step, "tokens": min(step["tokens"], tokens)} for step in SCHEDULE]
            yield f"{method}, schedule", self.base(method, speculative={"schedule": steps})
        gap = [{"from": 1, "to": 4, "tokens": 4}, {"from": 9, "to": 64, "tokens": 1}]
        over = [{"from": 1, "to": 64, "tokens": 9}]
        nothing = [{"from": 1, "to": 4, "tokens": 4}, {"from": 5, "to": 64, "tokens": 0}]
        bent = [{"from": 8, "to": 4, "tokens": 4}]
        for name, steps in {"with a gap": gap, "above K": over, "down to none": nothing, "backwards": bent}.items():
            yield f"schedule {name}", self.base(self.drafter(), speculative={"schedule": steps})
        both = {"engine": {"dataParallelSize": 2}, "speculative": {"schedule": SCHEDULE}}
        yield "schedule, data parallel", self.base(self.drafter(), **both)

    def each_value(self) -> Iterator[tuple[str, Values]]:
        """Every typed value that becomes an argument, with what it needs; every choice of those that have some."""
        done = {"engine.model.name", "speculative.method", "speculative.model.name", "speculative.numTokens"}
        done |= {"speculative.schedule", "speculative.draftTensorParallelSize"}
        for argument in facts.engines()["arguments"]:
            path = argument["value"]
            choices = list(dict.fromkeys(name for row in argument["rows"] for name in row.get("choices", ())))
            for value in choices or [value_for(path)]:
                if path in done or value is None:
                    continue
                speculative = path.startswith("speculative.")
                method = self.method_for(argument.get("methods")) if speculative else ""
                values = self.base(method) if speculative else self.plain()
                for other, given in {**companions(path, value), path: value}.items():
                    values = merged(values, nested(other, given))
                name = f"{path} {value}" if choices else path
                yield f"{name}, {method}" if method else name, values

    def method_for(self, methods: list[str] | None) -> str:
        """A method to try a value with: one that takes it, and that the version runs if there is such a one."""
        able = [name for name in self.methods if methods is None or name in methods]
        run = [name for name in able if name in self.run]
        return self.drafter() if self.drafter() in run else str((run or able)[0])

    def bad(self) -> Iterator[tuple[str, Values]]:
        """Values that no version should take, each beside a good one above."""
        for tokens in (0, -1, 2.5, "four"):
            yield f"K is {tokens!r}", self.base("ngram", speculative={"numTokens": tokens})
        for share in (0, 2, 92, -0.5):
            yield f"utilisation is {share}", self.plain(gpuMemoryUtilization=share)
        for key, value in {
            "maxNumSeqs": 0,
            "maxModelLen": 0,
            "tensorParallelSize": 0,
            "maxNumBatchedTokens": -1,
        }.items():
            yield f"{key} is {value}", self.plain(**{key: value})
        for key, name in {"dtype": "float17", "kvCacheDtype": "fp9", "quantization": "awqq"}.items():
            yield f"{key} is {name}", self.plain(**{key: name})
        lookups = {"reversed": {"min": 5, "max": 3}, "of 0": {"min": 0, "max": 0}, "below 0": {"min": -1, "max": 4}}
        for name, lookup in lookups.items():
            yield f"prompt lookup {name}", self.base("ngram", speculative={"promptLookup": lookup})
        yield "method of another project", self.base("ngram", speculative={"method": "lookahead"})
        yield "method misspelt", self.base("ngram", speculative={"method": "eagle-3"})
        yield "flag misspelt", self.plain(extraArgs=["--max-modle-len", "8"])
        yield "flag of V0", self.plain(extraArgs=["--use-v2-block-manager"])
        yield "flag of the old days", self.plain(extraArgs=["--speculative-model", str(self.models / "draft")])
        yield "tool choice without parser", self.plain(toolCalling={"enabled": True})
        adapters = {"enabled": True, "modules": [{"servedName": "one", "name": "/adapters/one"}]}
        yield "adapters with speculation", self.base("ngram", lora=adapters)
        yield "adapters as a free argument", self.plain(extraArgs=["--enable-lora"])
        tools = {"enabled": True, "parser": "hermes"}
        yield "tools with n-gram", self.base("ngram", engine={"toolCalling": tools})

    def bad_pairs(self) -> Iterator[tuple[str, Values]]:
        """Models that do not fit together, each beside the pair above that does."""
        drafter = self.drafter()
        yield f"{drafter} without a model", merged(self.base(drafter), nested("speculative.model.name", ""))
        yield "ngram with a model", self.base("ngram", speculative={"model": {"name": str(self.models / "draft")}})
        yield "suffix on an image without it", self.base("suffix", engine={"image": {"hasArcticInference": False}})
        yield "draft with another vocabulary", self._with("draft_model", "draft-padded")
        yield "head with fewer positions", self._with("eagle3", "eagle3-short")
        two = {"engine": {"model": {"name": str(self.models / "deepseek-2")}}, "speculative": {"numTokens": 3}}
        yield "3 tokens of a head for 2", self.base("mtp", **two)
        yield "4 tokens of a head for 2", merged(self.base("mtp", **two), nested("speculative.numTokens", 4))
        yield "head's quantization", self.base("eagle", speculative={"quantization": "fp8"})
        yield "draft longer than the target", self.base(drafter, speculative={"maxModelLen": 2048})
        yield "draft of no length", self.base(drafter, speculative={"maxModelLen": 0})

    def _with(self, method: str, draft: str) -> Values:
        return self.base(method, speculative={"model": {"name": str(self.models / draft)}})

"""SD601 to SD607: queries on metrics that exist, and that mean what the query makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from specdec import facts
from specdec.errors import nearest
from specdec.rules.model import Edit, Problem, Severity, World, rule
from specdec.rules.promql import Query, base

LOGGERS = "vllm/v1/metrics/loggers.py, vllm/v1/spec_decode/metrics.py; files/metrics.yaml"


@cache
def exported(version: str | None, core: str) -> dict[str, dict[str, Any]]:
    """Metrics of that version by name; of every version for an unknown one."""
    rows = facts.metrics(version, core) if version else facts.load(facts.files_dir() / "metrics.yaml")["metrics"]
    return {str(row["name"]): row for row in rows}


def surfaces(world: World) -> list[tuple[str | None, dict[str, dict[str, Any]]]]:
    """(version, its metrics) of each engine that was handed in; of all versions together where none was."""
    found: dict[tuple[str | None, str], dict[str, dict[str, Any]]] = {}
    for engine in world.engines:
        core = "v0" if engine.runner == "v0" else "v1"
        found[engine.engine_version, core] = exported(engine.engine_version, core)
    if not found:
        found[world.engine_version, "v1"] = exported(world.engine_version, "v1")
    return [(version, rows) for (version, _), rows in found.items() if rows]


def asked(world: World) -> list[Query]:
    """The queries on vLLM's metrics."""
    return [query for query in world.queries if query.metrics]


@cache
def nearest_metric(name: str, version: str | None, core: str = "v1") -> str | None:
    """The metric of that version that a name was most likely meant to be."""
    rows = exported(version, core)
    return SUCCESSORS[name] if SUCCESSORS.get(name) in rows else nearest(name, rows)


def promrule(expression: str, kind: str = "record: a:b") -> str:
    return f"""
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {{name: engine}}
spec:
  groups:
    - name: engine
      rules:
        - {kind}
          expr: {expression}
"""


# Names of reports and examples that never existed, or whose successor has another name than they are near to.
SUCCESSORS = {
    "vllm:num_spec_tokens_accepted_total": "vllm:spec_decode_num_accepted_tokens_total",
    "vllm:avg_inference_latency_seconds": "vllm:request_time_per_output_token_seconds",
    "vllm:gpu_cache_usage_perc": "vllm:kv_cache_usage_perc",
    "vllm:time_per_output_token_seconds": "vllm:request_time_per_output_token_seconds",
    "vllm:spec_decode_draft_acceptance_rate": "vllm:spec_decode_num_accepted_tokens_total",
    "vllm:spec_decode_efficiency": "vllm:spec_decode_num_accepted_tokens_total",
}


def known(name: str, rows: dict[str, dict[str, Any]]) -> bool:
    """Whether a series of that name is exported. The part of a histogram counts as itself."""
    return name in rows or (base(name) in rows and rows[base(name)]["type"] == "histogram")


@rule(
    "SD601",
    "metric-does-not-exist",
    Severity.error,
    reason="A query on a metric that the engine does not export gives nothing, and nothing is also what a healthy "
    "system gives: the alert never fires, the panel stays empty, the autoscaler does not move. Names change with "
    "versions.",
    fix="a metric of the version that the image has; files/metrics.yaml has them all",
    source=f"{LOGGERS}; vllm-project/production-stack#989, llm-d/llm-d#546",
    bad=promrule("rate(vllm:num_spec_tokens_accepted_total[5m])"),
    good=promrule("rate(vllm:spec_decode_num_accepted_tokens_total[5m])"),
)
def metric_does_not_exist(world: World) -> Iterator[Problem]:
    queries = asked(world)
    tables, made = (surfaces(world), recorded(queries)) if queries else ([], set())
    for query in queries:
        for name in query.metrics:
            # SD602 and SD603 say what is wrong with these.
            if not name.startswith("vllm:") or name in made:
                continue
            # One query may be for engines of several versions: it is dead when none of them answers it.
            if any(known(name, rows) or f"{name}_total" in rows for _, rows in tables):
                continue
            version = tables[0][0] if tables else world.engine_version
            guess = nearest_metric(base(name), version)
            of = f"vLLM {version} does not export" if version else "no vLLM exports"
            where = f" ({query.name})" if query.name else ""
            fix = f"did you mean {guess}?" if guess else None
            yield Problem(query.manifest, query.path, f"{of} {name}{where}", fix)


def renamed(query: Query, old: str, new: str) -> tuple[Edit, ...]:
    """The query with a metric's right name; empty where it stands inside another document."""
    whole = query.manifest.get(query.path)
    if whole != query.text:
        return ()
    return (Edit(query.path, re.sub(rf"(?<![\w:]){re.escape(old)}(?![\w:])", new, query.text)),)


def recorded(queries: list[Query]) -> set[str]:
    """Series that recording rules of this set make."""
    return {query.name for query in queries if query.manifest.get((*query.path[:-1], "record")) == query.name}


@rule(
    "SD602",
    "metric-without-its-colon",
    Severity.error,
    reason="vLLM's metrics are called vllm:name, with a colon. An underscore in its place is another name, which "
    "nobody exports, and the autoscaler never fires.",
    fix="vllm:num_requests_waiting",
    source="volcano-sh/kthena#868",
    bad=promrule("sum(vllm_num_requests_waiting)"),
    good=promrule("sum(vllm:num_requests_waiting)"),
)
def metric_without_its_colon(world: World) -> Iterator[Problem]:
    queries = asked(world)
    everything = exported(None, "v1") if queries else {}
    for query in queries:
        for name in query.metrics:
            right = "vllm:" + name.removeprefix("vllm_")
            if name.startswith("vllm_") and (known(right, everything) or f"{right}_total" in everything):
                message = f"{name} does not exist: the name has a colon"
                yield Problem(query.manifest, query.path, message, right, renamed(query, name, right))


@rule(
    "SD603",
    "counter-without-total",
    Severity.error,
    reason="The engine's code calls a counter vllm:x; what is scraped is vllm:x_total. The name without its ending "
    "gives no series.",
    fix="the name with _total behind it",
    source="https://prometheus.io/docs/instrumenting/exposition_formats/; vllm-project/vllm#16665",
    bad=promrule("rate(vllm:spec_decode_num_drafts[5m])"),
    good=promrule("rate(vllm:spec_decode_num_drafts_total[5m])"),
)
def counter_without_total(world: World) -> Iterator[Problem]:
    queries = asked(world)
    tables = surfaces(world) if queries else []
    for query in queries:
        for name in query.metrics:
            if any(f"{name}_total" in rows and not known(name, rows) for _, rows in tables):
                edits = renamed(query, name, f"{name}_total")
                message = f"{name} is scraped as {name}_total"
                yield Problem(query.manifest, query.path, message, f"{name}_total", edits)


@rule(
    "SD604",
    "sum-of-a-share",
    Severity.error,
    reason="A share of a whole cannot be added up over pods: 40 % and 40 % are not 80 %. Alerts and autoscalers on the "
    "sum fire with the number of replicas and not with the load.",
    fix="avg(...) or max(...) over pods",
    source="GoogleCloudPlatform/monitoring-dashboard-samples#1188",
    bad=promrule("sum(vllm:kv_cache_usage_perc)"),
    good=promrule("avg(vllm:kv_cache_usage_perc)"),
)
def sum_of_a_share(world: World) -> Iterator[Problem]:
    for query in asked(world):
        for name in query.metrics:
            pattern = r"\bsum\s*(?:(?:by|without)\s*\([^)]*\)\s*)?\(\s*" + re.escape(name) + r"(?:\{[^}]*\})?\s*\)"
            if name.endswith(("_perc", "_ratio")) and re.search(pattern, query.code):
                # A sum over the count of the same is an average.
                if re.search(r"/\s*(?:count|sum)\b", query.code):
                    continue
                yield Problem(query.manifest, query.path, f"{name} is a share, and shares are added up")


def kind_of(name: str, tables: list[tuple[str | None, dict[str, dict[str, Any]]]]) -> str | None:
    return next((str(rows[name]["type"]) for _, rows in tables if name in rows), None)


@rule(
    "SD605",
    "rate-of-a-gauge",
    Severity.error,
    reason="rate() reads counters: every fall of a gauge looks like a restart to it, and the result is a number that "
    "means nothing. A gauge's change is deriv() or delta().",
    fix="the gauge itself, or avg_over_time() of it",
    source="https://prometheus.io/docs/prometheus/latest/querying/functions/#rate",
    bad=promrule("rate(vllm:num_requests_running[5m])"),
    good=promrule("avg_over_time(vllm:num_requests_running[5m])"),
)
def rate_of_a_gauge(world: World) -> Iterator[Problem]:
    queries = asked(world)
    tables = surfaces(world) if queries else []
    for query in queries:
        for name in query.metrics:
            pattern = r"\b(?:rate|irate|increase)\s*\(\s*" + re.escape(name) + r"\s*[\[{]"
            if re.search(pattern, query.code) and kind_of(name, tables) == "gauge":
                yield Problem(query.manifest, query.path, f"{name} is a gauge, and a rate is taken of it")


@rule(
    "SD606",
    "quantile-without-buckets",
    Severity.error,
    reason="histogram_quantile() needs the buckets with their label le. Over another series, or after an aggregation "
    "that drops le, it gives nothing.",
    fix="histogram_quantile(0.99, sum by (le) (rate(NAME_bucket[5m])))",
    source="https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile",
    bad=promrule("histogram_quantile(0.99, sum by (pod) (rate(vllm:time_to_first_token_seconds_bucket[5m])))"),
    good=promrule("histogram_quantile(0.99, sum by (pod, le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))"),
)
def quantile_without_buckets(world: World) -> Iterator[Problem]:
    for query in asked(world):
        code = query.code
        if "histogram_quantile" not in code or not query.metrics:
            continue
        by = re.search(r"histogram_quantile\s*\(.*?\bsum\s*(?:by\s*\(([^)]*)\))?", code, re.DOTALL)
        after = re.search(r"\)\s*by\s*\(([^)]*)\)", code)
        kept = (by.group(1) if by else None) or (after.group(1) if after else None)
        without = re.search(r"\bwithout\s*\(", code)
        if not any(name.endswith("_bucket") for name in query.metrics):
            yield Problem(query.manifest, query.path, f"{query.metrics[0]} has no buckets: its series are NAME_bucket")
        elif by and not without and "le" not in re.split(r"[\s,]+", kept or ""):
            message = "the sum drops the label le, which histogram_quantile needs"
            yield Problem(query.manifest, query.path, message)


@rule(
    "SD607",
    "arms-compared-by-step",
    Severity.warning,
    reason="The engine observes the step latency once a step, however many tokens the step gave. With speculation a "
    "step gives several: latency by token looks worse than it is, and an alert or autoscaler on it fires for nothing.",
    fix="vllm:request_time_per_output_token_seconds, decode time ÷ tokens of each request (from 0.11 on)",
    source=LOGGERS,
    bad="""
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: engine}
spec:
  scaleTargetRef: {name: engine}
  minReplicaCount: 1
  triggers:
    - type: prometheus
      metadata:
        serverAddress: http://prometheus:9090
        query: avg(rate(vllm:inter_token_latency_seconds_sum[2m]) / rate(vllm:inter_token_latency_seconds_count[2m]))
        threshold: "0.03"
        ignoreNullValues: "false"
""",
    good="""
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: engine}
spec:
  scaleTargetRef: {name: engine}
  minReplicaCount: 1
  triggers:
    - type: prometheus
      metadata:
        serverAddress: http://prometheus:9090
        query: >-
          avg(rate(vllm:request_time_per_output_token_seconds_sum[2m])
          / rate(vllm:request_time_per_output_token_seconds_count[2m]))
        threshold: "0.03"
        ignoreNullValues: "false"
""",
)
def arms_compared_by_step(world: World) -> Iterator[Problem]:
    speculates = not world.engines or any(engine.args.speculative for engine in world.engines)
    queries = asked(world)
    tables = surfaces(world) if queries else []
    for query in queries:
        decides = query.manifest.kind == "ScaledObject" or query.manifest.get((*query.path[:-1], "alert"))
        if not speculates or not decides:
            continue
        for name in query.metrics:
            role = next((rows[base(name)].get("role") for _, rows in tables if base(name) in rows), None)
            if role == "stepLatency":
                yield Problem(query.manifest, query.path, f"{base(name)} is of a step, not of a token")
                break

"""metrics.yaml: what each vLLM release exports, and the reading of a release's own source for it."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from specdec import facts
from specdec.engine_surface import metrics

RELEASES = json.loads((Path(__file__).parents[2] / "chart" / "surfaces.json").read_text())["releases"]
ROWS: list[dict[str, Any]] = facts.load(facts.files_dir() / "metrics.yaml")["metrics"]


def test_a_role_is_one_metric_of_a_version_and_core() -> None:
    for release in RELEASES:
        for core in ("v0", "v1"):
            roles = Counter(row["role"] for row in facts.metrics(release, core) if "role" in row)
            assert [role for role, count in roles.items() if count > 1] == [], release


def test_counters_stand_as_they_are_scraped_and_nothing_else_is_counted_twice() -> None:
    assert [row["name"] for row in ROWS if row["type"] == "counter" and not row["name"].endswith("_total")] == []
    for release in RELEASES:
        for core in ("v0", "v1"):
            names = Counter(row["name"] for row in facts.in_range(ROWS, release) if row["core"] == core)
            assert [name for name, count in names.items() if count > 1] == [], release


@pytest.mark.parametrize("version", ["0.8.5", "0.9.2", "0.16.0", "0.32.0", "0.33.0"])
def test_what_watches_speculation_has_a_name_in_every_version_that_counts_it(version: str) -> None:
    roles = ("acceptedTokens", "draftTokens", "drafts", "acceptedTokensByPosition", "kvCacheUsage", "stepLatency")
    assert None not in [facts.metric_name(role, version) for role in roles]


def test_renamed_metrics_are_called_what_the_version_calls_them() -> None:
    assert facts.metric_name("kvCacheUsage", "0.9.1") == "vllm:gpu_cache_usage_perc"
    assert facts.metric_name("kvCacheUsage", "0.9.2") == "vllm:kv_cache_usage_perc"
    assert facts.metric_name("stepLatency", "0.10.1.1") == "vllm:time_per_output_token_seconds"
    assert facts.metric_name("stepLatency", "0.10.2") == "vllm:inter_token_latency_seconds"
    assert facts.metric_name("timePerOutputToken", "0.10.2") is None
    assert facts.metric_name("timePerOutputToken", "0.11.0") == "vllm:request_time_per_output_token_seconds"
    assert facts.metric_name("drafts", "0.9.0", core="v0") is None
    assert facts.metric_name("drafts", "latest") is None


SOURCE = """
NAMED = "vllm:named_total"
class Names:
    IN_TABLE = "vllm:in_table"
class Logger:
    label_of = "reason"
    def __init__(self, labelnames):
        labelnames = ["model_name", "engine"]
        self.a = self._gauge_cls(name="vllm:gauge", labelnames=labelnames)
        self.b = self._counter_cls(name="vllm:events", labelnames=labelnames + [self.label_of])
        if self.show_hidden_metrics:
            self.c = prometheus_client.Histogram(name="vllm:old_seconds", labelnames=labelnames)
        Counter(name=NAMED, labelnames=["outcome"])
        Gauge("vllm:bare", "documentation", ["operation"])
        Counter(name=f"vllm:part_{x}")
        table[Names.IN_TABLE] = SomeGaugeMetadata(documentation="", labelnames=("tier",))
    def loop(self, labelnames):
        for name in ("vllm:first", "vllm:second"):
            self._counter_cls(name=name, labelnames=labelnames)
    def unreadable(self):
        register("vllm:untold")
"""


def test_a_source_is_read_for_names_types_and_labels() -> None:
    files = {
        "vllm/v1/metrics/loggers.py": ast.parse(SOURCE),
        "vllm/engine/metrics.py": ast.parse('Gauge(name="vllm:gauge", labelnames=labelnames)'),
        "vllm/benchmarks/serve.py": ast.parse('line.startswith("vllm:read")'),
    }
    found = {(metric.name, metric.core): (metric.kind, metric.labels, metric.hidden) for metric in metrics.read(files)}
    engine = ("model_name", "engine")
    assert found == {
        ("vllm:gauge", "v0"): ("gauge", ("model_name",), False),
        ("vllm:gauge", "v1"): ("gauge", engine, False),
        ("vllm:events_total", "v1"): ("counter", (*engine, "reason"), False),
        ("vllm:old_seconds", "v1"): ("histogram", engine, True),
        ("vllm:named_total", "v1"): ("counter", ("outcome",), False),
        ("vllm:bare", "v1"): ("gauge", ("operation",), False),
        ("vllm:in_table", "v1"): ("gauge", (*engine, "tier"), False),
        ("vllm:first_total", "v1"): ("counter", engine, False),
        ("vllm:second_total", "v1"): ("counter", engine, False),
        ("vllm:untold", "v1"): ("", None, False),
    }

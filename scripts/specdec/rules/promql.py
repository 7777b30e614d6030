"""Queries in manifests: of alerts, of autoscalers, of dashboards; and the names of metrics in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from specdec.objects import Manifest, Path, mapping, sequence

METRIC = re.compile(r"(?<![\w:.-])(vllm[:_][a-zA-Z0-9_:]+)")
STRINGS = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
PARTS = re.compile(r"_(bucket|sum|count|created)$")


@dataclass(frozen=True)
class Query:
    """One PromQL expression: where it stands, and what it is called there."""

    manifest: Manifest
    path: Path
    text: str
    name: str = ""

    @cached_property
    def code(self) -> str:
        """The expression without what stands in quotes, comments and Grafana's variables."""
        return re.sub(r"#.*", "", STRINGS.sub('""', self.text))

    @cached_property
    def metrics(self) -> list[str]:
        """Names of vLLM's metrics in it, in order, each once; also as a matcher of __name__."""
        named = re.findall(r'__name__\s*=~?\s*"(vllm[:_][\w:]+)"', self.text)
        return list(dict.fromkeys([*METRIC.findall(self.code), *named]))


def base(name: str) -> str:
    """A histogram's own name for its series; any other name as it is."""
    return PARTS.sub("", name)


def queries(manifest: Manifest) -> Iterator[Query]:
    """Every query in the object."""
    kind = manifest.kind
    if kind == "PrometheusRule":
        for group, rows in enumerate(sequence(manifest.get("spec.groups"))):
            for index, row in enumerate(sequence(mapping(rows).get("rules"))):
                path: Path = ("spec", "groups", group, "rules", index, "expr")
                given = mapping(row)
                if given.get("expr") is not None:
                    yield Query(
                        manifest, path, str(given["expr"]), str(given.get("alert") or given.get("record") or "")
                    )
    elif kind in ("ScaledObject", "ScaledJob"):
        for index, trigger in enumerate(sequence(manifest.get("spec.triggers"))):
            query = mapping(mapping(trigger).get("metadata")).get("query")
            if query is not None:
                yield Query(manifest, ("spec", "triggers", index, "metadata", "query"), str(query))
    elif kind == "ConfigMap":
        for key, text in mapping(manifest.data.get("data")).items():
            if str(key).endswith(".json") and isinstance(text, str) and '"expr"' in text:
                yield from _dashboard(manifest, ("data", str(key)), text)
            elif isinstance(text, str) and "seriesQuery" in text:
                for found in re.findall(r"(?:seriesQuery|metricsQuery):\s*(.+)", text):
                    yield Query(manifest, ("data", str(key)), found, "prometheus-adapter")
    elif kind == "GrafanaDashboard" and isinstance(manifest.get("spec.json"), str):
        yield from _dashboard(manifest, ("spec", "json"), manifest.get("spec.json"))


def _dashboard(manifest: Manifest, path: Path, text: str) -> Iterator[Query]:
    try:
        document = json.loads(text)
    except ValueError:
        return
    for panel in _panels(mapping(document)):
        for target in sequence(panel.get("targets")):
            expression = mapping(target).get("expr")
            if expression:
                yield Query(manifest, path, str(expression), f"panel {panel.get('title')!r}")
    for variable in sequence(mapping(mapping(document).get("templating")).get("list")):
        asked = mapping(variable).get("query")
        text = str(mapping(asked).get("query") or asked or "")
        if "vllm" in text:
            yield Query(manifest, path, text, f"variable {mapping(variable).get('name')!r}")


def _panels(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for panel in (mapping(item) for item in sequence(document.get("panels"))):
        yield panel
        yield from _panels(panel)


def matchers(text: str, metric: str) -> dict[str, tuple[str, str]]:
    """Label -> (operator, value) of the first selector on that metric."""
    found = re.search(re.escape(metric) + r"\s*\{([^}]*)\}", text)
    if not found:
        return {}
    pairs = re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:\\.|[^"\\])*)"', found.group(1))
    return {label: (operator, value) for label, operator, value in pairs}

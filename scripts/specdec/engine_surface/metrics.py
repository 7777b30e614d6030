"""The metrics that a vLLM release exports, read from its source: name on /metrics, type, labels, engine core."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

NAME = re.compile(r"vllm:[a-z0-9_]+")
# What makes a metric: prometheus_client.Counter, self._counter_cls, OffloadingCounterMetadata.
MAKER = re.compile(r"_(counter|gauge|histogram)_cls|\w*?(Counter|Gauge|Histogram)(?:Metadata)?")
# Files that name metrics to read them, not to export them.
READERS = re.compile(r"vllm/benchmarks/|.*/metrics/reader\.py|.*/orca_metrics\.py")
V0 = re.compile(r"vllm/(engine|spec_decode)/")
# What a function that makes metrics is handed as `labelnames`.
BASE_LABELS = {"v0": ("model_name",), "v1": ("model_name", "engine")}


@dataclass(frozen=True, order=True)
class Metric:
    """One metric of one core (v0, or v1, which the runners v1 and v2 share).

    name    as Prometheus scrapes it: a counter ends in _total; a histogram has _bucket, _sum and _count behind it
    kind    counter, gauge or histogram; empty where the source does not say it in a way that can be read
    labels  None where they are put together while running
    hidden  exported with --show-hidden-metrics-for-version alone
    file    where it was read
    """

    name: str
    core: str
    kind: str
    labels: tuple[str, ...] | None
    hidden: bool
    file: str


def read(files: Mapping[str, ast.Module]) -> frozenset[Metric]:
    """The metrics in a release's modules, by their path (`vllm/...`)."""
    found: dict[tuple[str, str], Metric] = {}
    uses = list(_uses_of_constants(files.values()))
    for file, tree in files.items():
        if READERS.match(file):
            continue
        core = "v0" if V0.match(file) else "v1"
        for metric in _of_file(file, core, tree, uses):
            known = found.get((metric.name, core))
            # The call that makes a metric says more than another mention of its name.
            if known is None or (not known.kind and metric.kind):
                found[metric.name, core] = metric
    return frozenset(found.values())


def _of_file(file: str, core: str, tree: ast.Module, uses: list[tuple[str, ast.Call]]) -> Iterator[Metric]:
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value)):
            continue
        above = list(_ancestors(node, parents))
        if isinstance(above[0], ast.JoinedStr):
            continue
        call = _maker(node, above, uses)
        kind = _kind(call)
        name = node.value
        if kind == "counter":
            name = name.removesuffix("_total") + "_total"
        hidden = any(isinstance(each, ast.If) and "hidden" in ast.unparse(each.test) for each in above)
        yield Metric(name, core, kind, _labels(call, above, core, tree), hidden, file)


def _ancestors(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    while node in parents:
        node = parents[node]
        yield node


def _kind(call: ast.Call | None) -> str:
    names = _variable(call.func) if call else []
    match = MAKER.fullmatch(names[0]) if names else None
    return (match[1] or match[2]).lower() if match else ""


def _maker(node: ast.Constant, above: list[ast.AST], uses: list[tuple[str, ast.Call]]) -> ast.Call | None:
    """The call that makes the metric: around the name, of the variable that holds it, or in the same function."""
    for each in above:
        if isinstance(each, ast.Call) and _kind(each):
            return each
        if isinstance(each, ast.Assign) and each.value is node and isinstance(each.targets[0], ast.Name):
            variable = each.targets[0].id
            function = next((outer for outer in above if isinstance(outer, ast.FunctionDef)), None)
            near = _uses_of_constants([function]) if function else iter(())
            return next((call for name, call in (*near, *uses) if name == variable), None)
        if isinstance(each, ast.FunctionDef):
            inside = [call for call in ast.walk(each) if isinstance(call, ast.Call) and _kind(call)]
            named = [
                call for call in inside if any(key.arg == "name" and _variable(key.value) for key in call.keywords)
            ]
            return named[0] if len({_kind(call) for call in named}) == 1 else None
    return None


def _uses_of_constants(trees: Iterable[ast.AST]) -> Iterator[tuple[str, ast.Call]]:
    """Variables that a call which makes metrics takes as its name, or that stand before one in a table."""
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _kind(node):
                for value in [*node.args[:1], *(key.value for key in node.keywords if key.arg == "name")]:
                    yield from ((name, node) for name in _variable(value))
            elif isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if key is not None and isinstance(value, ast.Call) and _kind(value):
                        yield from ((name, value) for name in _variable(key))
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _kind(node.value):
                for target in node.targets:
                    if isinstance(target, ast.Subscript):
                        yield from ((name, node.value) for name in _variable(target.slice))


def _variable(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    return [node.attr] if isinstance(node, ast.Attribute) else []


def _labels(call: ast.Call | None, above: list[ast.AST], core: str, tree: ast.Module) -> tuple[str, ...] | None:
    if call is None:
        return None
    by_name = [key.value for key in call.keywords if key.arg == "labelnames"]
    given = next(iter([*by_name, *call.args[2:3]]), None)
    if given is None:
        # A table of descriptions is read by code that adds labels of its own; a metric made without any has none.
        return None if ast.unparse(call.func).endswith("Metadata") else ()
    function = next((each for each in above if isinstance(each, ast.FunctionDef)), tree)
    labels = _resolved(given, [function, tree], BASE_LABELS[core])
    added = BASE_LABELS[core] if ast.unparse(call.func).endswith("Metadata") else ()
    return None if labels is None else added + labels


def _resolved(node: ast.expr, scopes: list[ast.AST], base: tuple[str, ...]) -> tuple[str, ...] | None:
    if isinstance(node, ast.List | ast.Tuple):
        parts = [_resolved(part, scopes, base) for part in node.elts]
        return None if None in parts else tuple(label for part in parts if part for label in part)
    if isinstance(node, ast.Constant):
        return (str(node.value),)
    if isinstance(node, ast.BinOp):
        left, right = _resolved(node.left, scopes, base), _resolved(node.right, scopes, base)
        return None if left is None or right is None else left + right
    for name in _variable(node):
        if name.strip("_") == "labelnames":
            return base
        for scope in scopes:
            for each in ast.walk(scope):
                if isinstance(each, ast.Assign) and any(name in _variable(target) for target in each.targets):
                    return _resolved(each.value, scopes, base)
    return None

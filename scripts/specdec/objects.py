"""Kubernetes objects out of YAML, anyone's, each value with its line."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from specdec.errors import SpecdecError

if TYPE_CHECKING:
    from yaml.nodes import Node

Path = tuple[str | int, ...]


@dataclass
class Manifest:
    """One Kubernetes object.

    line    where it starts in its file, from 1
    source  the template it was rendered from (Helm's `# Source:` comment)
    place   (number of its document in the file, the path in it: of a List's item)
    """

    data: dict[str, Any]
    file: str
    line: int
    source: str | None = None
    node: Node | None = field(default=None, repr=False, compare=False)
    place: tuple[int, Path] = field(default=(0, ()), repr=False, compare=False)

    @property
    def kind(self) -> str:
        return str(self.data.get("kind") or "")

    @property
    def name(self) -> str:
        metadata = mapping(self.data.get("metadata"))
        return str(metadata.get("name") or metadata.get("generateName") or "")

    @property
    def namespace(self) -> str | None:
        namespace = mapping(self.data.get("metadata")).get("namespace")
        return str(namespace) if namespace else None

    @property
    def labels(self) -> dict[str, Any]:
        return mapping(mapping(self.data.get("metadata")).get("labels"))

    @property
    def annotations(self) -> dict[str, Any]:
        return mapping(mapping(self.data.get("metadata")).get("annotations"))

    @property
    def resource(self) -> str:
        return f"{self.kind}/{self.name}"

    def get(self, path: Path | str) -> Any:
        """The value at that path, None where there is none."""
        value: Any = self.data
        for key in keys(path):
            if isinstance(value, dict):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
                value = value[key]
            else:
                return None
        return value

    def has(self, path: Path | str) -> bool:
        """Whether that key stands in the object, even without a value."""
        *parents, last = keys(path) or ("",)
        holder = self.get(tuple(parents))
        return last in holder if isinstance(holder, dict) else isinstance(last, int) and self.get(path) is not None

    def line_of(self, path: Path | str) -> int:
        """The line of that value's key, or of the nearest that exists above it."""
        node, line = self.node, self.line
        for key in keys(path):
            value = getattr(node, "value", None)
            if not isinstance(value, list):
                break
            if isinstance(key, int):
                if not 0 <= key < len(value) or isinstance(value[key], tuple):
                    break
                node = value[key]
                line = node.start_mark.line + 1
                continue
            pair = next((item for item in value if isinstance(item, tuple) and item[0].value == key), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        return line


def keys(path: Path | str) -> Path:
    """`spec.containers[0].resources["nvidia.com/gpu"]` as its keys."""
    if not isinstance(path, str):
        return path
    found = re.findall(r'\["([^"]*)"\]|\[(\d+)\]|([^.\[\]]+)', path)
    return tuple(int(index) if index else quoted or plain for quoted, index, plain in found)


def dotted(path: Path) -> str:
    """The keys as one string, the opposite of `keys`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif re.fullmatch(r"[^.\[\]]+", key):
            text += f".{key}" if text else key
        else:
            text += f'["{key}"]'
    return text


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def parse(text: str, file: str = "-") -> list[Manifest]:
    """Every object in the text: documents, and the items of a List. Documents without a kind are left out.

    Raises SpecdecError (code unreadable-yaml) that names file and line.
    """
    return [item for document in _readable(text, file) for item in _expand(document)]


def document(text: str, file: str = "-") -> Manifest | None:
    """The first mapping in the text, whatever it is (a values file): its values with their lines.

    Raises SpecdecError (code unreadable-yaml) that names file and line.
    """
    return next(iter(documents(text, file)), None)


def documents(text: str, file: str = "-") -> list[Manifest]:
    """Every mapping in the text, whatever it is. Raises SpecdecError (code unreadable-yaml) as `document` does."""
    return _readable(text, file)


def _readable(text: str, file: str) -> list[Manifest]:
    import yaml

    try:
        with _no_garbage_collection():
            return list(_documents(text, file))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = mark.line + 1 if mark else None
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise _unreadable(str(problem), file, line) from None
    except (ValueError, TypeError, OverflowError) as error:
        raise _unreadable(str(error), file, None) from None
    except RecursionError:
        raise _unreadable("nested too deeply", file, None) from None


def _unreadable(problem: str, file: str, line: int | None) -> SpecdecError:
    hint = " (a Helm template: render it first, specdec render)" if "{{" in problem else ""
    return SpecdecError(
        f"not readable as YAML: {problem}{hint}", code="unreadable-yaml", file=f"{file}:{line}" if line else file
    )


def _documents(text: str, file: str) -> Iterator[Manifest]:
    import yaml

    lines: list[str] | None = None
    for number, node in enumerate(yaml.compose_all(text, Loader=_loader())):
        data = _construct(node)
        if not isinstance(data, dict):
            continue
        line = node.start_mark.line + 1
        if lines is None:
            lines = text.splitlines()
        source = _source(lines, line)
        yield Manifest(data, file, line, source, node, (number, ()))


def _expand(manifest: Manifest) -> Iterator[Manifest]:
    items = manifest.data.get("items")
    if not manifest.kind.endswith("List") or not isinstance(items, list):
        if manifest.kind:
            yield manifest
        return
    pairs = getattr(manifest.node, "value", [])
    nodes: list[Any] = next((value.value for key, value in pairs if key.value == "items"), [])
    number, path = manifest.place
    for index, (item, node) in enumerate(zip(items, nodes, strict=False)):
        if isinstance(item, dict):
            place = (number, (*path, "items", index))
            yield from _expand(Manifest(item, manifest.file, node.start_mark.line + 1, manifest.source, node, place))


def _source(lines: list[str], line: int) -> str | None:
    for text in reversed(lines[max(0, line - 6) : line - 1]):
        if text.startswith("# Source: "):
            return text.removeprefix("# Source: ").strip()
        if not text.startswith(("#", "---")) and text.strip():
            return None
    return None


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Building a million small nodes that all live makes the collector scan them again and again for nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@cache
def _loader() -> Any:
    """PyYAML's loader in C, with dates left as text as Kubernetes leaves them."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    resolvers = {
        first: [(tag, pattern) for tag, pattern in rows if tag not in _NOT_KUBERNETES]
        for first, rows in base.yaml_implicit_resolvers.items()
    }
    return type("ManifestLoader", (base,), {"yaml_implicit_resolvers": resolvers})


_NOT_KUBERNETES = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")


class _NotPlain(Exception):
    """A node that only PyYAML's own constructor knows to read: a merge key, a tag of its own."""


def _construct(node: Node) -> Any:
    """What the node holds. Plain values are made here, three times as fast as by the general constructor."""
    from yaml.constructor import SafeConstructor

    constructor = SafeConstructor()
    try:
        return _plain(node, {}, constructor)
    except _NotPlain:
        return constructor.construct_document(node)


_TAG = "tag:yaml.org,2002:"


def _plain(node: Node, made: dict[int, Any], constructor: Any) -> Any:
    """`made`: what an alias names is the same object, as it is to PyYAML, so a small file cannot grow large."""
    tag, value = node.tag, node.value
    if tag == "tag:yaml.org,2002:str":
        return value
    if tag == "tag:yaml.org,2002:map":
        if id(node) in made:
            return made[id(node)]
        mapping: dict[Any, Any] = {}
        made[id(node)] = mapping
        for key, item in value:
            name = _plain(key, made, constructor)
            if isinstance(name, dict | list):
                raise _NotPlain
            mapping[name] = _plain(item, made, constructor)
        return mapping
    if tag == "tag:yaml.org,2002:seq":
        if id(node) in made:
            return made[id(node)]
        items: list[Any] = []
        made[id(node)] = items
        items += [_plain(item, made, constructor) for item in value]
        return items
    read = _SCALARS.get(tag.removeprefix(_TAG))
    if read is None:
        raise _NotPlain
    return getattr(constructor, read)(node)


_SCALARS = {
    "int": "construct_yaml_int",
    "float": "construct_yaml_float",
    "bool": "construct_yaml_bool",
    "null": "construct_yaml_null",
}

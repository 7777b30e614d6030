"""What Helm says when it fails, in our words: the code, the value's path, what would be right. Never a Go trace."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from specdec import facts, objects
from specdec.errors import SpecdecError, nearest

_NOISE = ("WARNING", "level=", "Use --debug flag")
_CHART_MESSAGE = re.compile(r"(SD\d{3}): *(.+)", re.DOTALL)
_SCHEMA_HEADER = re.compile(r"values don't meet the specifications of the schema")
_SCHEMA_LINE = re.compile(r"^- at '(?P<path>[^']*)': (?P<what>.+)$|^- (?P<old_path>[\w.()\[\]-]+): (?P<old_what>.+)$")
_UNKNOWN_KEYS = re.compile(r"additional propert(?:y|ies) (?P<names>.+?) (?:is |are )?not allowed", re.IGNORECASE)
_VALUES_YAML = re.compile(
    r"failed to parse (?P<file>\S+): .*?(?:yaml: )?(?P<what>(?:line \d+|unmarshal|did not).*)", re.DOTALL
)
_SET = re.compile(r"failed parsing --set(?:-\w+)? data: (?P<what>.+)")
_EXECUTION = re.compile(
    r"(?:execution error at |template: |^)\(?(?P<where>[\w./-]+:\d+)(?::\d+)?\)?:?\s+(?P<what>.+)", re.DOTALL
)


def explain(stderr: str, values: Sequence[Path] = (), set_values: Sequence[str] = ()) -> SpecdecError:
    """One SpecdecError for what Helm printed. `values` are the files that the values came from, latest last."""
    error = _meaning(stderr)
    if error.path and error.file is None and error.code.startswith("SD"):
        error.file, given = given_at(error.path, values, set_values)
        if error.code == "SD100" and isinstance(given, str | int | float) and not isinstance(given, bool):
            # Helm writes large numbers as 1e+20, and calls what --set cannot read as a number a string.
            number = error.file == "--set" and re.fullmatch(r"[-+\d.eE]+", str(given))
            shown = f"the text {given!r}" if isinstance(given, str) and not number else str(given)
            error.message = re.sub(r"^is (\S*\d\S*|a text)(?=, and has)", lambda _: f"is {shown}", error.message)
        choices = re.findall(r"'([^']*)'", error.message) if "must be one of" in error.message else []
        guess = nearest(str(given), choices) if given is not None else None
        error.fix = error.fix or (f"did you mean {guess}?" if guess else None)
    return error


def given_at(path: str, values: Sequence[Path], set_values: Sequence[str]) -> tuple[str | None, Any]:
    """(`FILE:LINE` or "--set", the value) where that value was last given, (None, None) when it is the chart's."""
    for item in reversed(set_values):
        for pair in reversed(re.split(r"(?<!\\),", item)):
            key, equals, value = pair.partition("=")
            if equals and (key == path or path.startswith((key + ".", key + "["))):
                return "--set", value
    for file in reversed(values):
        try:
            document = objects.document(file.read_text(encoding="utf-8"), str(file))
        except (OSError, UnicodeDecodeError, SpecdecError):
            continue
        if document is not None and document.has(path):
            return f"{file}:{document.line_of(path)}", document.get(path)
    return None, None


def _meaning(stderr: str) -> SpecdecError:
    text = "\n".join(line for line in stderr.strip().splitlines() if not line.startswith(_NOISE))
    text = text.removeprefix("Error: ").strip()
    if _SCHEMA_HEADER.search(text):
        return _schema(text)
    if match := _CHART_MESSAGE.search(text):
        return chart_message(match.group(1), match.group(2))
    if match := _SET.search(text):
        return SpecdecError(match.group("what"), code="bad-set", path="--set", fix="--set key=value, commas escaped")
    if match := _VALUES_YAML.search(text):
        what = re.sub(r"^.*error converting YAML to JSON: (yaml: )?", "", " ".join(match.group("what").split()))
        return SpecdecError(f"not readable as YAML: {what}", code="unreadable-yaml", file=match.group("file"))
    if "release: not found" in text:
        return SpecdecError("no such release", code="release-not-found", fix="specdec deploy")
    if "another operation (install/upgrade/rollback) is in progress" in text:
        return SpecdecError("another deployment of this release is running", code="deploy-in-progress")
    if match := _EXECUTION.search(text):
        return SpecdecError(_last(match.group("what")), code="template-failed", file=match.group("where"))
    return SpecdecError(_last(text) or "Helm failed and said nothing", code="helm-failed")


def chart_message(code: str, message: str) -> SpecdecError:
    """A message of the chart: "engine.dtype: what is wrong. Fix: what would be right" with path and fix optional."""
    message = " ".join(message.split())
    path = None
    if match := re.match(r"([a-z][\w-]*(?:[.\[][\w\].-]+)+|[a-z]\w*): (.+)", message):
        path, message = match.groups()
    message, fix, *_ = [*re.split(r"[.;]? [Ff]ix: ", message, maxsplit=1), None]
    return SpecdecError(str(message), code=code, path=path, fix=fix)


def _schema(text: str) -> SpecdecError:
    problems = list(_problems(text))
    if not problems:
        return SpecdecError(_last(text), code="SD100")
    path, message, fix = problems[0]
    rest = "; ".join(f"{other}: {what}" for other, what, _ in problems[1:])
    message = f"{message} (and {rest})" if rest else message
    return SpecdecError(message, code="SD100", path=path or None, fix=fix)


def _problems(text: str) -> Iterator[tuple[str, str, str | None]]:
    """(path, message, fix) of each line of a schema error, in the form of Helm 3 and of Helm 4."""
    for line in text.splitlines():
        match = _SCHEMA_LINE.match(line.strip())
        if not match:
            continue
        pointer = match.group("path") or ""
        keys = (
            [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]
            if match.group("what")
            else [key for key in (match.group("old_path") or "").split(".") if key != "(root)"]
        )
        what = match.group("what") or match.group("old_what")
        if re.fullmatch(r"(validation|'?(allOf|anyOf|oneOf)'?) failed.*", what):
            continue  # the lines below it say what failed
        unknown = _UNKNOWN_KEYS.search(what)
        if not unknown:
            fix = _told(keys, "description") if "does not match pattern" in what else None
            path = re.sub(r"[.](\d+)(?=[.]|$)", r"[\1]", ".".join(keys))
            yield path, plainly(what, keys), fix and fix[0].lower() + fix[1:]
            continue
        for name in re.findall(r"[^\s',]+", unknown.group("names")):
            known = known_keys(keys)
            guess = nearest(name, known)
            fix = f"did you mean {'.'.join([*keys, guess])}?" if guess else f"known: {', '.join(sorted(known))}"
            yield ".".join([*keys, name]), f"there is no value {name!r} here", fix if known else None


_KINDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "null": "null",
    "object": "a mapping",
    "array": "a list",
    "boolean": "true or false",
}
_BOUND = re.compile(r"(exclusiveM|m)(?P<end>inimum|aximum): got (?P<got>\S+), want (?P<want>\S+)")
_KIND = re.compile(r"got (?P<got>\w+), want (?P<want>[\w, ]+)")
_OLD_KIND = re.compile(r"Invalid type. Expected: (?P<want>[\w/,]+), given: (?P<got>\w+)")
_OLD_BOUND = re.compile(r"Must be (?P<how>(?:greater|less) than(?: or equal to)?) (?P<want>\S+)")


def plainly(what: str, keys: Sequence[str] = ()) -> str:
    """What a schema's library says of a value, in words: of Helm 4 and 3.18 on, and of Helm before."""
    if match := _BOUND.fullmatch(what):
        least, exact = match.group("end") == "inimum", match.group(1) == "m"
        # Helm writes a large bound as 2.147×10⁰⁹.
        want = _told(keys, match.group(1) + match.group("end")) or match.group("want")
        bound = f"{want} or {'more' if least else 'less'}" if exact else f"{'more' if least else 'less'} than {want}"
        return f"is {match.group('got')}, and has to be {bound}"
    if match := _OLD_BOUND.fullmatch(what):
        return f"has to be {match.group('how')} {match.group('want')}"
    if match := _KIND.fullmatch(what) or _OLD_KIND.fullmatch(what):
        kinds = [_KINDS.get(kind, kind) for kind in re.split(r", | or |[/,]", match.group("want"))]
        # Helm lists null first, which is the rarest of what is meant.
        kinds = [kind for kind in kinds if kind != "null"] + [kind for kind in kinds if kind == "null"]
        got = _KINDS.get(match.group("got"), match.group("got"))
        return f"is {got}, and has to be {' or '.join(kinds)}"
    if match := re.fullmatch(r"(.+) does not match pattern '?.+'?", what):
        return f"{match.group(1)} is not of the form that it has to have"
    return what[0].lower() + what[1:]


def _told(keys: Sequence[str], what: str) -> str | None:
    """What the chart's schema says of the value: its description, or a bound."""
    root = _schema_root()
    places = [root]
    for key in keys:
        places = [child for place in places for child in _children(root, place, key)]
    return next((str(part[what]) for place in places for part in _parts(root, place) if part.get(what)), None)


def known_keys(path: Sequence[str]) -> list[str]:
    """The keys that the chart's schema knows under `path`; none when it has no schema or does not know the path."""
    root = _schema_root()
    places = [root]
    for key in path:
        places = [child for place in places for child in _children(root, place, key)]
    return sorted({name for place in places for part in _parts(root, place) for name in part.get("properties", {})})


def _schema_root() -> dict[str, Any]:
    """The chart's schema, empty when it has none."""
    try:
        root = json.loads((facts.chart_dir() / "values.schema.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return root if isinstance(root, dict) else {}


def _parts(root: dict[str, Any], schema: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """The schema with what it refers to and what it is combined from."""
    if not isinstance(schema, dict) or depth > 20:
        return
    yield schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        target: Any = root
        for key in reference.split("/")[1:]:
            target = target.get(key, {}) if isinstance(target, dict) else {}
        yield from _parts(root, target, depth + 1)
    for combination in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(combination, []):
            yield from _parts(root, part, depth + 1)


def _children(root: dict[str, Any], schema: Any, key: str) -> Iterator[Any]:
    for part in _parts(root, schema):
        if key in part.get("properties", {}):
            yield part["properties"][key]
        elif isinstance(part.get("additionalProperties"), dict):
            yield part["additionalProperties"]
        else:
            yield from part.get("patternProperties", {}).values()
        if isinstance(part.get("items"), dict) and key.isdigit():
            yield part["items"]


def _last(text: str) -> str:
    """The innermost cause of a chain of Go errors, on one line."""
    text = " ".join(text.split())
    return re.sub(r"^.*(?:error calling \w+|executing \"[^\"]*\" at <[^>]*>): ", "", text)

"""`--fix`: certain changes of YAML files. Comments, quotes and every line that need not change stay as they are."""

from __future__ import annotations

import difflib
import io
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specdec.errors import SpecdecError
from specdec.manifests import parse
from specdec.objects import Manifest
from specdec.rules.model import REMOVED, Edit, Finding

Check = Callable[[Sequence[Manifest]], list[Finding]]
ROUNDS = 50  # more than there are rules with certain fixes for one object


@dataclass
class Fixed:
    """What was changed in one file: its old and new text, the findings that went, and why others could not."""

    file: str
    old: str
    new: str
    gone: list[Finding] = field(default_factory=list)
    refused: str | None = None

    def diff(self) -> str:
        """The change as a unified diff."""
        lines = difflib.unified_diff(
            self.old.splitlines(keepends=True), self.new.splitlines(keepends=True), self.file, self.file, n=1
        )
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def fix_files(manifests: Sequence[Manifest], check: Check) -> list[Fixed]:
    """Change the files of these manifests where a fix is certain, and write them.

    All files are checked together, as rules join objects of several. A file that cannot be changed stays as it is.
    """
    files = list(dict.fromkeys(manifest.file for manifest in manifests if Path(manifest.file).is_file()))
    texts = {file: Path(file).read_text(encoding="utf-8-sig") for file in files}
    others = [manifest for manifest in manifests if manifest.file not in texts]
    changes = {file: Fixed(file, text, text) for file, text in texts.items()}
    for _ in range(ROUNDS):
        now = [*others, *(item for change in changes.values() for item in parse(change.new, change.file))]
        open_ = [found for found in check(now) if found.edits and found.file in changes and found.ignored is None]
        if not any(_step(changes[file], [f for f in open_ if f.file == file]) for file in files):
            break
    for change in changes.values():
        if change.new != change.old:
            overwrite(Path(change.file), change.new)
    return [change for change in changes.values() if change.new != change.old or change.refused]


def _step(change: Fixed, findings: list[Finding]) -> bool:
    """One finding of each object at a time: the edits of another may be about places that this one moves."""
    first: dict[tuple[int, Any], Finding] = {}
    for found in findings:
        if found not in change.gone:
            first.setdefault(found.place, found)
    if change.refused or not first:
        return False
    try:
        text = edited(change.new, [(found.place, edit) for found in first.values() for edit in found.edits])
        parse(text, change.file)
    except Exception as error:  # whatever the file holds that a round trip cannot keep, it is left alone
        change.refused = str(error).splitlines()[0] if str(error) else type(error).__name__
        change.new, change.gone = change.old, []
        return False
    change.new = text
    change.gone += first.values()
    return True


def overwrite(path: Path, text: str) -> None:
    """Over the old file, with its byte order mark and its ends of lines."""
    old = path.read_bytes()
    encoding = "utf-8-sig" if old.startswith(b"\xef\xbb\xbf") else "utf-8"
    with path.open("w", encoding=encoding, newline="\r\n" if b"\r\n" in old else "\n") as stream:
        stream.write(text)


def edited(text: str, edits: Sequence[tuple[tuple[int, tuple[str | int, ...]], Edit]]) -> str:
    """The text with these edits, each of (document, path in it). Lines that no edit is about stay byte for byte.

    Raises what ruamel.yaml raises on what it cannot read, KeyError and IndexError on paths that do not exist.
    """
    plain, changed = _dumped(text, []), _dumped(text, edits)
    merged = merge(text, plain, changed)
    # The layout is not worth a doubt: what comes out has to hold exactly what the edits made.
    return merged if _values(merged) == _values(changed) else changed


def _values(text: str) -> Any:
    """What a text holds, None where it cannot be read."""
    try:
        return [manifest.data for manifest in parse(text)]
    except SpecdecError:
        return None


def _dumped(text: str, edits: Sequence[tuple[tuple[int, tuple[str | int, ...]], Edit]]) -> str:
    yaml = _yaml(text)
    documents = list(yaml.load_all(text))
    for (number, prefix), edit in edits:
        _apply(documents[number], (*prefix, *edit.path), edit.value)
    out = io.StringIO()
    yaml.dump_all(documents, out)
    return out.getvalue()


def _yaml(text: str) -> Any:
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 1 << 20
    # Sequences below their key, as most write them, or in line with it.
    lines = text.splitlines()
    inset = any(
        line.rstrip().endswith(":")
        and below.lstrip().startswith("- ")
        and len(below) - len(below.lstrip()) > len(line) - len(line.lstrip())
        for line, below in itertools.pairwise(lines)
    )
    depths = [
        len(line) - len(line.lstrip()) for line in lines if line.strip() and not line.lstrip().startswith(("#", "-"))
    ]
    step = next((depth for depth in depths if depth), 2)
    yaml.indent(mapping=step, sequence=step + 2 if inset else 2, offset=step if inset else 0)
    return yaml


def _apply(document: Any, path: tuple[str | int, ...], value: Any) -> None:
    """Set or remove one value; mappings on the way that are missing are made."""
    holder = document
    for key, below in itertools.pairwise(path):
        if isinstance(holder, list):
            holder = holder[int(key)]
            continue
        if holder.get(key) is None and value is not REMOVED:
            holder[key] = [] if isinstance(below, int) else {}
        holder = holder[key]
    last = path[-1]
    if value is REMOVED:
        del holder[last]
    elif isinstance(holder, list) and int(last) == len(holder):
        holder.append(value)
    else:
        holder[last] = value


Operation = tuple[str, int, int, int, int]


def merge(text: str, plain: str, changed: str) -> str:
    """`text` with what differs between `plain` and `changed`; `plain` is `text` in the writer's own layout.

    A change inside lines that the writer lays out otherwise takes those lines in the writer's layout.
    """
    old, base, new = (part.splitlines(keepends=True) for part in (text, plain, changed))
    layout = difflib.SequenceMatcher(None, base, old, autojunk=False).get_opcodes()
    changes = difflib.SequenceMatcher(None, base, new, autojunk=False).get_opcodes()
    out: list[str] = []
    done = 0  # lines of `old` that are out
    for begin, end in _ranges(changes, layout):
        start = max(_images(begin, layout))
        stop = max(min(_images(end, layout)), start)
        lines = new[min(_images(begin, changes)) : max(_images(end, changes))]
        # The writer takes a comment away with the element before it.
        lost = [line for line in old[start:stop] if line.lstrip().startswith("#") and line not in lines]
        out += old[done:start] + lines + lost
        done = stop
    return "".join(out + old[done:])


def _ranges(changes: Sequence[Operation], layout: Sequence[Operation]) -> list[tuple[int, int]]:
    """Ranges of lines that change, each grown to whole blocks that the layout changes; those that meet are joined."""
    found = [(begin, end) for tag, begin, end, _, _ in changes if tag != "equal"]
    blocks = [(begin, end) for tag, begin, end, _, _ in layout if tag != "equal" and end > begin]
    grown: list[tuple[int, int]] = []
    for begin, end in found:
        touched = [block for block in blocks if block[0] < end and begin < block[1]]
        begin, end = min([begin, *(b for b, _ in touched)]), max([end, *(e for _, e in touched)])
        while grown and begin <= grown[-1][1]:
            before = grown.pop()
            begin, end = min(begin, before[0]), max(end, before[1])
        grown.append((begin, end))
    return grown


def _images(line: int, operations: Sequence[Operation]) -> list[int]:
    """Where a boundary between lines may be on the other side of these operations."""
    found = []
    for tag, left, right, first, last in operations:
        if tag == "equal" and left <= line <= right:
            found.append(first + line - left)
        elif tag != "equal":
            found += [first] if line == left else []
            found += [last] if line == right else []
    return found or [0]

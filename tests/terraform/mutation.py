"""Takes one validation, precondition or postcondition out of a module, and sees whether a test notices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hcl import Block, blocks

from .conftest import MODULES, TERRAFORM, Copy

GUARDS = ("validation", "precondition", "postcondition")
NOTICED = "Missing expected failure"


@dataclass(frozen=True)
class Mutant:
    """A module without the `number`th guard of one of its files; `owner` is what the guard belongs to."""

    module: str
    file: str
    number: int
    owner: str

    def __str__(self) -> str:
        return f"{self.module}-{self.owner}-{self.number}"


def _owner(file: str, guard: Block) -> str:
    around = [
        block
        for block in blocks(file)
        if block.kind in ("variable", "resource", "data") and block.start < guard.start < block.end
    ]
    block = around[-1]
    prefix = {"variable": "var.", "resource": "", "data": "data."}[block.kind]
    return prefix + ".".join(block.labels)


def guards(text: str) -> list[Block]:
    return [block for block in blocks(text) if block.kind in GUARDS]


def mutants() -> list[Mutant]:
    found = []
    for module in MODULES:
        for path in sorted((TERRAFORM / module).glob("*.tf")):
            text = path.read_text()
            found += [Mutant(module, path.name, i, _owner(text, guard)) for i, guard in enumerate(guards(text))]
    return found


def _tests_of(owner: str, directory: Path) -> str:
    """The test files of a module, cut down to the runs that expect `owner` to fail."""
    kept = []
    for path in sorted(directory.glob("*.tftest.hcl")):
        text = path.read_text()
        for run in reversed(blocks(text, "run")):
            if f"[{owner}]" not in run.body:
                text = text[: run.start] + text[run.end :]
        kept.append(text)
    return "\n".join(kept)


def is_noticed(copy: Copy, tool: str, mutant: Mutant) -> bool:
    """Runs what tests there are for the guard's owner on the mutant. `copy` is as before afterwards."""
    module = copy.terraform / mutant.module
    source, tests = module / mutant.file, module / "tests"
    original = source.read_text()
    only = _tests_of(mutant.owner, tests)
    if not blocks(only, "run"):
        return False
    guard = guards(original)[mutant.number]
    hidden = module / "hidden-tests"
    tests.rename(hidden)
    try:
        tests.mkdir()
        (tests / "mutant.tftest.hcl").write_text(only)
        source.write_text(original[: guard.start] + original[guard.end :])
        result = copy.run(tool, mutant.module, "test", "-no-color", check=False)
        return result.returncode != 0 and NOTICED in result.stdout + result.stderr
    finally:
        source.write_text(original)
        (tests / "mutant.tftest.hcl").unlink()
        tests.rmdir()
        hidden.rename(tests)

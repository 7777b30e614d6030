"""Every validation and precondition is there for a reason that a test knows: without it, a test turns red."""

from __future__ import annotations

import shutil

import pytest

from .conftest import MODULES, TERRAFORM, Copy
from .mutation import is_noticed, mutants

# One in so many, spread over the modules; the rest runs with -m slow.
SAMPLE = 12


def survivors(copy: Copy, tool: str, module: str, every: int) -> list[str]:
    chosen = [mutant for i, mutant in enumerate(mutants()) if mutant.module == module and i % every == 0]
    if chosen:
        copy.init(tool, module)
    return [str(mutant) for mutant in chosen if not is_noticed(copy, tool, mutant)]


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_no_guard_can_go_unnoticed(copy: Copy, one_tool: str, module: str) -> None:
    assert survivors(copy, one_tool, module, every=1) == []


@pytest.mark.parametrize(
    "module", [module for module in MODULES if any(m.module == module for m in mutants()[::SAMPLE])]
)
def test_a_sample_of_guards_cannot_go_unnoticed(copy: Copy, one_tool: str, module: str) -> None:
    assert survivors(copy, one_tool, module, every=SAMPLE) == []


def test_a_guard_without_a_test_is_found(copy: Copy, one_tool: str) -> None:
    """The mutation run itself: with its one test gone, a validation is reported."""
    module = "platform"
    tests = copy.terraform / module / "tests"
    shutil.rmtree(tests)
    tests.mkdir()
    (tests / "none.tftest.hcl").write_text('mock_provider "helm" {}\n')
    mutant = next(mutant for mutant in mutants() if mutant.module == module)
    assert not is_noticed(copy, one_tool, mutant)


def test_every_module_with_guards_is_in_the_run() -> None:
    assert {mutant.module for mutant in mutants()} == {
        module for module in MODULES if "condition" in "".join(f.read_text() for f in (TERRAFORM / module).glob("*.tf"))
    }

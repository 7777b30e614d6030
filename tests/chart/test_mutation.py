"""A table that moves a bound or a template that drops an argument turns a test red; `make mutate` tries them all."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from . import mutate

TABLE = mutate.table_mutants()
TEMPLATE = mutate.template_mutants()
# Lines that put something into the arguments, the speculation's JSON or the environment.
PUTS = ("$args = ", "set $json", "set (get $json", "set $env")
ARGUMENT = [
    mutant
    for mutant in TEMPLATE
    if mutant.file == "templates/engine/_arguments.tpl" and any(put in mutant.text for put in PUTS)
]


def sample(mutants: list[mutate.TableMutant], number: int) -> list[mutate.TableMutant]:
    return random.Random(1).sample(mutants, number)


def test_the_tables_as_they_are_turn_nothing_red() -> None:
    assert mutate.red_test(mutate.table()) is None


@pytest.mark.parametrize("mutant", sample([m for m in TABLE if not m.key], 6), ids=str)
def test_a_row_that_is_left_out_turns_a_test_red(mutant: mutate.TableMutant) -> None:
    assert mutate.red_test(mutate.mutated(mutant), mutant.path)


@pytest.mark.parametrize("mutant", sample([m for m in TABLE if m.key], 12), ids=str)
def test_a_bound_that_is_moved_turns_a_test_red(mutant: mutate.TableMutant) -> None:
    assert mutate.red_test(mutate.mutated(mutant), mutant.path)


@pytest.mark.parametrize("mutant", ARGUMENT, ids=lambda mutant: str(mutant.line))
def test_a_template_that_drops_an_argument_turns_a_test_red(
    mutant: mutate.TemplateMutant, helm: str, tmp_path: Path
) -> None:
    assert mutate.template_verdict(mutant, helm, tmp_path)


def test_there_are_mutants_of_every_kind() -> None:
    assert len(TABLE) > 400
    assert len(TEMPLATE) > 150
    assert len(ARGUMENT) >= 3

"""A draft that is of no use."""

from __future__ import annotations

import json

import pytest
from machine import specdec
from specdec import local


@pytest.mark.usefixtures("deployment")
def test_a_pair_that_never_agrees_is_slower_with_speculation() -> None:
    # Many draft tokens, so that what they cost stands out on a machine that does other things too.
    settings = [f"speculative.model.name={local.DISAGREEING_DRAFT}", "speculative.numTokens=16"]
    chosen = [word for setting in settings for word in ("--set", setting)]
    measured = specdec("deploy", "local", *chosen, "--no-smoke")["measurement"]
    print(json.dumps(measured["acceptance_by_position"]), measured["ratio"])
    assert measured["drafts"] > 0
    assert measured["acceptance_rate"] < 0.05
    assert measured["ratio"] < 1

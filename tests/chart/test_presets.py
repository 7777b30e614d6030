"""Presets and tasks are starting points: what is set wins, NOTES says what was chosen and that nobody measured it."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
import yaml

from .conftest import CHART, DRAFT, DRAFT_REVISION, lookup, merged

PRESETS = yaml.safe_load((CHART / "files" / "presets.yaml").read_text())
HUB = {"name": DRAFT, "revision": DRAFT_REVISION}
FREE: dict[str, Any] = {"method": "", "numTokens": None}
# preset: what the engine is told of it
TOLD = {
    "code-edit": {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 3, "prompt_lookup_max": 5},
    "agent": {"method": "suffix"},
    "draft-model": {"method": "draft_model", "num_speculative_tokens": 3},
    "eagle3": {"method": "eagle3", "num_speculative_tokens": 3},
    "mtp": {"method": "mtp", "num_speculative_tokens": 1},
}
# The article's tuning matrix.
MATRIX = {"code": 4, "chat": 3, "translation": 5, "json": 5}


def free(**speculative: Any) -> dict[str, Any]:
    return lookup(engine={"image": {"hasArcticInference": True}}, speculative=FREE | speculative)


def notes(helm: str, tmp_path: Any, values: dict[str, Any]) -> str:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    command = [helm, "install", "speculative", str(CHART), "--dry-run=client", "--values", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.partition("NOTES:")[2]


def test_every_preset_and_task_is_shown_here_and_called_an_assumption():
    assert set(PRESETS["presets"]) == set(TOLD)
    assert {task: row["numTokens"] for task, row in PRESETS["tasks"].items()} == MATRIX
    rows = [*PRESETS["presets"].values(), *PRESETS["tasks"].values()]
    assert all(row["assumption"] is True and row["source"] for row in rows)


@pytest.mark.parametrize("preset", TOLD)
def test_a_preset_says_method_and_what_goes_with_it(render, preset):
    model = HUB if TOLD[preset]["method"] in ("draft_model", "eagle3") else {}
    speculation = render(free(preset=preset, model=model)).speculation()
    told = TOLD[preset] | ({"model": DRAFT, "revision": DRAFT_REVISION} if model else {})
    assert speculation == told


@pytest.mark.parametrize("task", MATRIX)
def test_a_task_chooses_k_of_a_draft_model(render, task):
    speculation = render(free(method="draft_model", model=HUB, task=task)).speculation()
    assert speculation["num_speculative_tokens"] == MATRIX[task]


def test_what_is_set_wins_over_preset_and_task(render):
    values = free(preset="code-edit", task="json", numTokens=2, promptLookup={"max": 8})
    assert render(values).speculation() == {"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_max": 8}


def test_a_preset_wins_over_a_task(render):
    assert render(free(preset="mtp", task="json")).speculation()["num_speculative_tokens"] == 1


def test_another_method_than_the_preset_s_leaves_its_values_out(render):
    values = free(preset="code-edit", method="draft_model", model=HUB, task="code")
    speculation = render(values).speculation()
    assert (speculation["method"], speculation["num_speculative_tokens"]) == ("draft_model", 4)
    assert "prompt_lookup_max" not in speculation


def test_nothing_said_is_ngram_with_three_tokens(render):
    assert render(free()).speculation() == {"method": "ngram", "num_speculative_tokens": 3}


def test_an_engine_may_have_a_preset_of_its_own(render):
    engines = {"edit": {"speculative": {"preset": "code-edit"}}, "plain": {}}
    rendering = render(merged(free(), {"engines": engines}))
    assert rendering.speculation("speculative-edit")["num_speculative_tokens"] == 5
    assert rendering.speculation("speculative-plain")["num_speculative_tokens"] == 3


def test_suffix_bounds_its_drafts_itself_unless_told(render):
    assert render(free(method="suffix", task="json")).speculation() == {"method": "suffix"}
    assert render(free(method="suffix", numTokens=8)).speculation()["num_speculative_tokens"] == 8


def test_a_preset_that_the_version_cannot_run_is_refused_by_method_and_version(refused):
    message = refused(merged(free(preset="agent"), {"engine": {"version": "0.10.2"}}))
    assert "SD155" in message
    assert "vLLM 0.10.2 cannot run suffix" in message


def test_notes_say_what_was_chosen_and_why(helm, tmp_path):
    text = notes(helm, tmp_path, free(preset="draft-model", model=HUB, task="code"))
    assert "method draft_model: preset draft-model: a small model of the target's family drafts" in text
    assert "numTokens 4: task code: an article's tuning matrix, unverified" in text
    assert "starting points that nobody measured here" in text
    plain = notes(helm, tmp_path, lookup())
    assert "starting point" not in plain


def test_notes_warn_of_made_up_acceptance(helm, tmp_path):
    made_up = {"rejectionSampling": "synthetic", "synthetic": {"acceptanceLength": 2}}
    assert "rejectionSampling synthetic changes the answers: they are nonsense" in notes(
        helm, tmp_path, lookup(speculative=made_up)
    )

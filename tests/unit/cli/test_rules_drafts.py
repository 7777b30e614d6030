"""Numbers of the speculative config: what the engine refuses, what it takes and nobody gains from, what is fine."""

from __future__ import annotations

from typing import Any

import pytest
from specdec import rules
from specdec.rules.examples import manifests_of
from specdec.rules.model import Finding
from specdec.rules.speculation import example


def found(k: str, method: str = "draft_model", *flags: str, version: str = "0.32.0", more: str = "") -> list[Finding]:
    model = ', "model": "/models/draft"' if method in ("draft_model", "eagle3", "dflash") else ""
    config = f'{{"method": "{method}"{model}, "num_speculative_tokens": {k}{more}}}'
    return rules.check(manifests_of(example(config, *flags, version=version)))


def codes(*args: Any, **more: Any) -> set[str]:
    return {finding.code for finding in found(*args, **more)} & {"SD110", "SD127", "SD137", "SD138", "SD139", "SD140"}


@pytest.mark.parametrize("k", ["0", "-1", "-5", '"four"', '"-1"', "1.5", "true", "[3]", "{}"])
def test_what_is_no_number_above_zero_is_said_once(k: str) -> None:
    assert "SD110" in codes(k)
    schedule = ', "num_speculative_tokens_per_batch_size": [[1, 4, 3], [5, 64, 2]]'
    assert "SD127" not in codes(k, more=schedule)


@pytest.mark.parametrize("k", ["1", "3", "5", "8", "16"])
def test_numbers_that_people_run(k: str) -> None:
    assert codes(k) == set()


@pytest.mark.parametrize(
    ("version", "code"), [("0.9.2", "SD137"), ("0.11.0", "SD137"), ("0.12.0", "SD138"), ("0.32.0", "SD138")]
)
def test_digits_in_quotes_fail_in_old_versions_and_are_warned_of_in_new_ones(version: str, code: str) -> None:
    assert code in codes('"4"', "ngram", version=version)
    assert not {"SD137", "SD138"} & codes("4", "ngram", version=version)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (', "draft_tensor_parallel_size": "two"', "draft_tensor_parallel_size is the text 'two'"),
        (', "max_model_len": [8192]', "max_model_len is [8192]"),
        (', "revision": 5', "revision is 5, and has to be a text"),
    ],
)
def test_a_field_of_another_type(more: str, says: str) -> None:
    assert any(finding.code == "SD137" and says in finding.message for finding in found("3", more=more))


def test_null_and_variables_are_no_wrong_types() -> None:
    assert "SD137" not in codes("3", more=', "max_model_len": null, "draft_tensor_parallel_size": "$(TP)"')


@pytest.mark.parametrize(
    ("k", "version", "most"), [("999", "0.32.0", 128), ("129", "0.20.2", 128), ("33", "0.10.2", 32)]
)
def test_more_than_the_sampler_takes_is_an_error_with_the_number(k: str, version: str, most: int) -> None:
    (finding,) = [finding for finding in found(k, "ngram", version=version) if finding.code == "SD139"]
    assert finding.message == f"{k} drafts in a step, and a step checks {most} at most"
    assert finding.severity == "error"
    assert "SD139" not in codes(str(most), "ngram", version=version)


@pytest.mark.parametrize(("flag", "value"), [("--max-num-batched-tokens", 64), ("--max-model-len", 64)])
def test_a_step_and_a_sequence_have_room_for_the_drafts_and_a_token(flag: str, value: int) -> None:
    assert "SD139" in codes("64", "ngram", f"{flag}={value}", "--max-num-seqs=8")
    assert "SD139" not in codes("63", "ngram", f"{flag}={value}", "--max-num-seqs=8")


@pytest.mark.parametrize(
    ("method", "k", "warned"),
    [
        ("draft_model", "17", True),
        ("eagle3", "24", True),
        ("mtp", "20", True),
        ("ngram", "24", False),
        ("suffix", "32", False),
        ("dflash", "16", False),
        ("ngram", "33", True),
        ("ngram", "100", True),
    ],
)
def test_more_than_pays_is_a_warning_and_methods_that_draft_at_once_may_go_further(
    method: str, k: str, warned: bool
) -> None:
    assert ("SD140" in codes(k, method)) is warned


@pytest.mark.parametrize(
    ("share", "warned"), [("0.9", False), ("0.97", False), ("0.98", True), ("0.995", True), ("1", True)]
)
def test_little_memory_outside_of_the_engines_share(share: str, warned: bool) -> None:
    text = f"containers:\n  - args: [/models/target, --shutdown-timeout=60, --gpu-memory-utilization={share}]\n"
    assert ("SD304" in {finding.code for finding in rules.check(manifests_of(text))}) is warned
    fixed = text.replace("--gpu", "--kv-cache-memory-bytes=20G, --gpu")
    assert "SD304" not in {finding.code for finding in rules.check(manifests_of(fixed))}

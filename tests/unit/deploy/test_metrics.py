"""Counters of several pods make one acceptance; those of a restarted pod make none."""

from __future__ import annotations

import pytest
from specdec.deploy.metrics import Counters, parse
from specdec.errors import FoundWrong

PAGE = """\
# HELP vllm:spec_decode_num_drafts_total Number of spec decoding drafts.
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="a"} 114.0
vllm:spec_decode_num_drafts_created{engine="0",model_name="a"} 1.764421e+09
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="a"} 456.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="a"} 94.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="a",position="0"} 50.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="a",position="1"} 28.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="a",position="2"} 12.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="a",position="3"} 4.0
vllm:generation_tokens_total{engine="0",model_name="a"} 208.0
"""


def test_a_page_of_the_engine_is_read_without_its_creation_times() -> None:
    assert parse(PAGE) == Counters(114, 456, 94, (50, 28, 12, 4), 208, True)


def test_data_parallel_engines_of_one_page_are_summed() -> None:
    assert parse(PAGE + PAGE.replace('engine="0"', 'engine="1"')).by_position == (100, 56, 24, 8)


def test_pods_are_summed_before_rates_are_taken() -> None:
    # Two pods at 0.5 and 0.1 with unlike loads: 52 of 120 drafted, and not the mean of the rates.
    both = Counters(10, 100, 50, (), 0, True) + Counters(2, 20, 2, (), 0, True)
    assert both.acceptance_rate == pytest.approx(52 / 120)


def test_acceptance_by_position_is_over_drafts_and_never_rises() -> None:
    found = parse(PAGE).acceptance_by_position
    assert found == pytest.approx([50 / 114, 28 / 114, 12 / 114, 4 / 114])
    assert found == sorted(found, reverse=True)


def test_mean_length_counts_the_token_that_the_target_gives_itself() -> None:
    assert parse(PAGE).mean_length == pytest.approx(1 + 94 / 114)


def test_a_position_that_appears_later_counts_from_zero() -> None:
    change = Counters(9, 27, 9, (5, 3, 1)) - Counters(4, 8, 4, (3, 1))
    assert change.by_position == (2, 2, 1)


def test_a_restarted_pod_is_not_taken_for_a_change() -> None:
    with pytest.raises(FoundWrong, match="restarted"):
        _ = Counters(drafts=3) - Counters(drafts=100)


def test_an_engine_without_speculation_exports_nothing() -> None:
    found = parse('vllm:generation_tokens_total{engine="0"} 12.0\n')
    assert (found.exported, found.moved, found.acceptance_rate, found.generated) == (False, False, None, 12)

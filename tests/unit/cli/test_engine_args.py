"""Command lines of any engine version, as people write them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from specdec import engine_args
from specdec.engine_args import EngineArgs, parse


class TestSpellings:
    @pytest.mark.parametrize(
        "argv",
        [
            ["vllm", "serve", "org/m", "--tensor-parallel-size", "4"],
            ["vllm", "serve", "org/m", "--tensor_parallel_size=4"],
            ["serve", "org/m", "-tp", "4"],
            ["/usr/bin/vllm", "serve", "org/m", "-tp=4"],
            ["python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "org/m", "-tp", "4"],
            ["--model=org/m", "--tensor-parallel-size=4"],
            ["org/m", "--tensor-parallel-size=4"],
            ["sh", "-c", "exec vllm serve org/m --tensor-parallel-size 4"],
            ["/bin/bash", "-lc", "set -e\nexport A=1 # serve\nexec vllm serve org/m \\\n  -tp 4 2>&1"],
            ["bash", "-ec", "pip install x && vllm serve 'org/m' -tp 4 | tee log"],
        ],
    )
    def test_one_engine_written_in_many_ways(self, argv: list[str]) -> None:
        args = parse(argv)
        assert (args.model, args.tensor_parallel_size) == ("org/m", 4)

    def test_the_last_of_several_wins(self) -> None:
        assert parse(["m", "--max-num-seqs", "1", "--max-num-seqs=2"]).max_num_seqs == 2

    def test_switches(self) -> None:
        args = parse(["m", "--trust-remote-code", "--enforce-eager", "--no-enforce-eager", "--enable-lora"])
        assert (args.trust_remote_code, args.enforce_eager, args.enable_lora) == (True, False, True)

    def test_a_switch_does_not_swallow_the_model(self) -> None:
        assert parse(["--trust-remote-code", "--model", "m"]).model == "m"

    def test_flags_with_several_values_that_we_do_not_read(self) -> None:
        args = parse(["m", "--cudagraph-capture-sizes", "1", "2", "4", "--lora-modules", "a=b", "c=d", "-tp", "2"])
        assert args.errors == []
        assert args.raw[:2] == [("--cudagraph-capture-sizes", "1 2 4"), ("--lora-modules", "a=b c=d")]
        assert args.tensor_parallel_size == 2

    def test_old_switches_with_a_value(self) -> None:
        args = parse(["vllm", "serve", "--enable-prefix-caching", "--enable-chunked-prefill", "False", "--model", "m"])
        assert args.raw[1] == ("--enable-chunked-prefill", "False")
        assert (args.model, args.errors) == ("m", [])

    def test_several_served_names(self) -> None:
        assert parse(["m", "--served-model-name", "a", "b", "--port", "1"]).served_model_names == ["a", "b"]

    @pytest.mark.parametrize(
        ("text", "tokens"),
        [("8192", 8192), ("32k", 32_000), ("32K", 32_768), ("1.5k", 1_500), ("1M", 1_048_576), ("auto", None)],
    )
    def test_readable_lengths(self, text: str, tokens: int | None) -> None:
        args = parse(["m", "--max-model-len", text])
        assert args.max_model_len == tokens
        assert args.errors == []

    def test_the_place_of_a_flag_is_kept(self) -> None:
        assert parse(["vllm", "serve", "m", "--dtype", "half", "--port=1"]).index["--port"] == 5


class TestSpeculation:
    def test_json(self) -> None:
        config = {
            "method": "eagle3",
            "model": "org/head",
            "revision": "abc",
            "num_speculative_tokens": 3,
            "draft_tensor_parallel_size": 1,
            "num_speculative_tokens_per_batch_size": [[1, 8, 5], [9, 64, 2]],
        }
        speculative = parse(["m", "--speculative-config", json.dumps(config)]).speculative
        assert speculative is not None
        assert (speculative.method, speculative.model, speculative.revision) == ("eagle3", "org/head", "abc")
        assert (speculative.num_speculative_tokens, speculative.draft_tensor_parallel_size) == (3, 1)
        assert speculative.schedule == [(1, 8, 5), (9, 64, 2)]
        assert not speculative.legacy

    def test_flags_of_0_6_3(self) -> None:
        argv = ["--model", "m", "--speculative-model", "d", "--num-speculative-tokens", "4", "--use-v2-block-manager"]
        speculative = parse([*argv, "-spec-draft-tp", "1"], "0.6.3").speculative
        assert speculative is not None
        assert (speculative.method, speculative.model, speculative.num_speculative_tokens) == ("draft_model", "d", 4)
        assert speculative.draft_tensor_parallel_size == 1
        assert speculative.legacy

    def test_ngram_of_0_6_3(self) -> None:
        argv = ["m", "--speculative-model=[ngram]", "--num-speculative-tokens=5", "--ngram-prompt-lookup-max=4"]
        speculative = parse(argv).speculative
        assert speculative is not None
        assert (speculative.method, speculative.model, speculative.prompt_lookup_max) == ("ngram", None, 4)

    def test_short_flags_and_dotted_keys(self) -> None:
        argv = ["m", "--spec-method", "ngram", "--speculative-config.num_speculative_tokens", "3"]
        speculative = parse(argv).speculative
        assert speculative is not None
        assert (speculative.method, speculative.num_speculative_tokens) == ("ngram", 3)

    def test_none(self) -> None:
        assert parse(["m", "--port", "8000"]).speculative is None

    def test_broken_json_is_said_and_not_raised(self) -> None:
        args = parse(["m", "--speculative-config", "{method: ngram}"])
        assert "not JSON" in args.errors[0]


class TestWhatCannotBeRead:
    @pytest.mark.parametrize(
        "argv",
        [
            ["m", "--max-num-seqs", "many"],
            ["m", "--tensor-parallel-size"],
            ["m", "--gpu-memory-utilization", "ninety"],
            ["sh", "-c", "vllm serve 'm"],
            ["m", "stray"],
        ],
    )
    def test_is_listed(self, argv: list[str]) -> None:
        assert parse(argv).errors

    @given(st.lists(st.text(), max_size=12))
    def test_any_words_at_all(self, argv: list[str]) -> None:
        assert isinstance(parse(argv), EngineArgs)

    @given(
        st.lists(
            st.sampled_from(
                FLAGS := [
                    "-tp",
                    "--speculative-config",
                    "--max-model-len",
                    "--speculative-model",
                    "--num-speculative-tokens",
                    "--speculative-config.x",
                    "vllm",
                    "serve",
                    "sh",
                    "-c",
                    "--",
                    "-",
                    "=",
                    "--a=b=c",
                    '{"method": 3}',
                    '{"a": NaN}',
                    "1e999",
                    "-1",
                    "nan",
                    "inf",
                    "9" * 5000,
                    "[" * 2000,
                    "'",
                    "\\",
                    "#",
                    ";",
                ]
            )
        )
    )
    def test_flags_in_any_order(self, argv: list[str]) -> None:
        assert isinstance(parse(argv), EngineArgs)

    @given(st.text())
    def test_any_shell_script(self, script: str) -> None:
        assert isinstance(parse(["sh", "-c", script]), EngineArgs)
        assert isinstance(parse(["sh", "-c", "vllm serve m " + script]), EngineArgs)

    @given(
        st.dictionaries(
            st.text(),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            ),
        )
    )
    def test_any_json_object(self, config: dict[str, object]) -> None:
        speculative = parse(["m", "--speculative-config", json.dumps(config)]).speculative
        assert speculative is not None


def test_shell_scripts_without_an_engine() -> None:
    assert engine_args.plain_command("echo vllm; sleep 1") == []

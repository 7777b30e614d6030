"""The pipelines: actionlint, nothing unpinned, no keys, and every step run locally as far as it needs no cloud."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from workflows import ROOT, WORKFLOWS, Step, read, steps

FILES = sorted(WORKFLOWS.glob("*.yml")) + sorted((ROOT / ".github/actions").rglob("action.yml"))
PLANS = ROOT / "tests/terraform/plans"
# Steps that ask a cloud, or build for an hour. What they call has tests of its own.
CLOUD = {
    "plan/plan/Plan the infrastructure",
    "apply/plan/Plan the infrastructure",
    "apply/apply/Apply the plan that was approved, then platform, chart and smoke test",
    "drift/drift/Look for drift",
    "test/test/make test",
}
ELSEWHERE = {
    "release/chart/Package the chart with the digests of its images",
    "release/chart/Push and sign",
    "release/chart/Make the release",
    "plan/plan/Post the comment",
}


def step(name: str) -> Step:
    return next(one for one in steps() if str(one) == name)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """This checkout as a runner has it: tools are there, set-up has nothing to do."""
    for name in ("environments", "helm", "terraform", "scripts", "Makefile"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in (".tools", ".venv"):
        if (ROOT / name).exists():
            (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands that only write down what they were asked."""
    folder = tmp_path / "fakes"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def fake(folder: Path, name: str, script: str) -> Path:
    said = folder / f"{name}.log"
    (folder / name).write_text(f'#!/usr/bin/env bash\necho "$@" >>"{said}"\n{script}\n')
    (folder / name).chmod(0o755)
    return said


CONTEXT = {"matrix.environment": "prod", "github.token": "token"}
# Set-up is a matter of its own; a make variable on the command line wins over the Makefile's.
NO_SETUP = {"MAKEFLAGS": "SETUP=true", "GITHUB_ACTIONS": "true"}


def test_actionlint_finds_nothing() -> None:
    tool = shutil.which("actionlint") or shutil.which("actionlint", path=str(ROOT / ".tools/bin"))
    if tool is None:
        pytest.skip("NOT TESTED: actionlint is not here (make setup)")
    found = subprocess.run([tool], cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_actions_are_pinned_by_commit_with_their_version_beside_it(file: Path) -> None:
    for line in file.read_text().splitlines():
        if match := re.match(r"\s*-?\s*uses:\s*(\S+)(.*)", line):
            if match[1].startswith("./"):
                continue
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", match[1]), line
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", match[2]), line


@pytest.mark.parametrize("file", sorted(WORKFLOWS.glob("*.yml")), ids=lambda file: file.stem)
def test_a_workflow_may_do_no_more_than_it_says(file: Path) -> None:
    document = read(file)
    assert document["permissions"] == {"contents": "read"}
    assert document["concurrency"]
    for job in document["jobs"].values():
        assert job["timeout-minutes"] <= 360
        for one in job["steps"]:
            if "checkout" in one.get("uses", ""):
                assert one["with"]["persist-credentials"] is False
    # Whoever opens a pull request chooses its title and branch: they never become part of a script.
    assert not [one for one in steps() if one.workflow == file.stem and "${{" in one.script]
    assert not re.search(r"secrets\.|credentials_json|access-key", file.read_text()), "no keys: OIDC alone"


def test_apply_is_approved_alone_and_uses_the_saved_plan() -> None:
    document = read(WORKFLOWS / "apply.yml")
    assert document["concurrency"] == {"group": "apply", "cancel-in-progress": False}
    assert document["jobs"]["apply"]["environment"] == "${{ matrix.environment }}"
    assert document["jobs"]["apply"]["strategy"]["max-parallel"] == 1
    assert "plan" in document["jobs"]["apply"]["needs"]
    scripts = [one.script for one in steps() if one.workflow == "apply" and one.job == "apply"]
    assert scripts == ["make apply"]
    shown = subprocess.run(["make", "-n", "apply", "ENV=prod"], cwd=ROOT, capture_output=True, text=True).stdout
    assert "specdec deploy prod --from apply --yes" in shown


def test_every_step_is_run_here_or_named_as_one_that_needs_a_cloud() -> None:
    found = {str(one) for one in steps()}
    assert found >= CLOUD
    run_below = {
        *(f"{w}/environments/List the environments" for w in ("plan", "apply", "drift")),
        *(
            f"{w}/plan/{name}"
            for w in ("plan", "apply")
            for name in ("Plan memory, speed, K and cost", "Check the rules")
        ),
        "plan/plan/Render what the base branch has",
        "plan/plan/Write the comment",
        "apply/plan/Show whoever approves it what it does",
    }
    assert found == CLOUD | ELSEWHERE | run_below


@pytest.mark.parametrize("workflow", ["plan", "apply"])
@pytest.mark.parametrize("name", ["Plan memory, speed, K and cost", "Check the rules"])
def test_plan_and_rules_run(checkout: Path, workflow: str, name: str) -> None:
    done = step(f"{workflow}/plan/{name}").run(checkout, CONTEXT, **NO_SETUP)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("fits: KV cache" in done.stdout) == name.startswith("Plan")


@pytest.mark.parametrize("refused", [False, True])
def test_the_comment_is_written_from_what_the_steps_before_left(checkout: Path, tmp_path: Path, refused: bool) -> None:
    (checkout / "base").mkdir()
    for name in ("environments", "helm"):
        (checkout / "base" / name).symlink_to(ROOT / name)
    done = step("plan/plan/Render what the base branch has").run(checkout, CONTEXT)
    assert done.returncode == 0, done.stderr
    assert "kind: StatefulSet" in (checkout / "base.yaml").read_text()

    plan = PLANS / ("t1-driver-mode-changes.json" if refused else "first-apply.json")
    summary = tmp_path / "summary.md"
    variables = {**NO_SETUP, "GITHUB_STEP_SUMMARY": str(summary)}
    write = step("plan/plan/Write the comment")
    done = write.run(checkout, CONTEXT, **variables | {"MAKEFLAGS": f"SETUP=true PLANS={plan}"})
    assert done.returncode == 0, done.stdout + done.stderr
    text = (checkout / "comment.md").read_text()
    assert text == summary.read_text()
    assert text.startswith("<!-- specdec comment prod -->\n")
    assert ("SD801" in text) == refused
    assert "### Manifests: 0 objects change" in text
    assert "$88.49 an hour" in text

    summary.unlink()
    shown = step("apply/plan/Show whoever approves it what it does")
    done = shown.run(checkout, CONTEXT, **variables | {"MAKEFLAGS": f"SETUP=true PLANS={plan}"})
    assert done.returncode == 0, done.stderr
    assert "### Terraform, cluster" in summary.read_text()


def test_an_environment_that_the_base_branch_lacks_is_compared_with_nothing(checkout: Path) -> None:
    (checkout / "base/environments").mkdir(parents=True)
    done = step("plan/plan/Render what the base branch has").run(checkout, CONTEXT)
    assert done.returncode == 0, done.stderr
    assert (checkout / "base.yaml").read_text() == ""
    made = subprocess.run(
        ["make", "comment", "ENV=prod", "ARGS=--against base.yaml"],
        cwd=checkout, env={**os.environ, **NO_SETUP}, capture_output=True, text=True,
    )  # fmt: skip
    assert "- added `StatefulSet/speculative`" in made.stdout, made.stderr


def git(where: Path, *arguments: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    return subprocess.run(
        ["git", *who, *arguments], cwd=where, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    where = tmp_path / "repository"
    shutil.copytree(ROOT / "scripts/pipeline", where / "scripts/pipeline")
    for name, root in (("prod", "gke"), ("prod-aws", "eks"), ("local", None)):
        (where / "environments" / name).mkdir(parents=True)
        (where / "environments" / name / "values.yaml").write_text("a: 1\n")
        if root:
            (where / "environments" / name / f"backend.{root}.hcl").write_text("")
    (where / "helm").mkdir()
    (where / "helm/chart").write_text("")
    git(where, "init", "-q", "-b", "main")
    git(where, "add", "-A")
    git(where, "commit", "-qm", "first")
    return where


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("environments/prod/values.yaml", ["prod"]),
        ("environments/prod-aws/values.yaml", ["prod-aws"]),
        ("helm/chart", ["prod", "prod-aws"]),
        ("README.md", []),
    ],
)
def test_only_environments_that_change_are_listed(repository: Path, changed: str, expected: list[str]) -> None:
    base = git(repository, "rev-parse", "HEAD")
    (repository / changed).write_text("b: 2\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "second")
    output = repository / "output"
    for workflow in ("plan", "apply"):
        output.unlink(missing_ok=True)
        context = {
            "vars.ENVIRONMENTS": "prod prod-aws",
            "github.event.pull_request.base.sha": base,
            "github.event.before": base,
        }
        done = step(f"{workflow}/environments/List the environments").run(
            repository, context, GITHUB_OUTPUT=str(output)
        )
        assert done.returncode == 0, done.stderr
        rows = json.loads(output.read_text().removeprefix("matrix="))
        assert [row["environment"] for row in rows] == expected
        assert all(row["root"] == ("eks" if row["environment"] == "prod-aws" else "gke") for row in rows)


@pytest.mark.parametrize("before", ["", "0" * 40])
def test_without_a_commit_to_compare_with_all_are_listed(repository: Path, before: str) -> None:
    context = {"vars.ENVIRONMENTS": "prod prod-aws", "github.event.before": before, '""': ""}
    output = repository / "output"
    for workflow in ("apply", "drift"):
        output.unlink(missing_ok=True)
        done = step(f"{workflow}/environments/List the environments").run(
            repository, context, GITHUB_OUTPUT=str(output)
        )
        assert done.returncode == 0, done.stderr
        assert output.read_text().count("environment") == 2


def test_a_repository_that_deploys_nothing_does_nothing(repository: Path) -> None:
    listed = subprocess.run(
        ["scripts/pipeline/environments"],
        cwd=repository,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert listed.stdout == "[]\n"


@pytest.mark.parametrize("name", ["prdo", "local"])
def test_an_environment_without_terraform_is_refused_by_name(repository: Path, name: str) -> None:
    listed = subprocess.run(
        ["scripts/pipeline/environments"],
        cwd=repository, capture_output=True, text=True, env={"PATH": os.environ["PATH"], "ENVIRONMENTS": name},
    )  # fmt: skip
    assert listed.returncode == 2
    assert name in listed.stderr


@pytest.mark.parametrize("earlier", ["", "4711"])
def test_the_comment_is_posted_once_and_then_replaced(tmp_path: Path, fakes: Path, earlier: str) -> None:
    (tmp_path / "comment.md").write_text("<!-- specdec comment prod -->\nnews\n")
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    said = fake(fakes, "gh", f'[[ "$*" == *--paginate* ]] && echo "{earlier}" || true')
    context = {**CONTEXT, "github.event.pull_request.number": "12"}
    done = step("plan/plan/Post the comment").run(tmp_path, context, GITHUB_REPOSITORY="a/b")
    assert done.returncode == 0, done.stderr
    last = said.read_text().splitlines()[-1]
    assert "body=@comment.md" in last
    if earlier:
        assert "--method PATCH repos/a/b/issues/comments/4711" in last
    else:
        assert "--method POST repos/a/b/issues/12/comments" in last

"""Argo CD and Flux render the bytes that specdec rendered, planned and checked; GitLab runs the same make targets."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from specdec import environments, facts, helm
from workflows import ROOT, read, steps

EXAMPLES = ROOT / "examples"
CHART = facts.chart_dir()
# Scenarios that ask for no API of the cluster; those that do are rendered with options of their own.
SCENARIOS = sorted(
    file.name.removesuffix("-values.yaml")
    for file in (CHART / "ci").glob("*-values.yaml")
    if "# helm template:" not in file.read_text()
)


def template(*arguments: str, where: Path = ROOT) -> str:
    done = subprocess.run([helm.executable(), "template", *arguments], cwd=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def argo(release: str, namespace: str, files: list[str], where: Path = CHART) -> str:
    """What Argo CD's repo server runs in the chart's folder, with the version and APIs of its cluster.

    source: https://github.com/argoproj/argo-cd/blob/master/util/helm/cmd.go
    """
    values = [word for file in files for word in ("--values", file)]
    cluster = ["--kube-version", "1.33.4", "--api-versions", "v1", "--api-versions", "apps/v1"]
    options = ["--name-template", release, "--namespace", namespace, *cluster, *values, "--include-crds"]
    return template(".", *options, where=where)


def flux(release: str, namespace: str, files: list[str]) -> str:
    """What Flux does: values files are merged by the source, the chart is rendered as Helm's install does."""
    merged: dict[str, Any] = {}
    for file in files:
        merged |= yaml.safe_load((ROOT / file).read_text())
    values = yaml.safe_dump(merged)
    done = subprocess.run(
        [helm.executable(), "template", release, str(CHART), "--namespace", namespace, "--values", "-"],
        input=values, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def golden(scenario: str) -> str:
    return (CHART / "rendered" / f"{scenario}.yaml").read_text()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_argo_cd_and_flux_give_the_golden_bytes(scenario: str) -> None:
    values = f"ci/{scenario}-values.yaml"
    assert argo("speculative", "ai-inference", [values]) == golden(scenario)
    assert flux("speculative", "ai-inference", [str((CHART / values).relative_to(ROOT))]) == golden(scenario)


def rendered(name: str) -> str:
    where = environments.load(name)
    return helm.render(where.values, [], where.release, where.namespace)


def test_the_application_renders_what_was_planned() -> None:
    spec = read(EXAMPLES / "argocd/application.yaml")["spec"]
    source, options = spec["source"], spec["source"]["helm"]
    chart = ROOT / source["path"]
    assert chart == CHART
    assert argo(options["releaseName"], spec["destination"]["namespace"], options["valueFiles"], chart) == rendered(
        "prod"
    )


def test_the_helm_release_renders_what_was_planned() -> None:
    repository, release = yaml.safe_load_all((EXAMPLES / "flux/release.yaml").read_text())
    spec = release["spec"]
    chart = spec["chart"]["spec"]
    assert chart["sourceRef"]["name"] == repository["metadata"]["name"]
    assert ROOT / chart["chart"] == CHART
    assert flux(spec["releaseName"], spec["targetNamespace"], chart["valuesFiles"]) == rendered("prod")


def test_gitlab_runs_the_make_targets_that_the_workflows_run() -> None:
    document = read(EXAMPLES / "gitlab/.gitlab-ci.yml")

    def targets(job: str) -> list[str]:
        words = [word for word in document[job]["script"] if isinstance(word, str)]
        return [match[1] for word in words if (match := re.match(r"make ([\w-]+)", word))]

    theirs = {
        job: [m for one in steps() if (one.workflow, one.job) == job for m in re.findall(r"make ([a-z-]+)", one.script)]
        for job in [("plan", "plan"), ("apply", "apply"), ("drift", "drift"), ("test", "test")]
    }
    for (_, job), expected in theirs.items():
        assert targets(job) == expected
    assert document["apply"]["resource_group"] == "$ENV"
    assert document["apply"]["rules"][0]["when"] == "manual"
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {name for job in ("plan", "apply", "drift", "test") for name in targets(job)} <= known
    stages = document["stages"]
    assert all(document[job]["stage"] in stages for job in ("test", "plan", "apply", "drift"))


def test_examples_name_environments_and_files_that_exist() -> None:
    for file in EXAMPLES.rglob("*.y*ml"):
        for path in re.findall(r"(?:\.\./)*(environments/[\w./-]+\.yaml)", file.read_text()):
            assert (ROOT / path).is_file(), f"{file} names {path}"


def test_gitlabs_login_writes_credentials_without_a_key(tmp_path: Path) -> None:
    token, credentials = read(EXAMPLES / "gitlab/.gitlab-ci.yml")[".login"]
    variables = {
        "GCP_TOKEN": "a-token",
        "GCP_WORKLOAD_IDENTITY_PROVIDER": "projects/1/locations/global/workloadIdentityPools/ci/providers/gitlab",
        "GCP_SERVICE_ACCOUNT": "plan@example.iam.gserviceaccount.com",
        "CI_PROJECT_DIR": str(tmp_path),
        "GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "credentials.json"),
    }
    done = subprocess.run(["bash", "-euc", f"{token}\n{credentials}"], cwd=tmp_path, env=os.environ | variables)
    assert done.returncode == 0
    made = json.loads((tmp_path / "credentials.json").read_text())
    assert made["type"] == "external_account"
    assert made["audience"].endswith("providers/gitlab")
    assert "plan@example" in made["service_account_impersonation_url"]
    assert Path(made["credential_source"]["file"]).read_text() == "a-token"
    assert "private_key" not in made

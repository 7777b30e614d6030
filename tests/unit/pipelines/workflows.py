"""The steps of the workflows, as a test can run them: expressions get values, the shell is bash as on a runner."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
WORKFLOWS = ROOT / ".github/workflows"
EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")


@dataclass(frozen=True)
class Step:
    """A `run:` step; `environment` holds the workflow's, job's and its own variables, with expressions in them."""

    workflow: str
    job: str
    name: str
    script: str
    environment: dict[str, str]

    def __str__(self) -> str:
        return f"{self.workflow}/{self.job}/{self.name}"

    def run(self, where: Path, context: dict[str, str], **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs it as GitHub does: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax."""
        own = {key: fill(value, context) for key, value in self.environment.items()}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", self.script],
            cwd=where,
            env={**os.environ, **own, **variables},
            capture_output=True,
            text=True,
        )


def fill(text: str, context: dict[str, str]) -> str:
    """Expressions by what the context says of them. Raises KeyError for one that it lacks."""
    return EXPRESSION.sub(lambda match: context[match[1]], text)


def read(file: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(file.read_text()))


def steps() -> list[Step]:
    """Every `run:` step of every workflow."""
    found = []
    for file in sorted(WORKFLOWS.glob("*.yml")):
        document = read(file)
        for job, body in document["jobs"].items():
            for step in body["steps"]:
                if "run" in step:
                    variables = {**document.get("env", {}), **body.get("env", {}), **step.get("env", {})}
                    name = step.get("name", step["run"])
                    found.append(Step(file.stem, job, name, step["run"], {k: str(v) for k, v in variables.items()}))
    return found

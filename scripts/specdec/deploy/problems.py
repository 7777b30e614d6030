"""What preflight finds: each problem with its place and what would be right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from specdec.deploy.cluster import ApiError, Cluster, Object
from specdec.errors import SpecdecError


@dataclass(frozen=True)
class Problem:
    """`level`: an error stops the deploy, a warning is shown."""

    level: Literal["error", "warning"]
    code: str
    where: str
    message: str
    fix: str | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" + (f" (fix: {self.fix})" if self.fix else "")


def error(code: str, where: str, message: str, fix: str | None = None) -> Problem:
    """A problem that stops the deploy."""
    return Problem("error", code, where, message, fix)


class PreflightFailed(SpecdecError):
    """Everything that was found, at once. Nothing was applied."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        errors = [problem for problem in problems if problem.level == "error"]
        lines = "\n".join(f"  - {problem}" for problem in errors)
        plural = "problem" if len(errors) == 1 else "problems"
        super().__init__(f"{len(errors)} {plural}; nothing was applied\n{lines}", code="preflight")
        self.problems = list(problems)

    def as_dict(self) -> dict[str, Any]:
        return {**super().as_dict(), "problems": [asdict(problem) for problem in self.problems]}


def asked(cluster: Cluster, path: str, what: str, problems: list[Problem]) -> list[Object] | None:
    """A list from the API, or None with a warning where this user may not see it."""
    try:
        return cluster.items(path)
    except ApiError as error:
        if error.status != 403:
            raise
        problems.append(Problem("warning", "not-checked", what, "not checked: no right to list them"))
        return None

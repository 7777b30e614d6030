"""Setups of the planner, from plain words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from specdec import facts
from specdec.cli import main
from specdec.plan import catalogue
from specdec.plan.models import Model
from specdec.plan.setup import Accelerator, Setup, build
from specdec.plan.speculation import make_speculation


@pytest.fixture
def model() -> Callable[[str], Model]:
    return catalogue.load


@pytest.fixture
def gpu() -> Callable[..., Accelerator]:
    def make(key: str = "h100-80gb", gib: float | None = None) -> Accelerator:
        row = dict(facts.accelerators()[key])
        return Accelerator.of(key, row | ({"memoryGiB": gib} if gib else {}))

    return make


@pytest.fixture
def setup(gpu: Callable[..., Accelerator]) -> Callable[..., Setup]:
    """setup("Llama-3.1-8B-Instruct", method="eagle3", draft=..., k=3, tp=1, ...)"""

    def make(
        target: str,
        *,
        method: str | None = None,
        draft: str | None = None,
        k: int = 3,
        draft_tp: int | None = None,
        key: str = "h100-80gb",
        gib: float | None = None,
        version: str = "0.32.0",
        runner: str = "v1",
        **rest: Any,
    ) -> Setup:
        the_target = catalogue.load(target)
        spec = make_speculation(method, the_target, k=k, draft_name=draft, draft_tp=draft_tp)[0] if method else None
        return build(the_target, gpu(key, gib), version=version, runner=runner, speculation=spec, **rest)

    return make


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """run("plan", "prod") is (exit code, standard output, standard error)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
        out, err = capsys.readouterr()
        return int(stop.value.code or 0), out, err

    return call

"""One module a subcommand. A module's imports stay light; what is heavy is imported where it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specdec.commands.accelerators import accelerators
from specdec.commands.bench import bench
from specdec.commands.comment import comment
from specdec.commands.deploy import deploy
from specdec.commands.destroy import destroy
from specdec.commands.diff import diff
from specdec.commands.drift import drift
from specdec.commands.init import init
from specdec.commands.migrate import migrate
from specdec.commands.models import models
from specdec.commands.package import package
from specdec.commands.plan import plan
from specdec.commands.plan_check import plan_check
from specdec.commands.render import render
from specdec.commands.rules import rules
from specdec.commands.smoke import smoke
from specdec.commands.speed import speed
from specdec.commands.status import status
from specdec.commands.validate import validate

COMMANDS: list[Callable[..., Any]] = [
    accelerators,
    bench,
    comment,
    deploy,
    destroy,
    diff,
    drift,
    init,
    migrate,
    models,
    package,
    plan,
    plan_check,
    render,
    rules,
    smoke,
    speed,
    status,
    validate,
]

"""One module a subcommand. A module's imports stay light; what is heavy is imported where it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specdec.commands.plan import plan

COMMANDS: list[Callable[..., Any]] = [plan]

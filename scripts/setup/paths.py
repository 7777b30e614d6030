"""Where things are in a checkout."""

from __future__ import annotations

import os
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
HOME = REPO / ".tools"
BIN = HOME / "bin"
REQUIREMENTS = REPO / "requirements"
MODULES = REPO / "scripts" / "tools"


def outside_path() -> str:
    """PATH without what set-up itself made, so that a tool of the machine is told from one of ours."""
    ours = {str(BIN), str(REPO / ".venv" / "bin")}
    return os.pathsep.join(part for part in os.environ.get("PATH", "").split(os.pathsep) if part not in ours)

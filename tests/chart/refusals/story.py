"""What a story of a refusal holds."""

from __future__ import annotations

from typing import Any

# (bad values, (code, path, a part of the message), nearest good values)
Story = tuple[dict[str, Any], tuple[str, str, str], dict[str, Any]]

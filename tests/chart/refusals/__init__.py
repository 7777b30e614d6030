"""Values that cannot work, by story, with what is said of them and the nearest that work."""

from __future__ import annotations

from . import lora, pods, speculation, versions
from .story import Story

BAD: dict[str, Story] = versions.BAD | lora.BAD | speculation.BAD | pods.BAD

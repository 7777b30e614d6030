"""The local environment's cluster, images and models: made by `specdec.local`, ready for a deploy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from specdec.environments import Environment


@dataclass(frozen=True)
class Ready:
    """Where the cluster is, and values that only this machine knows (where the models lie)."""

    kubeconfig: Path | None
    context: str | None
    values: list[Path]


def ensure(env: Environment, report: Callable[[str], None]) -> Ready:
    """Cluster, images and models are there after this; what is there already is left as it is."""
    from specdec import local

    where = local.ensure(env, report)
    local.images(report)
    local.models(report)
    values = local.values()
    path = Path(where)
    return Ready(path if path.is_file() else None, None if path.is_file() else str(where), [values] if values else [])


def running(env: Environment) -> Ready:
    """Where the local cluster is, without starting anything."""
    from specdec import local

    where = local.find(env)
    path = Path(where)
    return Ready(path if path.is_file() else None, None if path.is_file() else str(where), [])


def is_ours(env: Environment) -> bool:
    """Whether this machine made the cluster; one that the user named stays when the environment goes."""
    from specdec import local

    return local.named(env) is None


def down(report: Callable[[str], None]) -> None:
    """Take the local cluster away, with all that it left on the machine."""
    from specdec import local

    local.down(report)

"""An environment is a folder in `environments/`: its values, and where its release goes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from specdec.errors import SpecdecError, unknown

DEFAULT_RELEASE = "speculative"
DEFAULT_NAMESPACE = "ai-inference"


@dataclass(frozen=True)
class Environment:
    """What `ENV` on the command line stands for.

    values       the values files, later ones win
    kubecontext  the context in the kubeconfig that it is deployed to, None for the current one
    """

    name: str
    directory: Path
    values: list[Path]
    release: str
    namespace: str
    kubecontext: str | None

    @classmethod
    def named(
        cls,
        name: str,
        release: str | None = None,
        namespace: str | None = None,
        kubecontext: str | None = None,
    ) -> Environment:
        """Raises SpecdecError for a name without a folder, or a folder without values."""
        root = environments_dir()
        if name not in names():
            raise unknown("environment", name, names())
        values = root / name / "values.yaml"
        if not values.is_file():
            raise SpecdecError("the environment has no values.yaml", code="values-missing", file=str(values))
        return cls(
            name=name,
            directory=root / name,
            values=[values],
            release=release or os.environ.get("RELEASE") or DEFAULT_RELEASE,
            namespace=namespace or os.environ.get("NAMESPACE") or DEFAULT_NAMESPACE,
            kubecontext=kubecontext or os.environ.get("KUBECONTEXT") or None,
        )

    @classmethod
    def of_files(cls, values: list[Path], release: str | None = None, namespace: str | None = None) -> Environment:
        """An environment without a folder: `--values FILE...`. Raises SpecdecError for a file that cannot be read."""
        for file in values:
            if not file.is_file():
                raise SpecdecError("no such file", code="values-missing", file=str(file))
        return cls(
            name=values[-1].stem if values else "defaults",
            directory=values[-1].parent if values else Path(),
            values=list(values),
            release=release or os.environ.get("RELEASE") or DEFAULT_RELEASE,
            namespace=namespace or os.environ.get("NAMESPACE") or DEFAULT_NAMESPACE,
            kubecontext=os.environ.get("KUBECONTEXT") or None,
        )


def environments_dir() -> Path:
    """`SPECDEC_ENVIRONMENTS` where set, else the repository's."""
    configured = os.environ.get("SPECDEC_ENVIRONMENTS")
    return Path(configured) if configured else Path(__file__).resolve().parents[2] / "environments"


def names() -> list[str]:
    root = environments_dir()
    if not root.is_dir():
        raise SpecdecError("no environments here", code="environments-missing", file=str(root))
    return sorted(entry.name for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def load(name: str, release: str | None = None, namespace: str | None = None) -> Environment:
    """The environment of that name; raises SpecdecError with the nearest name when there is none."""
    return Environment.named(name, release, namespace)


def choose(
    name: str | None, values: list[Path] | None, release: str | None = None, namespace: str | None = None
) -> Environment:
    """What a command was given: `ENV`, `--values FILE...`, or both (the files then come on top)."""
    if name is None:
        if not values:
            raise SpecdecError("name an environment or --values FILE", code="usage", fix=f"one of {', '.join(names())}")
        return Environment.of_files(values, release, namespace)
    environment = Environment.named(name, release, namespace)
    extra = Environment.of_files(values or []).values
    return Environment(
        environment.name,
        environment.directory,
        environment.values + extra,
        environment.release,
        environment.namespace,
        environment.kubecontext,
    )

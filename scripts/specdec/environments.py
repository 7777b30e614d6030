"""An environment is a folder in `environments/`: its values, and where its release goes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from specdec.errors import SpecdecError, unknown

DEFAULT_RELEASE = "speculative"
DEFAULT_NAMESPACE = "ai-inference"
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
# Helm keeps ten characters of a label for what it adds: https://helm.sh/docs/chart_template_guide/builtin_objects/
LONGEST_LABEL, LONGEST_RELEASE = 63, 53


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
            release=_named("release", release, DEFAULT_RELEASE, LONGEST_RELEASE),
            namespace=_named("namespace", namespace, DEFAULT_NAMESPACE, LONGEST_LABEL),
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
            release=_named("release", release, DEFAULT_RELEASE, LONGEST_RELEASE),
            namespace=_named("namespace", namespace, DEFAULT_NAMESPACE, LONGEST_LABEL),
            kubecontext=os.environ.get("KUBECONTEXT") or None,
        )


def _named(what: str, given: str | None, default: str, longest: int) -> str:
    """The option, else the variable of the same name, else the default. Raises SpecdecError where Kubernetes would
    refuse the name: an RFC 1123 label, https://kubernetes.io/docs/concepts/overview/working-with-objects/names/."""
    variable = os.environ.get(what.upper())
    name = given if given is not None else variable or default
    if LABEL.fullmatch(name) and len(name) <= longest:
        return name
    meant = re.sub(r"[^a-z0-9-]+", "-", name.lower())[:longest].strip("-")
    rule = f"letters a to z, digits and hyphens, with a letter or digit at both ends, {longest} characters at most"
    raise SpecdecError(
        f"{name!r} is no name of a {what}: {rule}",
        code=f"bad-{what}",
        path=f"--{what}" if given is not None else what.upper(),
        fix=f"for example {meant}" if meant else f"for example {default}",
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

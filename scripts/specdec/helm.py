"""Helm, through pyhelm3: the chart rendered, installed, rolled back. Its errors become ours (`helm_errors`)."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from specdec import facts
from specdec.duplicates import refuse
from specdec.environments import DEFAULT_NAMESPACE, DEFAULT_RELEASE, Environment
from specdec.errors import SpecdecError
from specdec.helm_errors import explain


def executable() -> str:
    """The helm binary: `.tools/bin` of the repository first, then PATH. Raises SpecdecError when there is none."""
    own = Path(__file__).resolve().parents[2] / ".tools" / "bin" / "helm"
    found = str(own) if os.access(own, os.X_OK) else shutil.which("helm")
    if found is None:
        raise SpecdecError("helm is not on PATH", code="helm-missing", fix="make setup, or install Helm 3.14 or newer")
    return found


def render(
    values: Sequence[Path] = (),
    set_values: Sequence[str] = (),
    release: str = DEFAULT_RELEASE,
    namespace: str = DEFAULT_NAMESPACE,
    kube_version: str | None = None,
    api_versions: Iterable[str] = (),
    chart: Path | None = None,
    is_upgrade: bool = False,
) -> str:
    """The manifests as YAML documents, `# Source:` comments kept. No cluster is asked.

    Raises SpecdecError with the chart's own code and message, the value's path, and the nearest known key.
    """
    arguments = ["template", release, str(chart or facts.chart_dir()), "--namespace", namespace]
    arguments += _values(values, set_values)
    if kube_version:
        arguments += ["--kube-version", kube_version]
    for api_version in api_versions:
        arguments += ["--api-versions", api_version]
    if is_upgrade:
        arguments.append("--is-upgrade")
    return _run(arguments, values=values, set_values=set_values)


def install_or_upgrade(
    environment: Environment,
    set_values: Sequence[str] = (),
    *,
    values: Sequence[Path] | None = None,
    extra_values: Sequence[Path] = (),
    wait: bool = False,
    timeout: str = "5m",
    create_namespace: bool = False,
    description: str | None = None,
    dry_run: str | None = None,
    kubeconfig: Path | None = None,
    chart: Path | None = None,
) -> dict[str, Any]:
    """Helm's release as a mapping (name, info.status, version, manifest).

    values      instead of the environment's; extra_values come on top
    timeout     Helm's duration, "5m"; matters with wait alone
    dry_run     "client" or "server"
    """
    files = [*(environment.values if values is None else values), *extra_values]
    arguments = ["upgrade", environment.release, str(chart or facts.chart_dir()), "--install", "--output", "json"]
    arguments += ["--namespace", environment.namespace, "--timeout", timeout, *_values(files, set_values)]
    if create_namespace:
        arguments.append("--create-namespace")
    if description:
        arguments += ["--description", description]
    if wait:
        arguments.append("--wait")
    if dry_run:
        arguments.append(f"--dry-run={dry_run}")
    output = _run(arguments, environment.kubecontext, kubeconfig, files, set_values)
    # Some versions of Helm 4 print lines about the chart before the document.
    return _document(output[max(output.find("{"), 0) :])


def release_status(
    release: str,
    namespace: str,
    kubecontext: str | None = None,
    kubeconfig: Path | None = None,
    revision: int | None = None,
) -> dict[str, Any] | None:
    """Helm's release as a mapping, None when there is none."""
    arguments = ["status", release, "--namespace", namespace, "--output", "json"]
    arguments += ["--revision", str(revision)] if revision else []
    try:
        return _document(_run(arguments, kubecontext, kubeconfig))
    except SpecdecError as error:
        if error.code == "release-not-found":
            return None
        raise


def manifest(
    release: str,
    namespace: str,
    kubecontext: str | None = None,
    kubeconfig: Path | None = None,
    revision: int | None = None,
) -> str | None:
    """The manifests of a deployed release as YAML, None when there is no such release."""
    arguments = ["get", "manifest", release, "--namespace", namespace]
    arguments += ["--revision", str(revision)] if revision else []
    try:
        return _run(arguments, kubecontext, kubeconfig)
    except SpecdecError as error:
        if error.code == "release-not-found":
            return None
        raise


def history(
    release: str, namespace: str, kubecontext: str | None = None, kubeconfig: Path | None = None
) -> list[dict[str, Any]]:
    """The release's revisions, oldest first (revision, updated, status, chart, app_version, description)."""
    arguments = ["history", release, "--namespace", namespace, "--output", "json"]
    try:
        revisions = json.loads(_run(arguments, kubecontext, kubeconfig))
    except SpecdecError as error:
        if error.code == "release-not-found":
            return []
        raise
    return list(revisions)


def rollback(
    release: str,
    namespace: str,
    revision: int | None = None,
    kubecontext: str | None = None,
    kubeconfig: Path | None = None,
    wait: bool = False,
    timeout: str = "5m",
) -> None:
    """To `revision`, or to the one before the current."""
    arguments = ["rollback", release, *([str(revision)] if revision else []), "--namespace", namespace]
    arguments += ["--timeout", timeout, *(["--wait"] if wait else [])]
    _run(arguments, kubecontext, kubeconfig)


def uninstall(
    release: str,
    namespace: str,
    kubecontext: str | None = None,
    kubeconfig: Path | None = None,
    wait: bool = False,
    timeout: str = "5m",
) -> bool:
    """Whether there was a release to remove."""
    arguments = ["uninstall", release, "--namespace", namespace, "--timeout", timeout, *(["--wait"] if wait else [])]
    try:
        _run(arguments, kubecontext, kubeconfig)
    except SpecdecError as error:
        if error.code == "release-not-found":
            return False
        raise
    return True


@cache
def version() -> str:
    """For example "v4.3.1"."""
    return _run(["version", "--template", "{{ .Version }}"]).strip()


def _values(files: Sequence[Path], set_values: Sequence[str]) -> list[str]:
    refuse(files)
    arguments: list[str] = []
    for file in files:
        arguments += ["--values", str(file)]
    for item in set_values:
        arguments += ["--set", item]
    return arguments


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise SpecdecError(f"Helm did not answer with JSON: {text[:200]!r}", code="helm-failed") from error
    return document if isinstance(document, dict) else {}


def _run(
    arguments: list[str],
    kubecontext: str | None = None,
    kubeconfig: Path | None = None,
    values: Sequence[Path] = (),
    set_values: Sequence[str] = (),
) -> str:
    """Helm's standard output. Raises SpecdecError with what its standard error means."""
    import pyhelm3

    # It logs whole command lines, --set values included.
    logging.getLogger("pyhelm3").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="specdec-helm-") as scratch:
        command = pyhelm3.Command(executable=executable(), kubecontext=kubecontext, kubeconfig=kubeconfig)
        # Helm makes its cache folders wherever HOME is, which may be read-only in CI.
        if not os.access(os.environ.get("HOME", "/nonexistent"), os.W_OK):
            for variable in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"):
                os.environ.setdefault(variable, scratch)
        try:
            output: bytes = asyncio.run(command.run(arguments))
        except pyhelm3.errors.Error as error:
            raise explain(error.stderr.decode(errors="replace"), values, set_values) from None
    return output.decode()

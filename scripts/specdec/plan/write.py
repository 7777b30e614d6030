"""Writes the chosen K or schedule into a values file; comments and order stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specdec.errors import SpecdecError


def write_choice(file: Path, doc: dict[str, Any]) -> None:
    """speculative.numTokens, and speculative.schedule where one gains more than 2 % over the static K somewhere.

    Raises SpecdecError where there is nothing to write, or the file is no values file.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    tokens = doc["num_speculative_tokens"]
    if not tokens["static"]:
        raise SpecdecError(
            "no K pays at this load: there is nothing to write",
            code="nothing-to-write",
            file=str(file),
            fix="speculative.enabled: false",
        )
    yaml = YAML()
    yaml.preserve_quotes = True
    try:
        values = yaml.load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (YAMLError, UnicodeDecodeError) as error:
        raise SpecdecError(f"not readable as YAML: {error}", code="values-broken", file=str(file)) from error
    values = {} if values is None else values
    if not isinstance(values, dict):
        raise SpecdecError("has to be a mapping", code="values-broken", file=str(file))
    speculative = values.setdefault("speculative", {})
    speculative["numTokens"] = (
        max([tokens["static"], *(r["tokens"] for r in tokens["schedule"])]) if gains(doc) else tokens["static"]
    )
    if gains(doc):
        speculative["schedule"] = [dict(r) for r in tokens["schedule"]]
    elif "schedule" in speculative:
        del speculative["schedule"]
    with file.open("w", encoding="utf-8") as stream:
        yaml.dump(values, stream)


def gains(doc: dict[str, Any]) -> bool:
    static = {r["batch"]: r["tpot_ms"] for r in doc["curve"] if r["arm"] == "static"}
    return any(r["arm"] == "schedule" and r["tpot_ms"] < 0.98 * static[r["batch"]] for r in doc["curve"])

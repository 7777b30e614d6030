"""Configurations of models that an environment brings along: `environments/ENV/models/NAME/config.json`."""

from __future__ import annotations

from pathlib import Path

from specdec import environments

FOLDER = "models"


def beside(what: list[str]) -> dict[str, Path]:
    """Folders with a config.json, by what values call the model: NAME, and /models/NAME for a path in the pod.

    `what` is what a command was given; empty where that is not one environment.
    """
    if len(what) != 1 or what[0] not in environments.names():
        return {}
    top = environments.environments_dir() / what[0] / FOLDER
    folders = [file.parent for file in sorted(top.rglob("config.json"))]
    names = {folder.relative_to(top).as_posix(): folder for folder in folders}
    return names | {f"/models/{name}": folder for name, folder in names.items()}

"""The engine's and the router's images, out of the folders that scripts/setup makes."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path
from typing import Any

from specdec import local
from specdec.errors import SpecdecError
from specdec.local.containerd import Containerd, ContainerdError, Image, Layer, add_file, image_files

BUILT = local.TOOLS / "images"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def layer(folder: str, *steps: str) -> Layer:
    """A folder that set-up made, named by the stamps of the steps that made it."""
    try:
        stamps = [(local.TOOLS / "stamp" / f"image-{step}").read_text() for step in steps or (folder,)]
    except OSError as error:
        raise SpecdecError(
            f"the image layer {folder} is not built", code="no-image", fix="run python3 scripts/setup cluster"
        ) from error
    return Layer(" ".join(stamps), BUILT / folder)


def config(*entrypoint: str) -> dict[str, Any]:
    return {"User": "2000:2000", "Env": [PATH, "HOME=/tmp", "LANG=C.UTF-8"], "Entrypoint": list(entrypoint)}


def engine() -> Image:
    layers = (layer("base"), layer("engine", "engine", "engine-warm"))
    return Image(local.ENGINE_IMAGE, layers, config("vllm", "serve"))


def router() -> Image:
    return Image(local.ROUTER_IMAGE, (layer("base"), layer("router")), config("vllm-router"))


def load(report: local.Report) -> None:
    """Into the embedded cluster's containerd, or into kind. Images that are there already stay."""
    if not local.kubeconfig().exists():
        from specdec.local import kind

        for image in (engine(), router()):
            kind.load(image, report)
        return
    containerd = Containerd(local.state_dir() / "run" / "containerd.sock")
    try:
        for image in (engine(), router()):
            if containerd.load(image):
                report(f"image {image.name}")
    except ContainerdError as error:
        raise SpecdecError(
            str(error), code="containerd", fix="see log/containerd.log in the cluster's state, then repeat"
        ) from error


def write_archive(image: Image, file: Path) -> None:
    """The image as `docker save` writes it, with its files packed: for kind, which takes nothing else."""
    packed = file.with_suffix(".layer")
    with tarfile.open(packed, "w") as tar:
        for part in image.layers:
            tar.add(part.folder, arcname=".")
    with packed.open("rb") as data:
        content = hashlib.file_digest(data, "sha256").hexdigest()
    with tarfile.open(file, "w") as tar:
        for name, text in image_files(image.name, image.config, [f"sha256:{content}"], ["layer.tar"]).items():
            add_file(tar, name, text)
        tar.add(packed, arcname="layer.tar")
    packed.unlink()

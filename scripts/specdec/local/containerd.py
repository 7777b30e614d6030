"""Gives folders to containerd as the layers of an image, without packing them. Standard library only.

Packing 6 GB of layers, importing the archive and unpacking it again writes every byte three times. Here the layer's
files go into containerd's snapshot as hard links, and what is imported is an image whose layer archives hold a name
alone: containerd finds the snapshots of these layers already there and unpacks nothing.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAMESPACE = "k8s.io"  # where the kubelet looks
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class ContainerdError(Exception):
    """ctr failed; the message says with what."""


@dataclass(frozen=True)
class Layer:
    """A folder, and a name that changes when its files do."""

    name: str
    folder: Path

    def archive(self) -> bytes:
        """What stands for the layer in the image: one file that names it."""
        return tar_of({f"etc/image-layers/{hashlib.sha256(self.name.encode()).hexdigest()[:16]}": self.name.encode()})


@dataclass(frozen=True)
class Image:
    """name: what a pod asks for. config: the OCI image's `config` object (Entrypoint, Env, User...)."""

    name: str
    layers: tuple[Layer, ...]
    config: dict[str, Any]


def add_file(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    """A file without owner and time, so that the same files give the same archive."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o644
    tar.addfile(info, io.BytesIO(data))


def tar_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            add_file(tar, name, data)
    return buffer.getvalue()


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def chain_ids(diff_ids: list[str]) -> list[str]:
    """The names of the snapshots of a stack of layers (OCI image specification, "Layer ChainID")."""
    chain: list[str] = []
    for diff_id in diff_ids:
        chain.append(digest(f"{chain[-1]} {diff_id}".encode()) if chain else diff_id)
    return chain


def image_files(name: str, config: dict[str, Any], diff_ids: list[str], layers: list[str]) -> dict[str, bytes]:
    """What stands beside the layers in an image archive as `docker save` writes it."""
    document = {
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
    }
    text = json.dumps(document, sort_keys=True).encode()
    file = f"{hashlib.sha256(text).hexdigest()}.json"
    manifest = [{"Config": file, "RepoTags": [name], "Layers": layers}]
    return {file: text, "manifest.json": json.dumps(manifest).encode()}


def image_archive(image: Image) -> bytes:
    """The image with the archives that stand for its layers."""
    archives = {f"{index}.tar": layer.archive() for index, layer in enumerate(image.layers)}
    files = image_files(image.name, image.config, [digest(data) for data in archives.values()], list(archives))
    return tar_of({**files, **archives})


class Containerd:
    """One containerd, by its socket. Needs root."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket

    def ctr(self, *arguments: str, data: bytes | None = None) -> str:
        command = ["ctr", "--address", str(self.socket), "--namespace", NAMESPACE, *arguments]
        done = subprocess.run(command, input=data, capture_output=True, check=False)
        if done.returncode:
            raise ContainerdError(f"ctr {' '.join(arguments[:3])}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode()

    def has_snapshot(self, name: str) -> bool:
        try:
            return bool(self.ctr("snapshots", "info", name))
        except ContainerdError:
            return False

    def images(self) -> set[str]:
        return set(self.ctr("images", "list", "--quiet").split())

    def load(self, image: Image) -> bool:
        """Makes the image available to pods. False when exactly this image was there already."""
        archive = image_archive(image)
        label, mark = "vllm-speculative/archive", hashlib.sha256(archive).hexdigest()[:32]
        if self.ctr("images", "list", "--quiet", f'name=="{image.name}",labels."{label}"=={mark}').strip():
            return False
        parent = ""
        for layer, name in zip(
            image.layers, chain_ids([digest(layer.archive()) for layer in image.layers]), strict=True
        ):
            if not self.has_snapshot(name):
                self._fill(name, parent, layer.folder)
            parent = name
        self.ctr("images", "import", "-", data=archive)
        self.ctr("images", "label", image.name, f"{label}={mark}")
        return True

    def _fill(self, name: str, parent: str, folder: Path) -> None:
        key = f"fill-{name[-12:]}-{os.getpid()}-{time.monotonic_ns()}"
        self.ctr("snapshots", "prepare", key, *([parent] if parent else []))
        try:
            copy_tree(folder, snapshot_folder(self.ctr("snapshots", "mounts", "/nowhere", key)))
            self.ctr("snapshots", "commit", name, key)
        except BaseException:
            subprocess.run(
                ["ctr", "-a", str(self.socket), "-n", NAMESPACE, "snapshots", "remove", key],
                check=False,
                capture_output=True,
            )
            raise


def snapshot_folder(mounts: str) -> Path:
    """Where a prepared snapshot's own files lie, out of the mount command that ctr prints for it."""
    overlay = re.search(r"upperdir=([^,\s]+)", mounts)
    bind = re.search(r"mount -t bind (\S+)", mounts)
    found = overlay or bind
    if not found:
        raise ContainerdError(f"containerd's snapshotter is not overlayfs: {mounts.strip()}")
    return Path(found.group(1))


def copy_tree(source: Path, target: Path) -> None:
    """Hard links where both are on one file system, copies elsewhere.

    A container sees the files below an overlay: what it writes is copied up first and never reaches the source.
    """
    link = source.stat().st_dev == target.stat().st_dev
    words = ["cp", "-a", *(["-l"] if link else ["--reflink=auto"]), "--no-target-directory", str(source), str(target)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ContainerdError(f"cannot fill the snapshot: {done.stderr.strip()[-300:]}")


def main(arguments: list[str]) -> int:
    """usage: python3 -m specdec.local.containerd SOCKET NAME FOLDER [ENTRYPOINT...]   (for the cluster's own images)"""
    socket, name, folder, *entrypoint = arguments
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    content = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    layer = Layer(f"{name} {content}", Path(folder))
    try:
        Containerd(Path(socket)).load(Image(name, (layer,), {"Entrypoint": entrypoint}))
    except ContainerdError as error:
        sys.exit(str(error))
    return 0


if __name__ == "__main__":
    if not shutil.which("ctr"):
        sys.exit("ctr is missing")
    sys.exit(main(sys.argv[1:]))

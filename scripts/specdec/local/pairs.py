"""The pair of models: built once in .tools/models, and put where the local cluster's pods find it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import time
from pathlib import Path

from specdec import local
from specdec.errors import SpecdecError
from specdec.local.containerd import copy_tree

HERE = Path(__file__).parent
INPUTS = (HERE / "pair.py", HERE / "corpus.txt", local.REPO / "requirements" / "engine.txt")


def stamp() -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in INPUTS)).hexdigest()


def build(report: local.Report) -> Path:
    """Trains and saves the pair unless it is there. The folder holds target, draft and draft-never."""
    place, made = local.models_on_host(), local.TOOLS / "models.part"
    mark = place / "stamp"
    if mark.is_file() and mark.read_text() == stamp():
        return place
    python = local.TOOLS / "engine" / "bin" / "python"
    if not python.exists():
        raise SpecdecError("the engine is not installed", code="no-engine", fix="run python3 scripts/setup engine")
    report("training the pair of models (about a minute)")
    started = time.monotonic()
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    log = local.TOOLS / "log" / "models.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        done = subprocess.run([python, HERE / "pair.py", made], stdout=output, stderr=output, check=False)
    if done.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
        raise SpecdecError(f"building the models failed:\n{tail}", code="models", fix=f"see {log}")
    (made / "stamp").write_text(stamp())
    shutil.rmtree(place, ignore_errors=True)
    made.rename(place)
    report(f"models built in {time.monotonic() - started:.0f} s")
    return place


def provide(report: local.Report) -> None:
    """Puts the pair into the embedded cluster's state; kind mounts the folder itself."""
    built = build(report)
    place = local.state_dir() / "models"
    if not local.kubeconfig().exists():
        return
    mark = place / "stamp"
    if mark.is_file() and mark.read_text() == (built / "stamp").read_text():
        return
    part = place.with_name("models.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o755)
    copy_tree(built, part)
    part.chmod(0o755)
    # Moved in file by file: pods may have the folder itself mounted.
    for entry in part.iterdir():
        old = place / entry.name
        shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
        entry.rename(old)
    part.rmdir()

"""Fetches models of the Hugging Face Hub into its cache. Arguments: repository, revision; repeated."""

import os
import pathlib
import re
import sys

from huggingface_hub import snapshot_download
from huggingface_hub.constants import HF_HUB_CACHE

# The same weights in formats that the engine does not load.
UNUSED = ["original/*", "*.pth", "*.gguf", "*.onnx", "*.h5", "*.msgpack"]

for repository, revision in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    snapshot = pathlib.Path(HF_HUB_CACHE, "models--" + repository.replace("/", "--"), "snapshots", revision)
    # A commit never changes, a branch may.
    if re.fullmatch("[0-9a-f]{40}", revision) and (snapshot / ".complete").exists():
        print(f"{repository} at {revision} is in the cache", flush=True)
        continue
    print(f"fetching {repository} at {revision}", flush=True)
    try:
        fetched = snapshot_download(repository, revision=revision, ignore_patterns=UNUSED)
        pathlib.Path(fetched, ".complete").touch()
    except PermissionError as error:
        raise SystemExit(f"{error}: the cache has to be writable by user {os.getuid()}, group {os.getgid()}") from error

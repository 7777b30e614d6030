"""Fetches models of the Hugging Face Hub. Arguments: repository, revision, directory; repeated."""
import pathlib
import re
import sys

from huggingface_hub import snapshot_download

# The same weights in formats that the engine does not load.
UNUSED = ["original/*", "*.pth", "*.gguf", "*.onnx", "*.h5", "*.msgpack"]

for repository, revision, directory in zip(*[iter(sys.argv[1:])] * 3, strict=True):
    complete = pathlib.Path(directory, ".complete")
    # A commit never changes, a branch may.
    if complete.exists() and re.fullmatch("[0-9a-f]{40}", revision):
        print(f"{repository} at {revision} is in the cache", flush=True)
        continue
    print(f"fetching {repository} at {revision}", flush=True)
    snapshot_download(repository, revision=revision, local_dir=directory, ignore_patterns=UNUSED)
    complete.touch()

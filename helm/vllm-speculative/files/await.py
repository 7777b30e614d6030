"""Waits until a prefetch Job has put models of the Hugging Face Hub into the cache. Arguments: repository, commit; repeated."""

import os
import pathlib
import sys
import time

cache = pathlib.Path(os.environ["HF_HUB_CACHE"])
for repository, revision in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    complete = cache / ("models--" + repository.replace("/", "--")) / "snapshots" / revision / ".complete"
    print(f"waiting for {repository} at {revision}", flush=True)
    while not complete.exists():
        time.sleep(5)

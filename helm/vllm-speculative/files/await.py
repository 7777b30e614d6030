"""Waits until a prefetch Job has put models of the Hub into the cache. Arguments: repository, commit; repeated."""

import os
import pathlib
import sys
import time

cache = pathlib.Path(os.environ["HF_HUB_CACHE"])
for repository, revision in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    complete = cache / ("models--" + repository.replace("/", "--")) / "snapshots" / revision / ".complete"
    said = float("-inf")
    while not complete.exists():
        if time.monotonic() - said > 300:
            print(f"waiting for {repository} at {revision}: the log of the prefetch Job says how far it is", flush=True)
            said = time.monotonic()
        time.sleep(5)
    print(f"{repository} at {revision} is there", flush=True)

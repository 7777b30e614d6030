"""Runs in the benchmark's pod: `vllm bench serve`, then its result on stdout between markers, packed for the log.

Sent as text to the engine's image, so it uses the standard library alone. The log is kept by line and by size: texts
are left out, times are in microseconds, and the rest is compressed.
"""

import base64
import gzip
import hashlib
import json
import pathlib
import subprocess
import sys

BEGIN, END = "-----BEGIN BENCH RESULT-----", "-----END BENCH RESULT----- "
FILE = "/tmp/bench-result.json"


def pack(result: dict) -> list:  # type: ignore[type-arg]
    """Lines of the log; the last holds the checksum."""
    result.pop("generated_texts", None)
    result["ttfts"] = [round(one, 6) for one in result.get("ttfts", [])]
    result["itls"] = [[round(one, 6) for one in times] for times in result.get("itls", [])]
    data = gzip.compress(json.dumps(result).encode())
    text = base64.b64encode(data).decode()
    lines = [text[place : place + 4000] for place in range(0, len(text), 4000)]
    return [BEGIN, *lines, END + hashlib.sha256(data).hexdigest()]


def main() -> int:
    words = ["vllm", "bench", "serve", *sys.argv[1:], "--result-dir", "/tmp", "--result-filename", "bench-result.json"]
    code = subprocess.run(words, check=False).returncode
    if code:
        return code
    result = json.loads(pathlib.Path(FILE).read_text(encoding="utf-8"))
    print("\n".join(pack(result)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

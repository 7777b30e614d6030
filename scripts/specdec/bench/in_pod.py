"""Runs in the benchmark's pod: `vllm bench serve`, then its result on stdout between markers, packed for the log.

Sent as text to the engine's image, so it uses the standard library and what every engine has. The log is kept by line
and by size: answers are hashed, times are in microseconds, and the rest is compressed.
"""

import base64
import gzip
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
from typing import Any

BEGIN, END = "-----BEGIN BENCH RESULT-----", "-----END BENCH RESULT----- "
FILE = "/tmp/bench-result.json"
# The revision of a tokenizer that is named as on the Hugging Face Hub.
REVISION = "BENCH_TOKENIZER_REVISION"
# A model in the Hub's cache, told by its directory.
SNAPSHOT = re.compile(r"/models--([^/]+?)--([^/]+)/snapshots/([^/]+)/?$")
WEIGHTS = ["*.safetensors", "*.bin", "*.pth", "*.pt", "*.gguf", "*.onnx", "*.h5", "*.msgpack", "original/*"]
# vLLM reads a file of prompts with pandas, which it does not require and not every image has.
LAUNCH = """
import json
import sys
try:
    from vllm.benchmarks.datasets import datasets
except ImportError:
    from vllm.benchmarks import datasets

class Row(dict):
    to_dict = dict.copy

class Rows(list):
    columns = ["prompt"]

    def iterrows(self):
        return enumerate(self)

class Reader:
    @staticmethod
    def read_json(path_or_buf, lines):
        with open(path_or_buf, encoding="utf-8") as file:
            return Rows(Row(json.loads(line)) for line in file)

try:
    import pandas
except ImportError:
    datasets.pd = Reader
from vllm.entrypoints.cli.main import main
sys.argv[0] = "vllm"
sys.exit(main())
"""


def pack(result: dict[str, Any]) -> list[str]:
    """Lines of the log; the last holds the checksum. `answers`: a hash of each text, empty where there was none."""
    texts = result.pop("generated_texts", None) or []
    result["answers"] = [hashlib.sha256(text.encode()).hexdigest()[:16] if text else "" for text in texts]
    result["ttfts"] = [round(one, 6) for one in result.get("ttfts", [])]
    result["itls"] = [[round(one, 6) for one in times] for times in result.get("itls", [])]
    data = gzip.compress(json.dumps(result).encode())
    text = base64.b64encode(data).decode()
    lines = [text[place : place + 4000] for place in range(0, len(text), 4000)]
    return [BEGIN, *lines, END + hashlib.sha256(data).hexdigest()]


def snapshot(name: str) -> str:
    """The directory of a tokenizer: a path as it is, a name of the Hub out of the cache, else fetched without weights.

    The benchmark takes no revision, and offline finds a model by name only where its main branch was fetched.
    """
    revision = os.environ.get(REVISION) or None
    if pathlib.Path(name).is_absolute():
        told = SNAPSHOT.search(name)
        if told is None or pathlib.Path(name).exists():
            return name
        name, revision = f"{told[1]}/{told[2]}", told[3]
    from huggingface_hub import snapshot_download

    try:
        return str(snapshot_download(name, revision=revision, local_files_only=True))
    except OSError:
        print(f"fetching the tokenizer of {name}", flush=True)
        return str(snapshot_download(name, revision=revision, ignore_patterns=WEIGHTS))


def main() -> int:
    # As process 1 it would ignore the request to end, and load the engine until it is killed.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    words = sys.argv[1:]
    place = words.index("--tokenizer") + 1
    words[place] = snapshot(words[place])
    # By module: not every image has `vllm` on its path.
    command = [sys.executable, "-c", LAUNCH, "bench", "serve", *words]
    command += ["--result-dir", "/tmp", "--result-filename", pathlib.Path(FILE).name]
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    code = subprocess.run(command, check=False, env={**os.environ, **offline}).returncode
    if code:
        return code
    result = json.loads(pathlib.Path(FILE).read_text(encoding="utf-8"))
    print("\n".join(pack(result)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

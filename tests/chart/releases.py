"""What is known of vLLM's releases apart from the tables, for tests of both.

surfaces.json lists the releases and says for sixteen of them which flags, fields and method names their sources define
("1" where a version has the name), read by another program than the tables were.
"""

from __future__ import annotations

import json
from pathlib import Path

from specdec.facts import version_key

READ = json.loads(Path(__file__).with_name("surfaces.json").read_text())
RELEASES = READ["releases"]
# First and last release of each stretch that runs the method.
RUNS = {
    "draft_model": [("0.6.3", "0.9.2"), ("0.15.0", "0.33.0")],
    "eagle": [("0.6.3", "0.33.0")],
    "eagle3": [("0.9.0", "0.33.0")],
    "medusa": [("0.6.3", "0.32.0")],
    "mlp_speculator": [("0.6.3", "0.9.2")],
    "mtp": [("0.7.3", "0.33.0")],
    "ngram": [("0.6.3", "0.33.0")],
    "ngram_gpu": [("0.18.0", "0.33.0")],
    "suffix": [("0.11.1", "0.33.0")],
    "dflash": [("0.20.0", "0.33.0")],
    "dspark": [("0.25.0", "0.33.0")],
}


def at_least(version: str, bound: str) -> bool:
    return version_key(version) >= version_key(bound)


def runs(method: str, version: str) -> bool:
    return any(at_least(version, first) and at_least(last, version) for first, last in RUNS[method])


def has(part: str, name: str, version: str) -> bool:
    return READ[part].get(name, "0" * 16)[READ["versions"].index(version)] == "1"

"""How long `specdec validate` takes on a thousand documents, start of the program included.

    python benchmarks/validate.py [DOCUMENTS] [--profile]

The documents are the chart's golden renderings, each again and again in another namespace, in one file. Prints the
seconds of the whole command (the best of three, as whatever else runs on the machine only ever adds) and of its parts.
"""

from __future__ import annotations

import cProfile
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RENDERED = sorted((ROOT / "helm" / "vllm-speculative" / "rendered").glob("*.yaml"))


def documents(count: int) -> str:
    """That many objects: the renderings, each time in another namespace."""
    parts: list[str] = []
    namespace = 0
    while len(parts) < count:
        for file in RENDERED:
            namespace += 1
            text = file.read_text(encoding="utf-8").replace("ai-inference", f"ai-{namespace}")
            parts += [part for part in text.split("\n---\n") if "kind:" in part]
    return "\n---\n".join(parts[:count]) + "\n"


def whole(file: Path) -> tuple[float, float]:
    """Seconds by the clock, and of the processor."""
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "specdec", "validate", str(file), "--format", "json"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr.decode()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - begin, processor


def main() -> None:
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    text = documents(numbers[0] if numbers else 1000)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "all.yaml"
        file.write_text(text, encoding="utf-8")
        seconds, processor = min(whole(file) for _ in range(3))
    from specdec import rules
    from specdec.manifests import parse

    begin = time.perf_counter()
    manifests = parse(text)
    parsed = time.perf_counter()
    known = rules.all_rules()
    profile = cProfile.Profile()
    if "--profile" in sys.argv:
        profile.enable()
    findings = rules.check(manifests)
    profile.disable()
    checked = time.perf_counter()
    print(f"{len(manifests)} documents, {len(text) / 1e6:.1f} MB; {len(known)} rules, {len(findings)} findings")
    print(f"specdec validate: {seconds:.2f} s, {processor:.2f} s of one core")
    print(f"of it reading {parsed - begin:.2f} s, rules {checked - parsed:.2f} s")
    if "--profile" in sys.argv:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(25)


if __name__ == "__main__":
    main()

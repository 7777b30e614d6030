"""`python -m specdec.engine_surface VERSION [SOURCE] [--against SOURCE] [--write]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from specdec import engine_surface, facts
from specdec.engine_surface import decisions, metrics, names, source, tables
from specdec.errors import SpecdecError
from specdec.output import print_error

ALWAYS = """\
what is accepted and then raises: vllm/v1/worker/gpu_model_runner.py, vllm/v1/spec_decode
limits: draft tensor parallel size, pipeline and data parallelism, schedule, LoRA, K of a head
then tests/chart/releases.py and `make engines-check`""".splitlines()


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="specdec.engine_surface", description=engine_surface.__doc__)
    parser.add_argument("version")
    parser.add_argument("source", nargs="?", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args(words)
    facts.version_key(asked.version)
    with tempfile.TemporaryDirectory() as folder:
        new = source.modules(asked.source or source.fetched(asked.version, Path(folder)))
        before = tables.previous(asked.version)
        old = source.modules(asked.against or source.fetched(before, Path(folder) / "old")) if before else {}
    files = facts.files_dir()
    changes = {
        "surfaces.yaml": tables.names(_text("surfaces.yaml"), names.surface(new), asked.version),
        "metrics.yaml": tables.metrics(_text("metrics.yaml"), metrics.read(new), asked.version),
        "engines.yaml": tables.known_range(_text("engines.yaml"), asked.version),
    }
    for file, change in changes.items():
        print(f"# {file}: {len(change.written)} changes with vLLM {asked.version}", *change.written, sep="\n")
        if asked.write and change.written:
            (files / file).write_text(change.text, encoding="utf-8")
    questions = [question for change in changes.values() for question in change.questions]
    print(f"\n# For a person to decide (against {before})")
    print(*[f"- {question}" for question in [*questions, *decisions.decisions(new, old), *ALWAYS]], sep="\n")


def _text(file: str) -> str:
    return (facts.files_dir() / file).read_text(encoding="utf-8")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except SpecdecError as error:
        print_error(error, as_json=False)
        sys.exit(error.exit_code)

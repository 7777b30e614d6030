"""The result of a benchmark as one document, run.json. Times are milliseconds, rates are per second."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from specdec.errors import SpecdecError

FILE = "run.json"


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Point(Part):
    """One load: requests at once and requests a second; None: no bound, all at once."""

    concurrency: Annotated[int, Field(ge=1)] | None = None
    rate: Annotated[float, Field(gt=0)] | None = None

    @property
    def key(self) -> str:
        """Part of a file's name."""
        return f"c{self.concurrency or 'all'}-r{'max' if self.rate is None else f'{self.rate:g}'}"


class Load(Part):
    """What is asked. `prompts_sha256`: of the file of prompts; None for random tokens."""

    dataset: Literal["random", "sharegpt", "custom"] = "random"
    source: str = "random tokens"
    input_len: int = Field(512, ge=1)
    output_len: int = Field(256, ge=2)
    num_prompts: int = Field(100, ge=1)
    temperature: float = Field(0, ge=0)
    ignore_eos: bool = True
    chat_template: bool = False
    seed: int = 0
    prompts_sha256: str | None = None


class Counted(Part):
    """What the arm's engines counted while a run took place."""

    drafts: float
    drafted: float
    accepted: float
    by_position: list[float]
    generated: float


class Cell(Part):
    """One run of `vllm bench serve`: one arm, one load, one repeat. Latencies are by request, in the prompts' order.

    answers  a hash of each request's text
    """

    schema_version: Literal[1] = 1
    arm: str
    repeat: int
    point: Point
    seed: int = 0
    duration_s: float
    completed: int
    output_tokens: int
    input_lens: list[int]
    output_lens: list[int]
    tpot_ms: list[float] = Field(min_length=1)
    ttft_ms: list[float] = Field(min_length=1)
    e2e_ms: list[float] = Field(min_length=1)
    answers: list[str] = []
    counted: Counted


class Times(Part):
    """Over all requests of all repeats."""

    mean: float
    p50: float
    p95: float
    p99: float


class Repeat(Part):
    """One repeat of one arm: where its raw figures are, and the median request's times."""

    repeat: int
    file: str
    tpot_ms: float
    ttft_ms: float
    output_tokens_per_second: float


class Arm(Part):
    """One engine under one load. `tpot_ms`: the median over repeats of each repeat's median request.

    concurrency            the bound, or requests at once as measured where there was none (Little's law)
    acceptance_by_position accepted at each position ÷ drafts
    input_len, output_len  tokens a request, on average
    interval               95 % of `tpot_ms`; likewise `ttft_interval` and `throughput_interval`
    raw_...                of every request of every repeat
    same_answers           share of the baseline's answers that this arm gave too, by repeat and prompt; None for the
                           baseline itself and where answers are sampled
    """

    name: str
    k: int
    method: str | None
    engine_version: str | None
    concurrency: int
    max_concurrency: int | None
    request_rate: float | None
    input_len: float
    output_len: float
    tpot_ms: float
    interval: tuple[float, float]
    tpot: Times
    ttft: Times
    e2e: Times
    output_tokens_per_second: float
    ttft_ms: float
    ttft_interval: tuple[float, float]
    throughput_interval: tuple[float, float]
    drafts: float
    acceptance_rate: float | None
    acceptance_by_position: list[float]
    mean_length: float | None
    repeats: list[Repeat]
    same_answers: float | None = None
    raw_tpot_ms: list[float]
    raw_ttft_ms: list[float]
    raw_e2e_ms: list[float]


class Ratio(Part):
    """Baseline ÷ arm in time per output token: above 1 the arm is faster. `repeats`: that both arms have.

    `real`: above the noise, see specdec.bench.stats.is_real.
    """

    arm: str
    baseline: str
    concurrency: int
    max_concurrency: int | None
    request_rate: float | None
    ratio: float
    interval: tuple[float, float]
    real: bool
    repeats: int
    throughput_ratio: float
    predicted: float | None = None
    predicted_tpot_ms: float | None = None


class Run(Part):
    """All that a run needs to be repeated, and what came out.

    made, wanted  single runs: all where complete
    sweep         K of engines that the run started itself; empty where it measured what was deployed
    """

    schema_version: Literal[1] = 1
    environment: str
    release: str
    namespace: str
    created: str
    sweep: list[int] = []
    complete: bool = False
    made: int = 0
    wanted: int = 0
    repeats: int = Field(5, ge=1)
    load: Load
    points: list[Point] = Field(min_length=1)
    versions: dict[str, str]
    values_sha256: dict[str, str]
    manifests_sha256: str
    target: str
    engines: list[str]
    warnings: list[str] = []
    arms: list[Arm] = []
    ratios: list[Ratio] = []


def write(file: Path, document: BaseModel) -> None:
    """Write the document whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_name(f".{file.name}.{os.getpid()}")
    with scratch.open("w", encoding="utf-8") as stream:
        stream.write(document.model_dump_json(indent=1) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    scratch.replace(file)


def read_run(directory: Path) -> Run:
    """The document of a run's directory. Raises SpecdecError where there is none or it is no such document."""
    file = directory / FILE
    try:
        return Run.model_validate_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecdecError(
            f"no benchmark to read: {error.strerror}", code="no-run", file=str(file), fix="name the directory of a run"
        ) from error
    except (ValidationError, UnicodeDecodeError) as error:
        raise SpecdecError(f"no benchmark's document: {first(error)}", code="bad-run", file=str(file)) from error


def read_cell(file: Path) -> Cell | None:
    """One run's figures; None where the file is missing, cut or not one, so that the run is done again."""
    try:
        return Cell.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValidationError, UnicodeDecodeError, json.JSONDecodeError):
        return None


def first(error: Exception) -> str:
    """The first complaint, in one line."""
    if isinstance(error, ValidationError):
        found = error.errors()[0]
        return f"{'.'.join(map(str, found['loc'])) or 'document'}: {found['msg']}"
    return str(error)

"""What the files of facts have to look like: one schema for the chart's, Terraform's and Python's reading."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from specdec import facts
from specdec.errors import SpecdecError

Provisioning = Literal["on_demand", "spot", "flex_start", "queued", "reservation", "capacity_block"]
Version = Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+(\.\d+)?$")]
Positive = Annotated[float, Field(gt=0)]


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Accelerator(Closed):
    """Units: GiB (2^30 bytes), 1e9 bytes a second, 1e12 operations a second."""

    name: str
    vendor: str
    memoryGiB: Positive | None
    bandwidthGBs: Positive
    tflops: dict[str, Positive]
    fp8: bool
    computeCapability: str | None
    interconnectGBs: Annotated[float, Field(ge=0)]
    link: str | None
    gpuProduct: str | None
    source: str


class LocalSSD(Closed):
    count: Annotated[int, Field(ge=0)]
    sizeGiB: Positive
    fixed: bool


class InstanceStore(Closed):
    count: Annotated[int, Field(ge=0)]
    sizeGB: Annotated[float, Field(ge=0)]


class Machine(Closed):
    accelerator: str
    count: Annotated[int, Field(ge=0)]
    vcpus: Annotated[int, Field(gt=0)]
    memoryGiB: Positive
    provisioning: Annotated[list[Provisioning], Field(min_length=1)]
    source: str
    localSSD: LocalSSD | None = None
    instanceStore: InstanceStore | None = None
    acceleratorLabel: str | None = None
    zones: list[str] | None = None


class Accelerators(Closed):
    accelerators: dict[str, Accelerator]
    machines: dict[str, dict[str, Machine]]


class Model(Closed):
    checkpointBytes: Annotated[int, Field(gt=0)]
    source: str
    config: dict[str, Any]


class Models(Closed):
    models: dict[str, Model]


class Price(Closed):
    cloud: str
    machine: str
    region: str
    provisioning: Provisioning
    dollarsPerHour: Positive
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    approximate: bool
    source: str


class Prices(Closed):
    currency: Literal["USD"]
    prices: list[Price]


class Ranged(BaseModel):
    """A row that holds for from <= version < before. What else it says differs from list to list."""

    model_config = ConfigDict(extra="allow")

    from_: Version = Field(alias="from", default="0.0.0")
    before: Version | None = None
    source: str


class Argument(BaseModel):
    model_config = ConfigDict(extra="allow")

    value: str
    rows: Annotated[list[Ranged], Field(min_length=1)]


class NotRun(Ranged):
    does: str


class Method(Closed):
    needsModel: bool
    rows: Annotated[list[Ranged], Field(min_length=1)]
    notRun: list[NotRun] = []


class Runner(Ranged):
    default: Literal["v0", "v1", "v2"]
    choice: list[Literal["v0", "v1", "v2"]]
    cpu: Literal["v0", "v1", "v2"] | None = None
    env: str | None = None
    only: dict[Literal["v0", "v1", "v2"], list[str]] = {}


class Engines(Closed):
    schemaVersion: Literal[1]
    versions: Annotated[list[Ranged], Field(min_length=1)]
    command: list[Ranged]
    arguments: list[Argument]
    methods: dict[str, Method]
    withoutEffect: dict[str, list[NotRun]]
    limits: dict[str, list[Ranged]]
    runners: list[Runner]
    defaults: dict[str, list[Ranged]]
    untyped: dict[str, str]


# The first version that has the name, and where it went again the first without it.
Since = Version | Annotated[list[Version], Field(min_length=2, max_length=2)]


class Surfaces(Closed):
    flags: dict[str, Since]
    fields: dict[str, Since]
    methods: dict[str, Since]


class Metric(Closed):
    """Names as scraped: a counter's ends in _total."""

    name: Annotated[str, Field(pattern=r"^vllm:[a-z0-9_]+[a-z0-9]$")]
    type: Literal["counter", "gauge", "histogram"]
    core: Literal["v0", "v1"]
    from_: Version = Field(alias="from")
    before: Version | None = None
    role: Annotated[str, Field(pattern=r"^[a-z][a-zA-Z0-9]+$")] | None = None
    hidden: Literal[True] | None = None
    labels: list[str] | None = None
    source: str


class Metrics(Closed):
    schemaVersion: Literal[1]
    metrics: Annotated[list[Metric], Field(min_length=1)]


class Preset(Closed):
    values: dict[str, Any]
    why: str
    assumption: Literal[True]
    source: str


class Task(Closed):
    numTokens: Annotated[int, Field(gt=0)]
    acceptance: Annotated[float, Field(gt=0, le=1)]
    assumption: Literal[True]
    source: str


class Presets(Closed):
    """Starting points: no row may be taken for a measurement."""

    presets: dict[str, Preset]
    tasks: dict[str, Task]
    defaults: dict[str, Any]


SCHEMAS: dict[str, type[BaseModel]] = {
    "accelerators.yaml": Accelerators,
    "engines.yaml": Engines,
    "metrics.yaml": Metrics,
    "models.yaml": Models,
    "presets.yaml": Presets,
    "prices.yaml": Prices,
    "surfaces.yaml": Surfaces,
}


def check(file: Path) -> None:
    """Raises SpecdecError with the path of the first value that is wrong."""
    try:
        SCHEMAS[file.name].model_validate(facts.load(file))
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        raise SpecdecError(first["msg"], code="facts-broken", file=str(file), path=path) from None

"""What a deploy asks of a cloud before it builds there, and after it took everything down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from specdec.deploy.cloud import failures, kinds
from specdec.deploy.cloud.target import Target
from specdec.deploy.problems import Problem, error


@dataclass(frozen=True)
class Remain:
    """Something that still costs money, and the command that ends that."""

    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.what}: {self.fix}"


class Cloud(Protocol):
    """Google Cloud or AWS, seen from one environment. Nothing here changes anything."""

    def check(self, report: Callable[[str], None]) -> list[Problem]:
        """Everything that would stop an apply, at once. Never raises for what the cloud answers."""

    def offers(self, machine: str) -> list[str] | None:
        """Zones of the region that sell a machine type, None where the cloud does not say."""

    def remains(self, addresses: Sequence[str] = ()) -> list[Remain]:
        """What the environment's cluster left behind. `addresses`: those of its load balancers, while it stood."""


def connect(target: Target) -> Cloud:
    """The environment's cloud. Credentials are looked for when it is first asked."""
    if target.cloud == "gke":
        from specdec.deploy.cloud.gcp import Google

        return Google(target)
    from specdec.deploy.cloud.aws import Amazon

    return Amazon(target)


class Findings:
    """Problems as they are found, each error of a cloud translated."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.problems: list[Problem] = []
        self.fatal = False  # nothing more can be asked

    def add(self, code: str, where: str, message: str, fix: str | None = None) -> None:
        self.problems.append(error(code, where, message, fix))

    def warn(self, where: str, message: str, fix: str | None = None) -> None:
        self.problems.append(Problem("warning", "not-checked", where, message, fix))

    @contextmanager
    def asking(self, where: str, *expected: type[Exception], stops: bool = False) -> Iterator[None]:
        """A refusal inside becomes a problem. `stops`: without this answer the others would say the same again.

        What cannot be seen for want of a right or of time is a warning: Terraform may still be allowed to do it.
        """
        try:
            yield
        except expected as refusal:
            text = str(refusal)
            kind = kinds.classify(text)
            fix = failures.login(self.target.cloud) if kind.name == "credentials" else kind.fix
            line = " ".join(text.split())[:400]
            if kind.name in ("credentials", "api_off") or stops:
                self.fatal = self.fatal or stops or kind.name == "credentials"
                self.add(kind.code, where, f"{kind.title}: {line}", fix)
            else:
                self.warn(where, f"not checked: {kind.title}: {line}", fix)


def counted(number: float) -> str:
    return f"{number:g}"


def zones_text(zones: list[str]) -> str:
    return ", ".join(zones) if zones else "none"


def check_zones(findings: Findings, offers: Callable[[str], list[str] | None]) -> None:
    """Each pool's zones sell its machine; where they do not, those that do are named."""
    target = findings.target
    for pool in target.pools:
        sold = offers(pool.machine)
        if sold is None:
            continue
        where = f"gpu_pools.{pool.name}.zones"
        without = [zone for zone in pool.zones or () if zone not in sold]
        if not sold:
            text = f"no zone of {target.region} sells {pool.machine}"
            findings.add("SD857", where, text, "another region or machine type")
        elif without:
            text = f"{zones_text(without)} has no {pool.machine}" if len(without) == 1 else (
                f"{zones_text(without)} have no {pool.machine}"
            )  # fmt: skip
            findings.add("SD857", where, text, f"zones that have it: {zones_text(sold)}")

"""One root of an environment, from its files to what it made: init, plan, guard, apply. Cluster and platform alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from specdec.deploy.cloud import workspace
from specdec.deploy.cloud.events import Changes, Reader
from specdec.deploy.cloud.failures import Offers, explain
from specdec.deploy.cloud.target import Target, made
from specdec.deploy.cloud.terraform import Failed, Terraform
from specdec.deploy.progress import Progress
from specdec.errors import FoundWrong

if TYPE_CHECKING:
    from specdec.rules.model import Finding

Answer = TypeVar("Answer")


class Root:
    """`name` is the cloud's ("gke", "eks") or "platform". Terraform's errors come out translated."""

    def __init__(self, target: Target, name: str, progress: Progress, offers: Offers = lambda _: None) -> None:
        self.target, self.name, self.progress, self.offers = target, name, progress, offers
        where = workspace.prepare(target, name)
        self.terraform = Terraform(
            where,
            target.folder / "logs",
            line=progress.line,
            # Where there is no live line, what passes by is not worth one that stays.
            tick=progress.note if progress.live_wanted else lambda _: None,
            warn=progress.warn,
        )
        self.changes = Changes()
        self.applies = False  # whether the plan changes anything at all, an output alone included

    @property
    def inputs(self) -> str:
        return workspace.fingerprint(self.target, self.name)

    @property
    def plan_file(self) -> Path:
        return made(self.target.folder) / "plans" / f"{self.name}.tfplan"

    @property
    def plan_json(self) -> Path:
        return self.plan_file.with_suffix(".json")

    def variables(self) -> list[Path]:
        """The variable files. The platform's are made up where the environment has none: all of it has defaults."""
        if self.name != "platform":
            return [self.target.file]
        if "cluster_state" in self.target.platform_variables or "cluster" in self.target.platform_variables:
            return [self.target.platform_file]
        own = self.target.backend(self.target.cloud)
        keys = ("bucket", "prefix") if self.target.cloud == "gke" else ("bucket", "key", "region")
        config = {key: str(own[key]) for key in keys if key in own}
        made_up = made(self.target.folder) / "cluster.tfvars.json"
        backend = "gcs" if self.target.cloud == "gke" else "s3"
        made_up.write_text(json.dumps({"cluster_state": {"backend": backend, "config": config}}))
        return [*([self.target.platform_file] if self.target.platform_file.is_file() else []), made_up]

    def init(self) -> None:
        """Raises SpecdecError: a missing bucket, credentials, providers that cannot be had."""
        try:
            self.terraform.init(self.target.backend_file(self.name))
        except Failed as failed:
            raise explain(failed, self.target, self.name) from None

    def unlock(self, identifier: str) -> None:
        """Take a dead run's lock away; a lock that is another root's is left alone."""
        try:
            self.terraform.unlock(identifier)
            self.progress.warn(f"{self.name}: lock {identifier} is taken away")
        except Failed as failed:
            said = failed.reader.errors()
            self.progress.warn(f"{self.name}: lock {identifier} stays: {said[0].text.splitlines()[-1] if said else ''}")

    def plan(self, *, destroy: bool = False) -> Reader:
        """Saves the plan and its JSON. Raises SpecdecError."""
        self.plan_file.parent.mkdir(exist_ok=True)
        try:
            reader = self.terraform.plan(self.plan_file, self.variables(), destroy=destroy)
            document = self.terraform.shown(self.plan_file)
            self.plan_json.touch(mode=0o600)
            self.plan_json.write_text(json.dumps(document))
        except Failed as failed:
            raise explain(failed, self.target, self.name, offers=self.offers) from None
        self.changes = reader.changes
        outputs = (document.get("output_changes") or {}).values()
        changed = any(one.get("actions") != ["no-op"] for one in outputs) or not reader.changes.none
        self.applies = bool(document.get("applyable", changed))
        return reader

    def guard(self, allow: Iterable[str] = ()) -> list[Finding]:
        """What the guard finds in the saved plan. Raises SpecdecError where there is none."""
        from specdec.plan_check import check, read

        return check(read(self.plan_json, self.terraform.where), allow=allow)

    def apply(self) -> Changes:
        """Does what the saved plan says. Raises FoundWrong: part of it may exist now; Interrupted."""
        try:
            reader = self.terraform.apply(self.plan_file)
        except Failed as failed:
            raise explain(failed, self.target, self.name, offers=self.offers, changed=True) from None
        return reader.changes

    def outputs(self) -> Mapping[str, Any]:
        return self._asked(self.terraform.outputs)

    def resources(self) -> list[dict[str, Any]]:
        return self._asked(self.terraform.resources)

    def _asked(self, question: Callable[[], Answer]) -> Answer:
        try:
            return question()
        except Failed as failed:
            raise explain(failed, self.target, self.name) from None


def refused(findings: Iterable[Finding]) -> FoundWrong:
    """The guard's errors, all at once."""
    errors = [finding for finding in findings if finding.severity == "error"]
    lines = "\n".join(f"  - {one.code} {one.resource}: {one.message} (fix: {one.fix})" for one in errors)
    return FoundWrong(
        f"the plan is refused; nothing was applied\n{lines}",
        code="SD866",
        fix="change what causes it; what is meant so: --allow CODE",
    )

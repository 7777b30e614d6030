"""The deploy of an environment with Terraform: from preflight to the smoke test, and on from where it stopped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specdec.deploy import lock
from specdec.deploy.cloud import agreement, clouds, failures, kubeconfig, price
from specdec.deploy.cloud.events import Changes
from specdec.deploy.cloud.record import Record
from specdec.deploy.cloud.roots import Root, refused
from specdec.deploy.cloud.target import Target, made
from specdec.deploy.pipeline import Deploy, Options
from specdec.deploy.problems import PreflightFailed, error
from specdec.deploy.progress import Progress
from specdec.environments import Environment
from specdec.errors import FoundWrong, SpecdecError, unknown
from specdec.manifests import Manifest, engines, parse

STAGES = ("preflight", "init", "plan", "guard", "price", "apply", "kubeconfig", "platform", "chart")


@dataclass(frozen=True)
class CloudOptions:
    """`start`, `end`: first and last stage; `allow`: codes that the guard lets pass; `unlock`: a dead run's lock."""

    plan_only: bool = False
    start: str | None = None
    end: str | None = None
    yes: bool = False
    allow: tuple[str, ...] = ()
    unlock: str | None = None


# Helm and the smoke test on a cluster that exists: environment, kubeconfig, progress.
Chart = Callable[[Environment, Path, Options, Progress], dict[str, Any]]


def chart(env: Environment, file: Path, options: Options, progress: Progress) -> dict[str, Any]:
    """The release, by the same steps as on a cluster that was brought along."""
    run = Deploy(env, options, progress)
    run.kubeconfig = file
    return run.run()


class CloudDeploy:
    """`run` goes through the stages; `state` says, at any moment, what an interruption leaves behind."""

    def __init__(
        self, target: Target, options: CloudOptions, chart_options: Options, progress: Progress, *,
        ask: Callable[[str], None], cloud: clouds.Cloud | None = None, chart: Chart = chart,
    ) -> None:  # fmt: skip
        for path, stage, stages in (("--from", options.start, STAGES), ("--to", options.end, STAGES[5:])):
            if stage and stage not in stages:
                raise unknown("stage", stage, stages, path=path)
        self.target, self.options, self.chart_options, self.progress = target, options, chart_options, progress
        self.ask, self.chart = ask, chart
        self.cloud = cloud or clouds.connect(target)
        self.record = Record(made(target.folder))
        self.result: dict[str, Any] = {"schema_version": 1, "ok": True, "environment": target.env.name}
        self.manifests: list[Manifest] = []

    def run(self) -> dict[str, Any]:
        """The result, as JSON has it. Raises SpecdecError: nothing was applied; FoundWrong: what was applied fails."""
        with lock.on_machine(f"cloud {self.target.env.name} ({self.target.name} in {self.target.region})"):
            root = Root(self.target, self.target.cloud, self.progress, self.cloud.offers)
            root.terraform.await_survivor()
            if stopped := self.record.unfinished:
                self.progress.warn(f"the last run stopped at {stopped}; what is there already is not made again")
            self._check_start(root)
            self._before(root)
            if self.options.plan_only:
                self._plan_platform(root)
                return self._end()
            self._apply(root)
            self._connect(root)
            self._platform()
            if self._runs("chart"):
                env, file = self._cluster()
                with self.record.stage("chart", ""):
                    self._chart(env, file)
            return self._end()

    def state(self) -> str:
        """What stands where, and how to go on: for an interruption at this moment."""
        name = self.target.env.name
        again = f"`specdec deploy {name}` goes on from there"
        stage = self.record.unfinished
        if stage in (None, "preflight", "init", "plan", "guard", "price"):
            return f"nothing was changed; `specdec deploy {name}` starts again"
        if stage in ("apply", "platform"):
            what = "the cluster" if stage == "apply" else "the platform"
            return f"part of {what} exists and is in the state; {again}"
        return f"the cluster stands; {again}, `specdec destroy {name}` takes it down"

    def _end(self) -> dict[str, Any]:
        return self.result | {"warnings": self.progress.warnings, "steps": self.progress.steps}

    def _runs(self, stage: str) -> bool:
        first, last = self.options.start or STAGES[0], self.options.end or STAGES[-1]
        return STAGES.index(first) <= STAGES.index(stage) <= STAGES.index(last)

    def _check_start(self, root: Root) -> None:
        """What comes before `--from` was done, on the files as they are now."""
        if not self.options.start:
            return
        for stage in STAGES[: STAGES.index(self.options.start)]:
            inputs = "" if stage == "platform" else root.inputs
            done = self.record.is_done(stage, inputs or self.record.stages.get(stage, {}).get("inputs", ""))
            if not done:
                changed = stage in self.record.stages
                why = "was done on other files or failed" if changed else "was not done on this machine"
                raise SpecdecError(
                    f"--from {self.options.start}: stage {stage} {why}", code="SD874", path="--from",
                    fix=f"--from {stage}, or all of it: specdec deploy {self.target.env.name}",
                )  # fmt: skip

    @contextmanager
    def _stage(self, name: str, inputs: str) -> Iterator[dict[str, Any]]:
        with self.record.stage(name, inputs) as entry, self.progress.step(name):
            yield entry

    def _before(self, root: Root) -> None:
        """Everything that changes nothing: preflight, init, plan, guard, price. And the question."""
        inputs = root.inputs
        if self._runs("preflight"):
            with self._stage("preflight", inputs):
                self._preflight()
        if self._runs("init") or not root.terraform.is_ready:
            with self._stage("init", inputs):
                root.init()
                if self.options.unlock:
                    root.unlock(self.options.unlock)
        if self._runs("plan"):
            with self._stage("plan", inputs) as entry:
                reader = root.plan()
                entry |= {"detail": str(root.changes), "changes": root.changes.as_dict(), "applies": root.applies}
                self.progress.note(str(root.changes))
                self.result["resources"] = [{"address": one, "action": action} for one, action in reader.planned]
        changes = self.record.stages["plan"]["changes"]
        self.result |= {"cloud": self.target.cloud, "plan": changes}
        if self._runs("guard"):
            with self._stage("guard", inputs):
                self._guard(root)
        if self._runs("price"):
            with self._stage("price", inputs):
                bill = self._bill()
                self.progress.note(str(bill))
            confirmed = self.record.facts.get("confirmed") == inputs and not any(changes.values())
            if not (self.options.plan_only or self.options.yes or confirmed):
                self._question(str(bill), changes)
            if not self.options.plan_only:
                self.record.put(confirmed=inputs)

    def _preflight(self) -> None:
        """Raises PreflightFailed with all that is wrong: files first, then the cloud."""
        from specdec import helm

        env = self.target.env
        self.progress.note("do pools and values agree")
        text = helm.render(env.values, self.chart_options.set_values, env.release, env.namespace)
        self.manifests = parse(text, f"{env.name} (rendered)")
        problems = agreement.check(self.target, self.manifests)
        if not self.options.plan_only:
            try:
                kubeconfig.check(self.target.cloud)
            except SpecdecError as missing:
                problems.append(error(missing.code, "this machine", missing.message, missing.fix))
        problems += self.cloud.check(self.progress.note)
        errors = [problem for problem in problems if problem.level == "error"]
        for problem in problems:
            if problem.level == "warning":
                self.progress.warn(str(problem))
        if errors:
            raise PreflightFailed(problems)
        self.progress.note("nothing against it")

    def _guard(self, root: Root) -> None:
        findings = root.guard(self.options.allow)
        self.result.setdefault("guard", []).extend(finding.as_dict() for finding in findings)
        for finding in findings:
            if finding.severity == "warning":
                self.progress.warn(f"{finding.code} {finding.resource}: {finding.message}")
        if any(finding.severity == "error" for finding in findings):
            raise refused(findings)
        self.progress.note("nothing against the plan")

    def _bill(self) -> price.Bill:
        from specdec import helm

        env = self.target.env
        if not self.manifests:
            text = helm.render(env.values, self.chart_options.set_values, env.release, env.namespace)
            self.manifests = parse(text, f"{env.name} (rendered)")
        bill = price.bill(self.target, engines(self.manifests))
        self.result["price"] = bill.as_dict()
        return bill

    def _question(self, bill: str, changes: Mapping[str, int]) -> None:
        plan = ", ".join(f"{count} to {what}" for what, count in changes.items())
        where = f"{self.target.name} in {self.target.region}"
        if self.target.cloud == "gke":
            where += f", project {self.target.project}"
        if not sys.stdin.isatty():
            raise SpecdecError(
                f"this spends money: {bill}", code="SD867", path="--yes", fix="look at the plan above, then say --yes"
            )
        self.ask(f"{self.target.env.name}: {where}\n  plan   {plan}\n  price  {bill}\nApply?")

    def _apply(self, root: Root) -> None:
        if not self._runs("apply"):
            return
        # A destroy that stopped halfway is over: what it took away is made again.
        self.record.stages = {key: one for key, one in self.record.stages.items() if not key.startswith("destroy")}
        with self._stage("apply", root.inputs) as entry:
            if not self.record.stages["plan"]["applies"]:
                self.progress.note("nothing to change")
                return
            entry["detail"] = str(root.apply())
            # The plan is used up; a second apply of it would be refused as stale.
            self.record.stages["plan"] |= {"applies": False, "changes": Changes().as_dict()}
            self.progress.note(f"{self.target.name} is there")

    def _connect(self, root: Root) -> None:
        if not self._runs("kubeconfig"):
            return
        with self._stage("kubeconfig", root.inputs):
            cluster = dict(root.outputs().get("platform") or {})
            if not cluster:
                raise SpecdecError("the state has no output platform", code="SD875", fix="--from plan")
            file, context = kubeconfig.write(self.target.folder, self.target.env.name, cluster)
            self.record.put(cluster={key: cluster.get(key) for key in ("cloud", "name", "location", "project", "host")})
            self.progress.note(f"context {context} in {file}")

    def _platform(self) -> None:
        if not self._runs("platform"):
            return
        root = Root(self.target, "platform", self.progress)
        with self._stage("platform", root.inputs) as entry:
            root.init()
            if self.options.unlock:
                root.unlock(self.options.unlock)
            root.plan()
            self._guard(root)
            entry["detail"] = str(root.changes)
            if not root.applies:
                self.progress.note("nothing to change")
                return
            root.apply()
            self.progress.note("operator and add-ons are there")

    def _chart(self, env: Environment, file: Path) -> None:
        try:
            self.result |= self.chart(env, file, self.chart_options, self.progress)
        except FoundWrong as failed:
            raise failures.without_nodes(failed, self.target, self.cloud.offers) from None

    def _plan_platform(self, cluster: Root) -> None:
        """The platform can be planned where its cluster exists, and answers."""
        if not cluster.outputs().get("platform"):
            self.progress.warn("the platform is not planned: its cluster does not exist yet")
            return
        root = Root(self.target, "platform", self.progress)
        try:
            with self.progress.step("platform"):
                root.init()
                root.plan()
                self.progress.note(str(root.changes))
        except SpecdecError as failed:
            self.progress.warn(f"the platform is not planned: {failed.message}")
            return
        self._guard(root)
        self.result["platform_plan"] = root.changes.as_dict()

    def _cluster(self) -> tuple[Environment, Path]:
        found = kubeconfig.of(self.target.env)
        if found is None:
            raise SpecdecError("there is no kubeconfig of this environment", code="SD874", fix="--from kubeconfig")
        return replace(self.target.env, kubecontext=found[1]), found[0]

"""`specdec smoke`: does it serve, and does it speculate as its values say?"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from specdec.errors import SpecdecError
from specdec.output import Format

if TYPE_CHECKING:
    from specdec.deploy.equivalence import Arm
    from specdec.deploy.live import Live
    from specdec.deploy.smoke import Target
    from specdec.deploy.targets import Release


class Speculation(StrEnum):
    on = "on"
    off = "off"


def smoke(
    environment: str | None = typer.Argument(None, metavar="[ENV]", help="A folder of environments/."),
    url: str | None = typer.Option(None, help="Any server instead, by its root: http://HOST:PORT."),
    model: str | None = typer.Option(None, help="Served model name; needed with --url."),
    speculation: Speculation | None = typer.Option(
        None, help="What to expect. Default: as the values say; on with --url."
    ),
    metrics_url: list[str] = typer.Option(
        [], help="Root of an engine whose counters to read, where --url is a router. May be repeated."
    ),
    min_acceptance: float = typer.Option(0.1, min=0, max=1, help="Least acceptance rate (accepted ÷ drafted)."),
    draft_positions: int | None = typer.Option(
        None, min=1, help="Tokens that the draft was trained for (max_position_embeddings). Default: models.yaml."
    ),
    timeout: float = typer.Option(300, min=1, help="Seconds that one answer may take."),
    equivalence: bool = typer.Option(
        False, "--equivalence", help="Also compare answers with the baseline engine's: speculation must change none."
    ),
    baseline_url: str | None = typer.Option(
        None, help="The same target without speculation, for --equivalence of --url."
    ),
    min_agreement: float | None = typer.Option(
        None, min=0, max=1, help="Least share of greedy tokens that agree. Default: 1 in float32, else 0.97."
    ),
    samples: int = typer.Option(200, min=25, help="Sampled answers of each arm that --equivalence compares."),
    values: list[Path] = typer.Option([], "--values", "-f", help="Further values files of the environment."),
    set_values: list[str] = typer.Option([], "--set", help="Single values that it was deployed with, KEY=VALUE."),
    context: str | None = typer.Option(None, help="Context of the kubeconfig."),
    release: str | None = typer.Option(None, help="Name of the release."),
    namespace: str | None = typer.Option(None, help="Namespace of the release."),
    format: Format = typer.Option(Format.text, help="text or json."),
) -> None:
    """Test a deployed environment, or any OpenAI-compatible URL. OPENAI_API_KEY is sent to a URL where it is set."""
    from dataclasses import asdict, replace

    from specdec.deploy import report
    from specdec.deploy.equivalence import run as compare
    from specdec.deploy.pipeline import smoke_targets
    from specdec.deploy.smoke import Check, as_dict, joined, run
    from specdec.output import console, print_json

    if environment is None and url is None:
        fix = "specdec smoke local, or --url http://HOST:PORT --model NAME"
        raise SpecdecError("neither an environment nor --url is given", code="usage", fix=fix)
    if environment is not None and url is not None:
        raise SpecdecError("an environment and --url are given", code="usage", fix=f"leave out {environment} or --url")
    if url is not None:
        targets = [url_target(url, model, metrics_url)]
        pair = url_pair(targets[0], baseline_url) if equivalence else None
    else:
        live, of_release = deployed(str(environment), values, set_values, context, release, namespace)
        targets = smoke_targets(live.cluster, of_release)
        pair = release_pair(live, of_release) if equivalence else None
    documents = []
    with console(stderr=True).status("smoke test") as status:
        for chosen in targets:
            target = replace(
                chosen,
                speculation=chosen.speculation if speculation is None else speculation == Speculation.on,
                min_acceptance=min_acceptance,
                timeout=timeout,
                model=model or chosen.model,
                draft_positions=draft_positions or chosen.draft_positions,
            )
            found = []
            for check in run(target):
                found.append(check)
                status.update(f"{target.endpoint.label}: {check.name} done")
            documents.append(as_dict(target, found))
        result = joined(documents)
        if pair and result["ok"]:
            compared = compare(*pair, least=min_agreement, samples=samples, report=status.update)
            result["checks"] += [asdict(check) for check in compared]
            result["ok"] = all(check.ok for check in compared)
    if format == Format.json:
        print_json(result | {"environment": environment, "url": url})
    else:
        console().print(report.checks([Check(**check) for check in result["checks"]]))
    if not result["ok"]:
        raise typer.Exit(1)


def url_target(url: str, model: str | None, metrics_urls: list[str]) -> Target:
    """Any server. Without --metrics-url its own /metrics are read."""
    from specdec.deploy.endpoint import at_url
    from specdec.deploy.metrics import Counters, parse
    from specdec.deploy.smoke import Target

    if not model:
        raise SpecdecError("--url needs --model", code="usage", fix="the name that clients ask for: see URL/v1/models")
    if not url.startswith(("http://", "https://")):
        raise SpecdecError(f"{url!r} is not a URL", code="bad-url", path="--url", fix=f"http://{url}")
    key = os.environ.get("OPENAI_API_KEY")
    sources = [at_url(source, api_key=key) for source in metrics_urls or [url]]

    def counters() -> Counters:
        return sum((parse(source.get("/metrics").text) for source in sources), Counters())

    return Target(at_url(url, api_key=key), model, True, counters)


def url_pair(target: Target, baseline_url: str | None) -> tuple[Arm, Arm, str | None]:
    from specdec.deploy.endpoint import at_url
    from specdec.deploy.equivalence import Arm

    if not baseline_url:
        raise SpecdecError(
            "--equivalence of a --url needs --baseline-url", code="usage", fix="the same target without speculation"
        )
    other = at_url(baseline_url, api_key=os.environ.get("OPENAI_API_KEY"))
    served = [str(entry["id"]) for entry in other.models()]
    model = target.model if target.model in served else served[0]
    return Arm("speculative", target.endpoint, target.model), Arm("baseline", other, model), None


def release_pair(live: Live, release: Release) -> tuple[Arm, Arm, str | None]:
    """The first engine that has a baseline, and the type of its weights and activations."""
    from specdec.deploy.equivalence import Arm

    if release.pair is None:
        raise SpecdecError(
            "the release has no baseline engine to compare with",
            code="no-baseline",
            path="baseline.enabled",
            fix=f"specdec deploy {live.env.name} --set baseline.enabled=true",
        )
    arms = [
        Arm(name, live.cluster.service(engine.service, engine.port), engine.model)
        for name, engine in zip(("speculative", "baseline"), release.pair, strict=True)
    ]
    return arms[0], arms[1], release.pair[0].workload.args.dtype


def deployed(
    name: str,
    values: list[Path],
    set_values: list[str],
    context: str | None,
    release: str | None,
    namespace: str | None,
) -> tuple[Live, Release]:
    """A deployed environment. Helm is asked for what was deployed, so that the test expects just that."""
    from specdec.deploy.live import Live

    live = Live.of(name, context, release, namespace)
    manifests = live.rendered(values, set_values) if values or set_values else live.manifests()
    return live, live.release(manifests)

"""From answers to an environment: the machine, the parallel size that fits, K; all checked before a folder is made."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from specdec import environments, facts, helm, rules
from specdec.deploy.cloud import agreement as cloud_agreement
from specdec.deploy.cloud.price import Bill, bill
from specdec.deploy.cloud.target import Target
from specdec.environments import Environment
from specdec.errors import FoundWrong, SpecdecError
from specdec.infrastructure import pools
from specdec.infrastructure.agreement import Ask, place
from specdec.init import template
from specdec.init.answers import NONE, Answers
from specdec.init.template import Choice
from specdec.manifests import Manifest, engines, parse

SIZES = (1, 2, 4, 8)
# Share of a machine's CPUs and memory that its engines may ask for; the rest is the system's.
SHARE = 0.6
FIRST_K = 3


def build(answers: Answers) -> tuple[Path, list[dict[str, Any]], Bill]:
    """Makes the environment's folder: (folder, plans, bill).

    Raises FoundWrong where no size of the engine fits the GPU, SpecdecError where the answers contradict each other.
    Nothing is made then.
    """
    final = environments.environments_dir() / answers.name
    with tempfile.TemporaryDirectory(prefix="specdec-init-") as scratch:
        draft = Path(scratch) / answers.name
        plans, choice = _fitting(answers, draft)
        where = Environment(answers.name, draft, [draft / "values.yaml"], template.RELEASE, template.NAMESPACE, None)
        found = _check(where)
        # Whole or not at all: a folder whose name starts with a dot is no environment.
        part = final.with_name(f".{answers.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(draft, part)
        part.rename(final)
    _note(answers.name, template.purpose(answers, choice), final, found)
    return final, plans, found


def _fitting(answers: Answers, draft: Path) -> tuple[list[dict[str, Any]], Choice]:
    """Writes the smallest size that fits into `draft`."""
    sizes = (answers.tensor_parallel_size,) if answers.tensor_parallel_size else SIZES
    reasons: list[str] = []
    for size in sizes:
        machine = _machine(answers, size)
        if machine is None:
            continue
        choice = _choice(answers, machine, size, FIRST_K)
        try:
            plans = _write(answers, choice, draft)
        except SpecdecError as error:
            # A size that does not divide the heads is passed over where it was not asked for.
            if answers.tensor_parallel_size or error.code != "SD321":
                raise
            continue
        reasons = [reason for plan in plans for reason in plan["reasons"]]
        if all(plan["fits"] for plan in plans):
            best = max(1, plans[0]["num_speculative_tokens"]["static"])
            if answers.method != NONE and best != FIRST_K:
                choice = _choice(answers, machine, size, best)
                plans = _write(answers, choice, draft)
            return plans, choice
    if not reasons:
        raise SpecdecError(
            f"{answers.cloud} sells no machine with {sizes[0]} × {answers.accelerator} as {answers.provisioning}",
            code="SD885",
            path="--provisioning",
            fix="another way to buy, or another GPU: specdec accelerators",
        )
    raise FoundWrong(
        f"{answers.model} does not fit: " + "; ".join(reasons),
        code="SD887",
        fix="a larger GPU, --quantization fp8, a smaller draft, or a shorter --max-model-len",
    )


def _write(answers: Answers, choice: Choice, draft: Path) -> list[dict[str, Any]]:
    """The files, and the plan of every engine in them."""
    from specdec.plan.document import plan_document
    from specdec.plan.inputs import engines_of
    from specdec.plan.wishes import Wishes
    from specdec.plan.workloads import plan_input

    draft.mkdir(exist_ok=True)
    for name, text in template.files(answers, choice).items():
        (draft / name).write_text(text, encoding="utf-8")
    wishes = Wishes(cloud=answers.cloud, machine=choice.machine, provisioning=answers.provisioning)
    try:
        return [
            plan_document(plan_input(engine, cloud=answers.cloud), wishes)
            for engine in engines_of([], [draft / "values.yaml"], [])
        ]
    except SpecdecError as error:
        if error.code != "price-missing":
            raise
        return [
            plan_document(plan_input(engine, cloud=answers.cloud))
            for engine in engines_of([], [draft / "values.yaml"], [])
        ]


def _machine(answers: Answers, size: int) -> str | None:
    """The smallest machine with so many GPUs that is sold in that way: fewest GPUs, then the most memory for each."""
    shapes = {
        name: shape
        for name, shape in facts.machines()[answers.cloud].items()
        if shape["accelerator"] == answers.accelerator
        and shape["count"] >= size
        and answers.provisioning in shape["provisioning"]
    }
    # The least memory that still stages a checkpoint and runs the engine's processes.
    roomy = {name: shape for name, shape in shapes.items() if shape["memoryGiB"] >= 48 * size} or shapes
    return min(roomy, key=lambda name: (roomy[name]["count"], roomy[name]["memoryGiB"]), default=None)


def _choice(answers: Answers, machine: str, size: int, k: int) -> Choice:
    shape = facts.machines()[answers.cloud][machine]
    each = shape["count"] // size
    return Choice(
        machine=machine,
        zones=_zones(answers),
        tensor_parallel_size=size,
        num_tokens=k,
        cpus=max(1, int(shape["vcpus"] * SHARE / each)),
        memory_gib=max(8, int(shape["memoryGiB"] * SHARE / each)),
        cache_gib=_cache_gib(answers),
        max_nodes=-(-answers.replicas // each) + (1 if answers.provisioning == "spot" else 0),
        engine_version=_engine_version(),
    )


def _zones(answers: Answers) -> tuple[str, ...]:
    """Zones of the region that sell the GPU, as the Terraform module knows them; on EKS three of the region's."""
    import yaml

    if answers.cloud == "eks":
        return tuple(f"{answers.region}{letter}" for letter in "abc")
    file = Path(__file__).resolve().parents[3] / "terraform/modules/gke-gpu-pool/zones.yaml"
    known = (yaml.safe_load(file.read_text(encoding="utf-8")) or {}).get(answers.accelerator)
    if known is None:
        return tuple(f"{answers.region}-{letter}" for letter in "abc")
    found = tuple(zone for zone in known if zone.startswith(f"{answers.region}-"))
    if not found:
        regions = sorted({zone.rsplit("-", 1)[0] for zone in known})
        raise SpecdecError(
            f"no zone of {answers.region} is known to sell {answers.accelerator}",
            code="SD885",
            path="--region",
            fix="one of " + ", ".join(regions),
        )
    return found


def _cache_gib(answers: Answers) -> int:
    """Both checkpoints and a fifth, in tens of GiB; 200 where a size is not known."""
    sizes = [facts.models().get(name, {}).get("checkpointBytes") for name in (answers.model, answers.draft) if name]
    if None in sizes:
        return 200
    return -(-int(sum(sizes) * 1.2 / 2**30) // 10) * 10 + 10


def _engine_version() -> str:
    import yaml

    return str(yaml.safe_load((facts.chart_dir() / "Chart.yaml").read_text(encoding="utf-8"))["appVersion"])


def _check(where: Environment) -> Bill:
    """What CI checks too. Raises FoundWrong or SpecdecError with the first thing that is wrong."""
    manifests: list[Manifest] = parse(helm.render(where.values, [], where.release, where.namespace), where.name)
    errors = [f for f in rules.check(manifests, None) if f.severity == "error"]
    if errors:
        raise FoundWrong(
            f"{errors[0].resource}: {errors[0].message}", code=errors[0].code, path=errors[0].path, fix=errors[0].fix
        )
    target = Target.of(where)
    assert target is not None  # the files that were just written
    for problem in cloud_agreement.check(target, manifests):
        raise SpecdecError(f"{problem.where}: {problem.message}", code=problem.code, fix=problem.fix)
    workloads = engines(manifests)
    place([ask for ask in map(Ask.of, workloads) if ask.gpus], pools.of(target), target.file.name)
    return bill(target, workloads)


def _note(name: str, what: str, folder: Path, found: Bill) -> None:
    """The environment's line in environments/README.md, after the last one."""
    readme = folder.parent / "README.md"
    if not readme.is_file():
        return
    lines = readme.read_text(encoding="utf-8").splitlines()
    last = max((i for i, line in enumerate(lines) if line.startswith("| `") and line.count("|") == 5), default=None)
    if last is None:
        return
    machines = "; ".join(f"{x.nodes} × {x.machine}, {x.provisioning.replace('_', ' ')}" for x in found.lines)
    lines.insert(last + 1, f"| `{name}` | {what} | {machines} | {found.now:.2f} |")
    readme.write_text("\n".join([*lines, ""]), encoding="utf-8")

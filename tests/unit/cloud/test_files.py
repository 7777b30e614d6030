"""Variables as people write them, and pools that mean what the values mean."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from specdec import environments, helm
from specdec.deploy.cloud import agreement, price, tfvars, workspace
from specdec.deploy.cloud.target import Target
from specdec.deploy.problems import Problem
from specdec.errors import SpecdecError
from specdec.manifests import engines, parse

Read = Callable[..., Target]


def test_literals_are_read_as_terraform_reads_them() -> None:
    text = """
# a comment
name = "inference" // another
/* and
   a third */
count = 2
share = 0.5
on    = true
none  = null
zones = ["a", "b",
         "c",
]
pools = { l4 = { machine = "g2", max : 3 }, "k/x" = [{ a = 1 }] }
escaped = "a \\"quote\\", a tab\\t and $${not} a template"
text = <<-EOT
  two
    lines
  EOT
"""
    assert tfvars.parse(text) == {
        "name": "inference", "count": 2, "share": 0.5, "on": True, "none": None, "zones": ["a", "b", "c"],
        "pools": {"l4": {"machine": "g2", "max": 3}, "k/x": [{"a": 1}]},
        "escaped": 'a "quote", a tab\t and ${not} a template', "text": "two\n  lines\n",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a = b", "b is no literal"),
        ('a = "${var.x}"', "is a template"),
        ("a = [1", "a list is not closed"),
        ("a 1", "'=' was expected after a"),
        ("a = 1 2", "goes on with '2'"),
        ("a = {", "a name was expected"),
        ("a = 1\na = 2", "stands there twice"),
        ('\n\na = "unclosed', "line 3"),
        ("a = ;", "cannot read"),
    ],
)
def test_what_is_no_literal_is_named_with_its_line(text: str, word: str) -> None:
    with pytest.raises(SpecdecError, match=r".*") as caught:
        tfvars.parse(text, "terraform.tfvars")
    assert caught.value.code == "SD872"
    assert word in str(caught.value)


def edit(folder: Path, name: str, file: str, old: str, new: str) -> None:
    path = folder / name / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def found(read: Read, name: str = "test") -> list[Problem]:
    target = read(name)
    env = target.env
    return agreement.check(target, parse(helm.render(env.values, [], env.release, env.namespace), name))


def test_pools_and_values_that_agree_have_no_problem(targets: Read) -> None:
    assert found(targets) == []
    assert found(targets, "aws") == []


@pytest.mark.parametrize("name", [one for one in environments.names() if one != "local"])
def test_the_environments_of_the_repository_agree(name: str) -> None:
    target = Target.of(environments.load(name))
    assert target is not None
    env = target.env
    manifests = parse(helm.render(env.values, [], env.release, env.namespace), name)
    assert agreement.check(target, manifests) == []
    bill = price.bill(target, engines(manifests))
    assert 0 < bill.now <= bill.most
    assert bill.unknown == []


VARIABLES, DRAFT = "terraform.tfvars", "values.yaml"
DISAGREE = {
    "a machine of another cloud": (
        VARIABLES,
        '"g2-standard-12"',
        '"g5.12xlarge"',
        "SD861",
        "is a machine of eks",
        "l4 (mach",
    ),
    "a machine misspelt": (
        VARIABLES,
        "g2-standard-12",
        "g2-standart-12",
        "SD861",
        "no g2-standart-12",
        "g2-standard-12",
    ),
    "a pool of another GPU": (VARIABLES, "g2-standard-12", "a2-ultragpu-1g", "SD860", "wants l4", "machine_type"),
    "another machine": (VARIABLES, "g2-standard-12", "g2-standard-16", "SD860", "wants machine g2-", "machineType"),
    "a way it is not sold": (VARIABLES, '"spot"', '"capacity_block"', "SD860", "cannot be bought as", "on_demand"),
    "a zone elsewhere": (VARIABLES, "us-central1-b", "us-east4-a", "SD857", "us-east4-a: not in region", "zones of"),
    "too few nodes": (DRAFT, "version: 0.32.0", "version: 0.32.0\n  replicas: 3", "SD860", "want 3 × l4", "max_nodes"),
    "one state for two": ("backend.platform.hcl", "test/platform", "test/gke", "SD876", "share one state", "prefix"),
    "engines too large": (
        VARIABLES,
        "max_nodes ",
        "gpus_per_engine = 2\n    max_nodes ",
        "SD860",
        "of 2 GPUs",
        "larger",
    ),
}


@pytest.mark.parametrize("what", DISAGREE)
def test_a_disagreement_is_named_before_any_cloud_is_asked(targets: Read, folder: Path, what: str) -> None:
    file, old, new, code, message, fix = DISAGREE[what]
    edit(folder, "test", file, old, new)
    problems = found(targets)
    assert problems[0].code == code
    assert message in problems[0].message
    assert fix in (problems[0].fix or "")


def test_a_gpu_that_the_cloud_lacks_is_refused_by_chart_and_pools(targets: Read, folder: Path) -> None:
    edit(folder, "test", DRAFT, "type: l4, machineType: g2-standard-12", "type: a10g")
    with pytest.raises(SpecdecError, match="a10g"):
        found(targets)


def test_values_of_one_cloud_and_pools_of_the_other_are_refused(targets: Read) -> None:
    on_gke = parse(helm.render(targets().env.values), "test")
    problems = agreement.check(targets("aws"), on_gke)
    assert [problem.code for problem in problems] == ["SD860"]
    assert "a label of GKE" in problems[0].message


def test_a_spread_needs_its_zones(targets: Read) -> None:
    manifests = parse(helm.render(targets().env.values), "test")
    spec = engines(manifests)[0].pod_spec
    spread = {"topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3}
    spec["topologySpreadConstraints"] = [spread]
    assert "spread over 3 zones, and its pools have 2" in agreement.check(targets(), manifests)[0].message
    spread["minDomains"] = 2
    assert agreement.check(targets(), manifests) == []
    spec["nodeSelector"]["topology.kubernetes.io/zone"] = "us-central1-c"
    assert "wants zone us-central1-c" in agreement.check(targets(), manifests)[0].message


def test_an_engine_larger_than_any_machine_is_refused(targets: Read) -> None:
    manifests = parse(helm.render(targets().env.values), "test")
    container = engines(manifests)[0].container
    for part in ("requests", "limits"):
        container["resources"].setdefault(part, {})["nvidia.com/gpu"] = 2
    assert "wants 2 GPUs in one machine, and g2-standard-12 has 1" in agreement.check(targets(), manifests)[0].message


def test_a_platform_that_reads_another_clusters_state_is_refused(targets: Read, folder: Path) -> None:
    (folder / "test" / "platform.tfvars").write_text(
        'cluster_state = { backend = "gcs", config = { bucket = "test-state", prefix = "prod/gke" } }\n'
    )
    problems = found(targets)
    assert [problem.code for problem in problems] == ["SD876"]
    assert "test-state/prod/gke" in problems[0].message


def test_spot_nodes_are_wanted_where_the_pool_has_them(targets: Read, folder: Path) -> None:
    spot = "version: 0.32.0\n  nodeSelector: {cloud.google.com/gke-spot: 'true'}"
    edit(folder, "test", "values.yaml", "version: 0.32.0", spot)
    assert found(targets) == []
    edit(folder, "test", "terraform.tfvars", '"spot"', '"on_demand"')
    assert "wants spot nodes" in found(targets)[0].message


def test_an_environment_of_no_cloud_and_of_two_is_refused(targets: Read, folder: Path) -> None:
    (folder / "test" / "backend.eks.hcl").write_text("")
    with pytest.raises(SpecdecError, match="which cloud"):
        targets()
    for file in (folder / "test").glob("backend.*"):
        file.unlink()
    with pytest.raises(SpecdecError, match="neither"):
        targets()


@pytest.mark.parametrize("key", ["name", "region", "project_id"])
def test_a_variable_that_has_to_be_there_is_named(targets: Read, folder: Path, key: str) -> None:
    path = folder / "test" / "terraform.tfvars"
    path.write_text("\n".join(line for line in path.read_text().splitlines() if not line.startswith(key)))
    with pytest.raises(SpecdecError) as caught:
        getattr(targets(), {"project_id": "project"}.get(key, key))
    assert (caught.value.code, caught.value.path) == ("SD872", key)


def test_the_default_of_a_variable_is_the_roots_own() -> None:
    assert re.fullmatch(r"1\.\d+", workspace.default("eks", "kubernetes_version"))
    assert workspace.default("gke", "deletion_protection") is True
    assert workspace.default("gke", "project_id") is None
    assert workspace.default("gke", "no_such") is None


def test_a_misspelt_environment_gets_the_nearest(folder: Path) -> None:
    assert folder.is_dir()
    with pytest.raises(SpecdecError) as caught:
        environments.load("tset")
    assert caught.value.fix == "did you mean test?"


def test_a_machine_is_paid_for_as_a_whole(targets: Read, folder: Path) -> None:
    edit(folder, "aws", "terraform.tfvars", "g5.12xlarge", "g5.48xlarge")
    edit(folder, "aws", "values.yaml", "g5.12xlarge", "g5.48xlarge")
    edit(folder, "aws", "values.yaml", "version: 0.32.0", "version: 0.32.0\n  replicas: 3")
    target = targets("aws")
    bill = price.bill(target, engines(parse(helm.render(target.env.values, [], "r", "n"), "aws")))
    # Two engines of four GPUs on each machine of eight: three engines take two machines.
    assert bill.lines[0].nodes == 2
    assert bill.now == pytest.approx(2 * 16.288)


def test_a_price_of_another_region_is_said_to_be_approximate(targets: Read, folder: Path) -> None:
    for zone in ("", "-a", "-b"):
        edit(folder, "test", "terraform.tfvars", f'"us-central1{zone}"', f'"europe-west4{zone}"')
    target = targets()
    bill = price.bill(target, engines(parse(helm.render(target.env.values, [], "r", "n"), "test")))
    assert bill.lines[0].approximate
    assert str(bill).startswith("about $")

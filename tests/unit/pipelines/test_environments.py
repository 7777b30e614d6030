"""Every environment plans and validates on a machine without credentials, and costs what its README line says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from specdec import environments, helm
from specdec.cli import main
from specdec.deploy.cloud.price import bill
from specdec.deploy.cloud.target import Target
from specdec.infrastructure import pools
from specdec.infrastructure.agreement import Ask, place
from specdec.manifests import EngineWorkload, engines, parse

ENVIRONMENTS = Path(__file__).resolve().parents[3] / "environments"
NAMES = environments.names()
README = (ENVIRONMENTS / "README.md").read_text()


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials, no cluster, no Terraform on PATH."""
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "KUBECONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return int(stop.value.code or 0)


def engines_of(name: str) -> list[EngineWorkload]:
    where = environments.load(name)
    return engines(parse(helm.render(where.values, [], where.release, where.namespace), name))


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_plans_and_fits(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plan", name, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    plans = list(document["engines"].values()) if "engines" in document else [document]
    assert all(plan["fits"] for plan in plans)
    assert document["terraform"] == "skipped"
    assert not {"SD880", "SD881"} & {warning["code"] for plan in plans for warning in plan["warnings"]}
    assert run("plan", name) == 0
    shown = capsys.readouterr().out
    assert "fits: KV cache" in shown
    has_terraform = Target.of(environments.load(name)) is not None
    assert ("terraform: skipped, so what would change in the cloud is not known" in shown) == has_terraform
    assert (f"make cloud-plan ENV={name}" in shown) == has_terraform


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_counts_with_the_machines_that_the_environment_buys(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    target = Target.of(environments.load(name))
    run("plan", name, "--format", "json")
    document = json.loads(capsys.readouterr().out)
    cost = next(iter(document.get("engines", {"only": document}).values()))["cost"]
    if target is None:
        assert cost is None
        return
    pool = target.pools[0]
    assert (cost["cloud"], cost["machine"], cost["region"], cost["provisioning"]) == (
        target.cloud,
        pool.machine,
        target.region,
        pool.provisioning,
    )


def test_what_was_asked_for_wins_over_what_the_environment_buys(capsys: pytest.CaptureFixture[str]) -> None:
    run("plan", "prod-spot", "--machine", "a3-highgpu-8g", "--format", "json")
    assert json.loads(capsys.readouterr().out)["cost"]["provisioning"] == "on_demand"


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_breaks_no_rule(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("validate", name, "--format", "json") == 0
    assert [f for f in json.loads(capsys.readouterr().out) if f["severity"] == "error"] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_pools_of_an_environment_hold_its_engines(name: str) -> None:
    where = environments.load(name)
    target = Target.of(where)
    asks = [ask for ask in map(Ask.of, engines_of(name)) if ask.gpus]
    if target is None:
        assert asks == []
        return
    assert set(place(asks, pools.of(target), str(target.file))) == {ask.name for ask in asks}


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        ("accelerator.machineType=a3-megagpu-8g", "SD880", "it selects"),
        ("engine.replicas=9", "SD881", "9 replicas of engine speculative, h100 can hold 8"),
        ("modelCache.emptyDir.sizeLimit=1500Gi", "SD880", "GiB of storage, a node has 5400"),
    ],
)
def test_a_plan_warns_where_values_and_pools_disagree(
    value: str, code: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run("plan", "prod", "--set", value, "--format", "json")
    warnings = {w["code"]: w["message"] for w in json.loads(capsys.readouterr().out)["warnings"]}
    assert words in warnings[code]


def test_a_grace_longer_than_a_spot_nodes_notice_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    run("plan", "prod-spot", "--set", "shutdown.timeoutSeconds=60", "--format", "json")
    warnings = {w["code"]: w["message"] for w in json.loads(capsys.readouterr().out)["warnings"]}
    assert "it stops in up to 67 s, a spot node is gone after 15" in warnings["SD880"]


def row(name: str) -> list[str]:
    lines = [line for line in README.splitlines() if line.startswith(f"| `{name}` |")]
    assert len(lines) == 1, f"environments/README.md has {len(lines)} lines on {name}"
    return [cell.strip() for cell in lines[0].strip("|").split("|")]


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_says_what_an_environment_costs_an_hour(name: str) -> None:
    _, purpose, machines, price = row(name)
    assert len(purpose) > 20
    where = environments.load(name)
    target = Target.of(where)
    if target is None:
        assert (machines, price) == ("none", "0.00")
        return
    found = bill(target, engines_of(name))
    assert found.unknown == []
    assert float(price) == pytest.approx(found.now, abs=0.005)
    said = [f"{line.nodes} × {line.machine}, {line.provisioning.replace('_', ' ')}" for line in found.lines]
    assert machines == "; ".join(said)


def test_the_readme_names_no_environment_that_is_not_there() -> None:
    assert re.findall(r"^\| `([\w-]+)` \| [^|]+ \| [^|]+ \| [\d.]+ \|$", README, re.MULTILINE) == sorted(
        NAMES, key=lambda name: README.index(f"| `{name}` |")
    )


def test_an_environment_is_of_files_that_are_explained() -> None:
    for directory in (ENVIRONMENTS / name for name in NAMES):
        for file in directory.iterdir():
            assert file.name.startswith(".") or f"`{file.name}`" in README, f"{file} is not in environments/README.md"


def test_the_local_pair_is_planned_as_it_is_made() -> None:
    """The configurations that the plan reads are those that the models are built with."""
    source = (ENVIRONMENTS.parent / "scripts/specdec/local/pair.py").read_text()

    def constant(name: str) -> int:
        match = re.search(rf"^{name} = (\d+)", source, re.MULTILINE)
        assert match, f"pair.py has no {name}"
        return int(match[1])

    hidden, heads, head = map(int, re.search(r"HIDDEN, HEADS, HEAD = (\d+), (\d+), (\d+)", source).groups())  # type: ignore[union-attr]
    shape = {"hidden_size": hidden, "intermediate_size": 2 * hidden, "head_dim": head, "num_attention_heads": heads,
             "num_key_value_heads": heads, "vocab_size": constant("VOCABULARY")}  # fmt: skip
    for name, layers, positions in (("target", constant("LAYERS"), "TARGET"), ("draft", 1, "DRAFT")):
        config = json.loads((ENVIRONMENTS / f"local/models/{name}/config.json").read_text())
        own = {"num_hidden_layers": layers, "max_position_embeddings": constant(f"{positions}_POSITIONS")}
        assert (shape | own).items() <= config.items()


def test_what_the_guide_on_environments_says_to_set_is_there() -> None:
    """Values and variables in the table of what to bring along exist under these names."""
    import yaml

    guide = (ENVIRONMENTS.parent / "docs/environments.md").read_text().split("## Bring your own")[1].split("\n## ")[0]
    values = yaml.safe_load((ENVIRONMENTS.parent / "helm/vllm-speculative/values.yaml").read_text())
    variables = "\n".join(file.read_text() for file in (ENVIRONMENTS.parent / "terraform").glob("*/variables.tf"))
    checked = 0
    for row in guide.splitlines():
        if not row.startswith("| ") or row.startswith("| you have"):
            continue
        for code in re.findall(r"`([^`]+)`", row.split("|")[2]):
            if re.fullmatch(r"[a-z]\w+(\.\w+)+(: \w+)?", code) and code.split(".")[0] in values:
                found = values
                for key in code.split(":")[0].split("."):
                    assert key in found, f"the chart has no value {code}"
                    found = found[key]
                checked += 1
            elif match := re.match(r"([a-z]+(?:_[a-z]+)*)(?: = |$)", code):
                assert f'variable "{match[1]}"' in variables, f"no root has a variable {match[1]}"
                checked += 1
    assert checked >= 15

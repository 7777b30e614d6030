"""A release: the chart with its images' digests, signed by what arrived in the registry."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from specdec import facts, helm
from specdec.cli import main
from specdec.errors import SpecdecError
from specdec.package import build, registry
from workflows import ROOT

ENGINE, ROUTER = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"


def known() -> dict[str, str]:
    found = build.images(facts.chart_dir())
    return {found["engine"]: ENGINE, found["router"]: ROUTER}


def nobody(image: str) -> str:
    raise AssertionError(f"the registry was asked for {image}")


def test_a_package_pins_its_images_and_leaves_tests_out(tmp_path: Path) -> None:
    made = build.package(tmp_path, None, known(), nobody)
    with tarfile.open(made.chart) as archive:
        names = {name.removeprefix("vllm-speculative/") for name in archive.getnames()}
    assert {"Chart.yaml", "values.schema.json", "pinned-images.yaml"} <= names
    assert not [name for name in names if name.startswith(("ci/", "rendered/"))]
    values = ROOT / "environments/prod/values.yaml"
    arguments = [helm.executable(), "template", "x", str(made.chart), "-f", str(made.pinned), "-f", str(values)]
    text = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    images = {line.split("image: ")[1].strip('"') for line in text.splitlines() if line.strip().startswith("image: ")}
    assert images == {f"vllm/vllm-openai@{ENGINE}", f"vllm/vllm-router@{ROUTER}"}


@pytest.fixture
def chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the chart with a changelog beside it, as in the repository."""
    copy = tmp_path / "helm/vllm-speculative"
    shutil.copytree(facts.chart_dir(), copy, ignore=shutil.ignore_patterns("ci", "rendered"))
    (tmp_path / "CHANGELOG.md").write_text("## [0.1.0]\n")
    monkeypatch.setenv("SPECDEC_CHART", str(copy))
    facts.load.cache_clear()
    return copy


@pytest.mark.usefixtures("chart")
def test_a_tag_is_the_charts_version_and_in_the_changelog(tmp_path: Path) -> None:
    assert build.package(tmp_path / "dist", "v0.1.0", known(), nobody).version == "0.1.0"
    with pytest.raises(SpecdecError, match="the tag is") as refused:
        build.package(tmp_path / "dist", "v0.2.0", known(), nobody)
    assert refused.value.code == "SD891"
    (tmp_path / "CHANGELOG.md").write_text("## [Unreleased]\n")
    with pytest.raises(SpecdecError) as refused:
        build.package(tmp_path / "dist", "v0.1.0", known(), nobody)
    assert refused.value.code == "SD892"


def test_a_chart_that_helm_cannot_package_says_so(chart: Path, tmp_path: Path) -> None:
    (chart / "Chart.yaml").write_text("version: 0.1.0\nappVersion: 0.32.0\nname: ''\n")
    facts.load.cache_clear()
    with pytest.raises(SpecdecError, match="helm package") as refused:
        build.package(tmp_path / "dist", None, known(), nobody)
    assert refused.value.code == "SD893"


@pytest.mark.parametrize(
    ("digests", "fix"),
    [
        ({"vllm/vllm-opneai:v1": ENGINE}, "one of vllm/vllm-openai:"),
        (dict.fromkeys(known(), "sha256:short"), "sha256 and 64 digits"),
    ],
)
def test_a_wrong_digest_is_refused(tmp_path: Path, digests: dict[str, str], fix: str) -> None:
    with pytest.raises(SpecdecError) as refused:
        build.package(tmp_path, None, digests, nobody)
    assert refused.value.code == "SD890"
    assert fix in str(refused.value.fix)
    assert not list(tmp_path.iterdir())


class Registry(BaseHTTPRequestHandler):
    """Answers like a registry that gives anonymous tokens."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        assert self.path == "/token?service=here&scope=repository%3Avllm%2Fengine%3Apull"
        self._answer(200, json.dumps({"token": "t"}).encode())

    def do_HEAD(self) -> None:
        host, _, name = self.headers["Host"], *self.path.split("/manifests/")
        if "open" not in self.path and self.headers.get("Authorization") != "Bearer t":
            challenge = f'Bearer realm="http://{host}/token",service="here",scope="repository:vllm/engine:pull"'
            self._answer(401, WWW_Authenticate=challenge if "closed" not in self.path else 'Basic realm="x"')
        elif "application/vnd.oci.image.index.v1+json" not in self.headers["Accept"]:
            self._answer(406)
        elif name == "gone":
            self._answer(404)
        elif name == "broken":
            self._answer(500)
        else:
            self._answer(200, **({} if name == "silent" else {"Docker_Content_Digest": ENGINE}))


@pytest.fixture
def server() -> Iterator[str]:
    http = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{http.server_port}"
    http.shutdown()
    http.server_close()


def test_a_digest_is_asked_of_the_registry(server: str) -> None:
    assert registry.digest(f"{server}/vllm/engine:v1") == ENGINE
    assert registry.digest(f"{server}/open/engine:v1") == ENGINE


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("vllm/engine:gone", "no such image or tag"),
        ("vllm/engine:broken", "answers 500"),
        ("vllm/engine:silent", "says no digest"),
        ("closed/engine:v1", "wants a login"),
        ("vllm/engine", "names no tag"),
    ],
)
def test_an_image_without_a_digest_says_why(server: str, image: str, message: str) -> None:
    with pytest.raises(SpecdecError, match=message) as refused:
        registry.digest(f"{server}/{image}")
    assert refused.value.code == "SD890"


def test_a_registry_that_is_not_there_is_said() -> None:
    with pytest.raises(SpecdecError, match="cannot be reached"):
        registry.digest("127.0.0.1:9/vllm/engine:v1")


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("vllm/vllm-openai:v1", ("registry-1.docker.io", "vllm/vllm-openai", "v1")),
        ("busybox:1", ("registry-1.docker.io", "library/busybox", "1")),
        ("ghcr.io/a/b:1", ("ghcr.io", "a/b", "1")),
        ("localhost:5000/a:1", ("localhost:5000", "a", "1")),
    ],
)
def test_images_are_split_as_docker_does(image: str, parts: tuple[str, str, str]) -> None:
    assert registry.split(image) == parts


def test_the_command_says_what_it_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digests = [word for image, digest in known().items() for word in ("--digest", f"{image}={digest}")]
    with pytest.raises(SystemExit) as stop:
        main(["package", "-o", str(tmp_path), "--format", "json", *digests])
    assert stop.value.code == 0
    made = json.loads(capsys.readouterr().out)
    assert Path(made["chart"]).is_file()
    assert yaml.safe_load(Path(made["pinned"]).read_text())["engine"]["image"]["digest"] == ENGINE


def push(where: Path, pushed: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """scripts/pipeline/push-chart with a helm and a cosign that only write down what they were asked."""
    tools = where / "tools"
    tools.mkdir()
    for name, script in (("helm", f"[ $1 = push ] && printf '%s\\n' '{pushed}' >&2 || true"), ("cosign", "")):
        (tools / name).write_text(f'#!/usr/bin/env bash\necho "{name} $@" >>"{where}/said"\n{script}\n')
        (tools / name).chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"
    return subprocess.run(
        [str(ROOT / "scripts/pipeline/push-chart"), "ghcr.io/me/charts", str(where / "dist")],
        env={**os.environ, "PATH": path, **variables}, capture_output=True, text=True,
    )  # fmt: skip


def test_what_arrived_is_signed_by_its_digest(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist/vllm-speculative-0.1.0.tgz").write_text("")
    done = push(tmp_path, f"Pushed: x\nDigest: {ENGINE}", REGISTRY_USER="me", REGISTRY_PASSWORD="secret")
    assert done.returncode == 0, done.stderr
    said = (tmp_path / "said").read_text().splitlines()
    assert said[-1] == f"cosign sign --yes ghcr.io/me/charts/vllm-speculative@{ENGINE}"
    assert said[0] == "helm registry login ghcr.io --username me --password-stdin"
    assert "secret" not in "".join(said)


def test_nothing_is_signed_that_did_not_arrive(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    assert push(tmp_path, "").returncode == 2
    (tmp_path / "dist/vllm-speculative-0.1.0.tgz").write_text("")
    shutil.rmtree(tmp_path / "tools")
    done = push(tmp_path, "Pushed: x")
    assert done.returncode == 1
    assert "cosign" not in (tmp_path / "said").read_text()

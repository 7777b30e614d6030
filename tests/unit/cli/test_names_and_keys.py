"""Names that Kubernetes refuses, and keys that YAML takes twice: said before anything is rendered."""

from __future__ import annotations

from pathlib import Path

import pytest
from specdec import environments, helm, rules
from specdec.errors import SpecdecError
from specdec.objects import parse

LONG = "a" * 63


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESPACE", raising=False)
    monkeypatch.delenv("RELEASE", raising=False)


@pytest.mark.parametrize("name", ["Bad_NS", "bad_ns", "-a", "a-", "a.b", "Ä", "a b", "", LONG + "a", "a\n"])
@pytest.mark.parametrize("what", ["namespace", "release"])
def test_a_name_that_kubernetes_refuses(name: str, what: str) -> None:
    with pytest.raises(SpecdecError) as refused:
        environments.choose("prod", None, **{what: name})
    assert (refused.value.code, refused.value.path, refused.value.exit_code) == (f"bad-{what}", f"--{what}", 2)
    assert repr(name) in refused.value.message


@pytest.mark.parametrize(("given", "meant"), [("Bad_NS", "bad-ns"), ("Team A", "team-a"), ("___", "ai-inference")])
def test_the_name_that_may_have_been_meant(given: str, meant: str) -> None:
    with pytest.raises(SpecdecError) as refused:
        environments.choose("prod", None, namespace=given)
    assert refused.value.fix == f"for example {meant}"


@pytest.mark.parametrize("name", ["a", "ai-inference", "9", "team-1", LONG])
def test_names_that_are_fine(name: str) -> None:
    assert environments.choose("prod", None, namespace=name).namespace == name


def test_a_release_has_53_characters_at_most() -> None:
    assert environments.choose("prod", None, release=LONG[:53]).release == LONG[:53]
    with pytest.raises(SpecdecError, match="53 characters"):
        environments.choose("prod", None, release=LONG[:54])


def test_a_variable_is_named_where_it_was_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NAMESPACE", "Bad")
    (tmp_path / "values.yaml").touch()
    with pytest.raises(SpecdecError) as refused:
        environments.choose(None, [tmp_path / "values.yaml"])
    assert refused.value.path == "NAMESPACE"


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("engine:\n  replicas: 2\n  replicas: 3\n", 3, "engine.replicas"),
        ("engine: {}\n---\nrouter: {replicas: 1, replicas: 2}\n", 3, "router.replicas"),
        ("speculative: {numTokens: 2}\nengine: {}\nspeculative: {numTokens: 3}\n", 3, "speculative"),
        ("engine:\n  extraEnv:\n    - name: A\n      value: x\n      value: y\n", 5, "engine.extraEnv[0].value"),
    ],
)
def test_a_key_that_stands_twice_in_a_values_file(tmp_path: Path, text: str, line: int, key: str) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SpecdecError) as refused:
        helm.render([file])
    error = refused.value
    assert (error.code, error.file, error.path, error.exit_code) == ("duplicate-key", f"{file}:{line}", key, 2)


def test_the_same_key_in_two_mappings_or_two_files_is_fine(tmp_path: Path) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text("engine: {replicas: 2}\nbaseline: {replicas: 1}\n", encoding="utf-8")
    other.write_text("engine: {replicas: 3}\n", encoding="utf-8")
    assert "replicas: 3" in helm.render([environments.environments_dir() / "prod" / "values.yaml", one, other])


def test_a_key_that_stands_twice_in_a_manifest() -> None:
    twice = "kind: Pod\nmetadata: {name: a}\nspec:\n  nodeName: a\n  nodeName: b\n"
    (finding,) = [found for found in rules.check(parse(twice)) if found.code == "SD002"]
    assert finding.message == "spec.nodeName stands on line 4 and on line 5; the last holds"
    assert "SD002" not in {found.code for found in rules.check(parse(twice.replace("  nodeName: b\n", "")))}

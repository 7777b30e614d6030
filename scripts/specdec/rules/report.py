"""Findings as other programs want them: SARIF for code scanning, GitHub's annotations, JUnit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from specdec import __version__
from specdec.rules.model import Finding, Rule

LEVELS = {"error": "error", "warning": "warning", "note": "note"}


def sarif(findings: Sequence[Finding], rules: dict[str, Rule]) -> str:
    """SARIF 2.1.0, https://docs.oasis-open.org/sarif/sarif/v2.1.0/."""
    order = list(rules)
    driver: dict[str, Any] = {
        "name": "specdec",
        "version": __version__,
        "rules": [
            {
                "id": rule.code,
                "name": rule.name,
                "shortDescription": {"text": rule.name.replace("-", " ")},
                "fullDescription": {"text": rule.reason},
                "help": {"text": f"{rule.fix}\nSource: {rule.source}"},
                "defaultConfiguration": {"level": LEVELS[rule.severity.value]},
            }
            for rule in rules.values()
        ],
    }
    results = [
        {
            "ruleId": finding.code,
            **({"ruleIndex": order.index(finding.code)} if finding.code in rules else {}),
            "level": LEVELS[finding.severity],
            "message": {"text": f"{finding.message}. Fix: {finding.fix}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": quote(finding.file if finding.file != "-" else "stdin")},
                        "region": {"startLine": finding.line},
                    },
                    "logicalLocations": [{"fullyQualifiedName": f"{finding.resource}:{finding.path}"}],
                }
            ],
            **_suppressed(finding),
        }
        for finding in findings
    ]
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(document, indent=2)


def _suppressed(finding: Finding) -> dict[str, Any]:
    """What SARIF says of a finding that somebody has accepted in the file itself."""
    if finding.ignored is None:
        return {}
    return {"suppressions": [{"kind": "inSource", "justification": finding.ignored}]}


def github(findings: Sequence[Finding], rules: dict[str, Rule]) -> str:
    """Workflow commands, https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands."""

    def escaped(text: str, inside: str = "") -> str:
        for character in "%\r\n" + inside:
            text = text.replace(character, f"%{ord(character):02X}")
        return text

    return "\n".join(
        f"::{'notice' if finding.severity == 'note' or finding.ignored else finding.severity} "
        f"file={escaped(finding.file, ':,')},line={finding.line},"
        f"title={escaped(_title(finding, rules), ':,')}"
        f"::{escaped(f'{finding.resource}: {finding.message}. Fix: {finding.fix}')}"
        for finding in findings
    )


def _title(finding: Finding, rules: dict[str, Rule]) -> str:
    """The code, with the rule's name where it is a rule's: Terraform's have none."""
    return f"{finding.code} {rules[finding.code].name}" if finding.code in rules else finding.code


def junit(findings: Sequence[Finding], resources: Sequence[tuple[str, str]]) -> str:
    """One test case for each (file, resource); its errors are failures, what else was found is its output."""
    suite = ElementTree.Element("testsuite", name="specdec validate", tests="0")
    failed = 0
    everything = dict.fromkeys([*resources, *((finding.file, finding.resource) for finding in findings)])
    for file, resource in everything:
        case = ElementTree.SubElement(suite, "testcase", classname=file, name=resource)
        own = [finding for finding in findings if (finding.file, finding.resource) == (file, resource)]
        errors = [finding for finding in own if finding.severity == "error" and finding.ignored is None]
        failed += bool(errors)
        for finding in errors:
            failure = ElementTree.SubElement(case, "failure", type=finding.code, message=_printable(finding.message))
            failure.text = _printable(f"{finding.file}:{finding.line} {finding.path}\nfix: {finding.fix}")
        others = [f"{finding.code} {finding.message}" for finding in own if finding not in errors]
        if others:
            ElementTree.SubElement(case, "system-out").text = _printable("\n".join(others))
    suite.set("tests", str(len(everything)))
    suite.set("failures", str(failed))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def _printable(text: str) -> str:
    """Without the control characters that XML cannot hold."""
    return "".join(character for character in text if character >= " " or character in "\n\t")

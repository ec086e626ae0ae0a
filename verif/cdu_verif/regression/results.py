"""Results of a regression: cocotb's files and the benches' records, as JUnit XML, a readable report, and JSON."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdu_tools.report import Report, json_text

from cdu_verif.blocks import record
from cdu_verif.regression.plan import Run
from cdu_verif.simulation.cover_points import Bins, merged

PASSED, FAILED, SKIPPED = "pass", "FAIL", "skip"
#: Headings of the last two parts of report.md: measurements of the tests, and the list of all tests.
MEASURED, TESTS = "## Measured", "## Tests"


@dataclass(frozen=True)
class TestResult:
    """One cocotb test with one set of parameters."""

    __test__ = False  # not a test of pytest

    group: str  #: block and parameters
    name: str
    status: str  #: PASSED, FAILED or SKIPPED
    seed: int
    seconds: float
    message: str = ""
    cases: int = 0
    cycles: int = 0
    figures: dict[str, Any] = field(default_factory=dict)
    covered: dict[str, list[str]] = field(default_factory=dict)  #: bins of cover points that the test hit
    measurements: list[dict[str, Any]] = field(default_factory=list)  #: rows of a table
    repeat: str = ""  #: command line that runs this test alone


def read(
    group: str, results: Path, records: Path, seed: int, repeat: str, crash: str, *, expects_tests: bool = True
) -> list[TestResult]:
    """Return the results of one simulation.

    Parameters
    ----------
    group
        Block and parameters.
    results
        XML file that cocotb wrote; if it is missing or broken the simulation counts as one failed test.
    records
        File that the benches wrote: cases, cycles and figures by test.
    seed
        Seed of the simulation.
    repeat
        Command that runs the group; the test's name is added to it.
    crash
        Message for a simulation without results.
    expects_tests
        Whether a simulation without a single test is a failure.
    """
    facts: dict[str, dict[str, Any]] = {}
    if records.is_file():
        for line in records.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            facts[record["test"]] = record
    try:
        cases = list(ET.parse(results).iter("testcase"))
    except (OSError, ET.ParseError):
        return [TestResult(group, "simulation", FAILED, seed, 0.0, crash, repeat=repeat)]
    if not cases and expects_tests:
        return [TestResult(group, "simulation", FAILED, seed, 0.0, f"no test ran: {crash}", repeat=repeat)]
    found = []
    for case in cases:
        name = case.get("name", "")
        bad = case.find("failure")
        bad = case.find("error") if bad is None else bad
        skipped = case.find("skipped") is not None
        status = FAILED if bad is not None else SKIPPED if skipped else PASSED
        message = "" if bad is None else (bad.get("message") or bad.text or "no message").strip()
        fact = facts.get(name, {})
        if status is PASSED and not fact:
            status, message = FAILED, "the test reported nothing"
        found.append(
            TestResult(
                group,
                name,
                status,
                seed,
                float(case.get("time", "0")),
                message,
                fact.get("cases", 0),
                fact.get("cycles", 0),
                fact.get("figures", {}),
                fact.get("covered", {}) if status is PASSED else {},
                fact.get("measurements", []),
                f"{repeat} --test '{name}'",
            )
        )
    return found


def junit(results: Sequence[TestResult]) -> str:
    """Return JUnit XML: one suite per group, one testcase per test."""
    top = ET.Element("testsuites", {"name": "cdu verify", **_counts(results)})
    for group in dict.fromkeys(result.group for result in results):
        members = [result for result in results if result.group == group]
        suite = ET.SubElement(top, "testsuite", {"name": group, **_counts(members)})
        for result in members:
            case = ET.SubElement(suite, "testcase", classname=group, name=result.name, time=f"{result.seconds:.3f}")
            properties = ET.SubElement(case, "properties")
            for key, value in (("seed", result.seed), ("cases", result.cases), ("cycles", result.cycles)):
                ET.SubElement(properties, "property", name=key, value=str(value))
            if result.status == FAILED:
                failure = ET.SubElement(
                    case, "failure", message=_printable(result.message.splitlines()[0] if result.message else "")
                )
                failure.text = _printable(f"{result.message}\nrepeat: {result.repeat}")
            elif result.status == SKIPPED:
                ET.SubElement(case, "skipped")
    ET.indent(top)
    return ET.tostring(top, encoding="unicode", xml_declaration=True) + "\n"


def functional_coverage(results: Sequence[TestResult], bins: Bins) -> dict[str, dict[str, Any]]:
    """Return for every cover point its ``bins``, the number ``hit`` by passed tests, and the ``missing`` ones."""
    hits = merged(result.covered for result in results)
    found: dict[str, dict[str, Any]] = {}
    for point, names in bins.items():
        wanted = dict.fromkeys(names)
        missing = [name for name in wanted if name not in hits.get(point, ())]
        found[point] = {"bins": len(wanted), "hit": len(wanted) - len(missing), "missing": missing}
    return found


def page(
    results: Sequence[TestResult], command: str, coverage: dict[str, Any], functional: dict[str, dict[str, Any]] | None = None
) -> str:
    """Return the text of report.md."""
    failures = [result for result in results if result.status == FAILED]
    lines = ["# Verification report", "", f"Command: `{command}`", ""]
    passed = sum(result.status == PASSED for result in results)
    skipped = len(results) - passed - len(failures)
    lines += [f"**{len(results)} tests: {passed} passed, {len(failures)} failed, {skipped} skipped.**", ""]
    if failures:
        lines += ["## Failures", ""]
        for result in failures:
            lines += [
                f"- {result.group} `{result.name}`",
                "",
                "  ```",
                *(f"  {line}" for line in result.message.splitlines()[:12]),
            ]
            lines += [f"  {result.repeat}", "  ```", ""]
    lines += [
        "## By block",
        "",
        "| block | tests | passed | failed | skipped | cases | cycles |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for group in dict.fromkeys(result.group for result in results):
        of_group = [result for result in results if result.group == group]
        counts = (sum(result.status == status for result in of_group) for status in (PASSED, FAILED, SKIPPED))
        work = (sum(result.cases for result in of_group), sum(result.cycles for result in of_group))
        lines.append("| " + " | ".join(map(str, (group, len(of_group), *counts, *work))) + " |")
    if coverage:
        lines += [
            "",
            "## Coverage of the generated Verilog",
            "",
            "| block | kind | points | hit | % |",
            "|---|---|--:|--:|--:|",
        ]
        for group, kinds in coverage.items():
            for kind, counts in kinds.items():
                lines.append(f"| {group} | {kind} | {counts['points']} | {counts['hit']} | {counts['percent']} |")
    if functional:
        lines += ["", "## Cover points", "", "| point | bins | hit | missing |", "|---|--:|--:|---|"]
        for point, part in functional.items():
            lines.append(f"| {point} | {part['bins']} | {part['hit']} | {'; '.join(part['missing'])} |")
    measured = [(result, name, text) for result in results for name, text in result.figures.items()]
    if measured:
        lines += ["", MEASURED, "", "| block | test | what | figure |", "|---|---|---|---|"]
        lines += [f"| {result.group} | {result.name} | {name} | {text} |" for result, name, text in measured]
    lines += ["", TESTS, "", "| block | test | cases | cycles | seed | result |", "|---|---|--:|--:|--:|---|"]
    for result in results:
        lines.append(f"| {result.group} | {result.name} | {result.cases} | {result.cycles} | {result.seed} | {result.status} |")
    return "\n".join([*lines, ""])


def summary(
    results: Sequence[TestResult],
    command: str,
    coverage: dict[str, Any],
    functional: dict[str, dict[str, Any]] | None = None,
    runs: Sequence[Run] = (),
) -> dict[str, Any]:
    """Return the content of report.json; ``runs`` give scripts the folder of a group, and the bins that its block must hit."""
    return {
        "command": command,
        "tests": len(results),
        "failures": sum(result.status == FAILED for result in results),
        "skipped": sum(result.status == SKIPPED for result in results),
        "seeds": {result.group: result.seed for result in results},
        "coverage": coverage,
        "cover_points": functional or {},
        "runs": [
            {"group": run.label, "block": run.block, "folder": run.folder, "bins": record(run.block).bins(run.config)}
            for run in runs
        ],
        "results": [vars(result) for result in results],
    }


def report(
    results: Sequence[TestResult],
    command: str,
    coverage: dict[str, Any],
    bins: Bins | None = None,
    runs: Sequence[Run] = (),
) -> Report:
    """Return the report of a regression: results.xml, report.md and report.json.

    ``bins`` are those that the tests must hit, ``runs`` those that the results belong to.
    """
    functional = functional_coverage(results, bins or {})
    content = summary(results, command, coverage, functional, runs)
    passed = content["tests"] - content["failures"] - content["skipped"]
    return Report(
        content,
        {
            "results.xml": junit(results),
            "report.md": page(results, command, coverage, functional),
            "report.json": json_text(content),
        },
        [f"{content['tests']} tests, {passed} passed, {content['failures']} failed"],
        [f"failed: {test.group} {test.name}\n  repeat: {test.repeat}" for test in results if test.status == FAILED],
    )


def _counts(results: Sequence[TestResult]) -> dict[str, str]:
    return {
        "tests": str(len(results)),
        "failures": str(sum(result.status == FAILED for result in results)),
        "skipped": str(sum(result.status == SKIPPED for result in results)),
        "time": f"{sum(result.seconds for result in results):.3f}",
    }


def _printable(text: str) -> str:
    """Return text without characters that XML does not allow."""
    return "".join(
        letter for letter in text if letter in "\t\n" or 0x20 <= ord(letter) < 0xD800 or 0xE000 <= ord(letter) < 0xFFFE
    )

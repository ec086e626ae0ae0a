"""``cdu formal``: parallel proofs, and their reports."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cdu_tools.errors import MissingToolError
from cdu_tools.marks import Marks
from cdu_tools.report import Report, json_text

from cdu_verif.formal.proof import Property, Verdict, prove
from cdu_verif.regression import results
from cdu_verif.regression.results import FAILED, PASSED, TestResult

#: Marks of the part of a page that :func:`put_table` writes.
MARKS = Marks("proofs")
#: Text of the last column for a property that holds.
_PROVEN = "proven"
_HEAD = ("| block | property | statement | method | holds | s | result |", "|---|---|---|---|---|--:|---|")


@dataclass(frozen=True)
class Proof:
    """A property with its verdict and the seconds it took."""

    what: Property
    verdict: Verdict
    seconds: float


def run(
    planned: Sequence[Property], folder: Path, notify: Callable[[Proof], None] | None = None, workers: int | None = None
) -> list[Proof]:
    """Prove everything in ``folder/proofs``, as many at a time as there are processors; return proofs in the planned order."""

    def one(what: Property) -> Proof:
        place = folder / "proofs" / _file_name(what.label)
        shutil.rmtree(place, ignore_errors=True)
        begin = time.monotonic()
        try:
            verdict = prove(what, place)
        except MissingToolError:
            raise
        except Exception as error:  # a device that cannot be generated fails its own proofs and no others
            verdict = Verdict(False, f"{type(error).__name__}: {error}")
        proof = Proof(what, verdict, time.monotonic() - begin)
        if notify:
            notify(proof)
        return proof

    # The solvers are processes of their own, so threads suffice.
    with ThreadPoolExecutor(workers or len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(one, planned))


def report(proofs: Sequence[Proof], command: str) -> Report:
    """Return the report of proofs: report.md, report.json and results.xml (JUnit); ``failed`` has the unproven properties."""
    failures = [proof for proof in proofs if not proof.verdict.proven]
    said = f"{len(proofs)} properties: {len(proofs) - len(failures)} proven, {len(failures)} not."
    lines = ["# Proofs", "", f"Command: `{command}`", "", f"**{said}**", ""]
    lines += [f"- {proof.what.label}: {_explained(proof.verdict)}" for proof in failures]
    lines += ["", table(proofs)]
    content = {
        "tests": len(proofs),
        "failures": len(failures),
        "command": command,
        "proofs": [
            {
                "block": proof.what.block,
                "property": proof.what.name,
                "statement": proof.what.statement,
                "engine": proof.what.method.engine,
                "reach": proof.what.method.reach,
                "proven": proof.verdict.proven,
                "message": proof.verdict.message,
                "trace": str(proof.verdict.trace) if proof.verdict.trace else None,
                "seconds": round(proof.seconds, 1),
            }
            for proof in proofs
        ],
    }
    tests = [
        TestResult(
            proof.what.block,
            proof.what.name,
            PASSED if proof.verdict.proven else FAILED,
            0,
            proof.seconds,
            "" if proof.verdict.proven else _explained(proof.verdict),
            repeat=command,
        )
        for proof in proofs
    ]
    return Report(
        content,
        {"results.xml": results.junit(tests), "report.md": "\n".join(lines), "report.json": json_text(content)},
        [said],
        [f"not proven: {proof.what.label}: {_explained(proof.verdict)}" for proof in failures],
    )


def table(proofs: Sequence[Proof]) -> str:
    """Return all proofs as a table in Markdown."""
    return "\n".join([*_HEAD, *_rows(proofs).values(), ""])


def _rows(proofs: Sequence[Proof]) -> dict[tuple[str, str], str]:
    """Return the lines of the table, by block and property."""
    lines = {}
    for proof in proofs:
        what, method = proof.what, proof.what.method
        reach = method.reach if method.reach == "unbounded" else f"within {method.reach} from reset"
        result = _PROVEN if proof.verdict.proven else "NOT PROVEN"
        cells = (what.block, what.name, what.statement, method.engine, reach, f"{proof.seconds:.0f}", result)
        lines[what.block, what.name] = f"| {' | '.join(cells)} |"
    return lines


def put_table(page: Path, proofs: Sequence[Proof], command: str, order: Sequence[Property] = ()) -> None:
    """Write the table between the marks of a page.

    ``order`` has all existing properties: rows of properties that were not run are kept, with the commands above them, all
    rows are sorted, and rows of properties that no longer exist are removed. Without ``order`` the table has ``proofs`` alone.
    Raises UserError if the page or its marks are missing.
    """
    _, stale, _ = MARKS.parts(page)
    fresh = _rows(proofs)
    known = {cells: line for line in stale.splitlines() if (cells := _names(line))} | fresh
    places = [(one.block, one.name) for one in order] or list(fresh)
    rows = {place: known[place] for place in places if place in known}
    own = f"`{command}`"
    earlier = [line for line in stale.splitlines() if line.startswith("`") and line != own] if rows.keys() - fresh else []
    lines = ["", *earlier, own, "", *_HEAD, *rows.values(), ""]
    MARKS.put(page, "\n".join(lines))


def proven(page: Path) -> set[tuple[str, str]]:
    """Return block, without its parameters, and name of each property with a row ``proven`` in the table of a page.

    A property with another row of the same block that is not ``proven`` is left out.
    """
    results: dict[tuple[str, str], set[str]] = {}
    for line in MARKS.parts(page)[1].splitlines():
        if names := _names(line):
            results.setdefault((names[0].partition("[")[0], names[1]), set()).add(line.rstrip("| ").rpartition("| ")[2])
    return {names for names, found in results.items() if found == {_PROVEN}}


def _names(line: str) -> tuple[str, str] | None:
    """Return block and property of a row of the table."""
    cells = [cell.strip() for cell in line.split(" | ")]
    return (cells[0].removeprefix("| "), cells[1]) if len(cells) == len(_HEAD[0].split(" | ")) and line not in _HEAD else None


def _explained(verdict: Verdict) -> str:
    return f"{verdict.message}; waveform: {verdict.trace}" if verdict.trace else verdict.message


def _file_name(label: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-" else "." for letter in label)

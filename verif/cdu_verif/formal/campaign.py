"""``cdu formal``: proofs side by side, and the reports."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdu_tools.errors import MissingToolError, UserError
from cdu_tools.files import write_whole

from cdu_verif.formal.proof import Property, Verdict, prove
from cdu_verif.regression import results
from cdu_verif.regression.results import FAILED, PASSED, TestResult

#: Marks of the part of a page that :func:`put_table` writes.
TABLE_BEGIN, TABLE_END = "<!-- proofs: begin -->", "<!-- proofs: end -->"
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
    """Prove everything, in ``folder/proofs``, as many at a time as there are processors for it; in the order of ``planned``."""

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


def write(folder: Path, proofs: Sequence[Proof], command: str) -> dict[str, Any]:
    """Write report.md, report.json and results.xml (JUnit); returns the content of report.json."""
    failures = [proof for proof in proofs if not proof.verdict.proven]
    lines = ["# Proofs", "", f"Command: `{command}`", ""]
    lines += [f"**{len(proofs)} properties: {len(proofs) - len(failures)} proven, {len(failures)} not.**", ""]
    for proof in failures:
        lines += [f"- {proof.what.label}: {_explained(proof.verdict)}"]
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
    write_whole(folder / "results.xml", results.junit(tests))
    write_whole(folder / "report.md", "\n".join(lines))
    write_whole(folder / "report.json", json.dumps(content, indent=2) + "\n")
    return content


def table(proofs: Sequence[Proof]) -> str:
    """All proofs as a table in Markdown."""
    return "\n".join([*_HEAD, *_rows(proofs).values(), ""])


def _rows(proofs: Sequence[Proof]) -> dict[tuple[str, str], str]:
    """The lines of the table, by block and property."""
    lines = {}
    for proof in proofs:
        what, method = proof.what, proof.what.method
        reach = method.reach if method.reach == "unbounded" else f"within {method.reach} from reset"
        result = "proven" if proof.verdict.proven else "NOT PROVEN"
        cells = (what.block, what.name, what.statement, method.engine, reach, f"{proof.seconds:.0f}", result)
        lines[what.block, what.name] = f"| {' | '.join(cells)} |"
    return lines


def put_table(page: Path, proofs: Sequence[Proof], command: str, order: Sequence[Property] = ()) -> None:
    """Write the table between the marks of a page.

    With ``order``, all properties that there are, rows of those that were not run stay, with the commands that stand above
    them, and all rows stand in that order; rows of properties that are no longer there go. Without it the table is of
    ``proofs`` alone. Raises UserError when the page or its marks are missing.
    """
    before, stale, after = _parts(page)
    fresh = _rows(proofs)
    known = {cells: line for line in stale.splitlines() if (cells := _names(line))} | fresh
    places = [(one.block, one.name) for one in order] or list(fresh)
    rows = {place: known[place] for place in places if place in known}
    own = f"`{command}`"
    earlier = [line for line in stale.splitlines() if line.startswith("`") and line != own] if rows.keys() - fresh else []
    lines = ["", *earlier, own, "", *_HEAD, *rows.values(), ""]
    write_whole(page, f"{before}{TABLE_BEGIN}{chr(10).join(lines)}{TABLE_END}{after}")


def check_table(page: Path) -> None:
    """UserError when :func:`put_table` could not do its work on a page, or when the page cannot be written."""
    _parts(page)
    if not os.access(page, os.W_OK):
        raise UserError(f"cannot write {page}: {os.strerror(errno.EACCES)}")


def _parts(page: Path) -> tuple[str, str, str]:
    """A page before, between and after the marks of the table; UserError when it or they are missing."""
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {page}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{page} is no text in UTF-8: use a Markdown page") from None
    before, begin, rest = text.partition(TABLE_BEGIN)
    stale, end, after = rest.partition(TABLE_END)
    if not (begin and end):
        raise UserError(f"{page} lacks the lines {TABLE_BEGIN} and {TABLE_END}: put them where the table shall stand")
    return before, stale, after


def _names(line: str) -> tuple[str, str] | None:
    """Block and property of a row of the table."""
    cells = [cell.strip() for cell in line.split(" | ")]
    return (cells[0].removeprefix("| "), cells[1]) if len(cells) == len(_HEAD[0].split(" | ")) and line not in _HEAD else None


def _explained(verdict: Verdict) -> str:
    return f"{verdict.message}; waveform: {verdict.trace}" if verdict.trace else verdict.message


def _file_name(label: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-" else "." for letter in label)

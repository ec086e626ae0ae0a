"""``cdu formal``: parallel proofs, and their reports."""

from __future__ import annotations

import csv
import os
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cdu_tools.errors import MissingToolError, UserError
from cdu_tools.files import check_target, write_whole
from cdu_tools.marks import Marks
from cdu_tools.report import Report, Table, json_text
from cdu_tools.texts import read_text

from cdu_verif.formal.proof import UNBOUNDED, Property, Verdict, prove
from cdu_verif.formal.properties import KINDS, kind
from cdu_verif.regression import results
from cdu_verif.regression.results import FAILED, PASSED, TestResult

#: Marks of the part of a page that :func:`put_table` writes.
MARKS = Marks("proofs")
#: Table of all proofs, beside that page.
TABLE = "proofs.csv"
#: Text in column ``result`` for a property that holds.
_PROVEN = "proven"
_HEADER = ("block", "property", "statement", "method", "holds", "s", "result")
#: Columns of the table of proofs: each row names the command that proved it last.
_COLUMNS = (*_HEADER, "command")


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
    lines += ["", table(proofs).markdown(), ""]
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


def table(proofs: Sequence[Proof]) -> Table:
    """Return all proofs as a table."""
    return Table(_HEADER, [_row(proof) for proof in proofs])


def _row(proof: Proof) -> tuple[str, ...]:
    what, method = proof.what, proof.what.method
    reach = UNBOUNDED if method.reach == UNBOUNDED else f"within {method.reach} from reset"
    result = _PROVEN if proof.verdict.proven else "NOT PROVEN"
    return (what.block, what.name, what.statement, method.engine, reach, f"{proof.seconds:.0f}", result)


def check_page(page: Path) -> None:
    """Raise UserError if :func:`put_table` would fail: a page without marks, or a table beside it that is none of proofs."""
    MARKS.check(page)
    place = page.with_name(TABLE)
    check_target(place)
    if place.exists():
        _read(place)


def put_table(page: Path, proofs: Sequence[Proof], command: str, order: Sequence[Property] = ()) -> None:
    """Write all proofs to ``proofs.csv`` beside a page, and their number by kind between the marks of the page.

    ``order`` has all existing properties: rows of properties that were not run are kept, all rows are sorted, and rows of
    properties that no longer exist are removed. Without ``order`` the table has ``proofs`` alone. Raises UserError if the page
    or its marks are missing.
    """
    check_page(page)
    place = page.with_name(TABLE)
    fresh = {(proof.what.block, proof.what.name): (*_row(proof), command) for proof in proofs}
    known = {row[:2]: row for row in (_read(place) if place.exists() else ())} | fresh
    places = [(one.block, one.name) for one in order] or list(fresh)
    rows = [known[names] for names in places if names in known]
    write_whole(place, Table(_COLUMNS, rows).csv())
    MARKS.put(page, f"\n{summary(rows)}\n")


def summary(rows: Sequence[Sequence[str]]) -> str:
    """Return the number of proofs by kind of property, in Markdown, from rows of the table of proofs."""
    columns = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]

    def counts(members: Sequence[dict[str, str]]) -> tuple[str, ...]:
        blocks = {one["block"].partition("[")[0] for one in members}
        proven = [one for one in members if one["result"] == _PROVEN]
        return tuple(map(str, (len(blocks), len(members), len(proven), sum(one["holds"] == UNBOUNDED for one in proven))))

    by_kind = [(statement, [one for one in columns if kind(one["property"]) == name]) for name, statement in KINDS.items()]
    lines = [(statement, *counts(members)) for statement, members in by_kind if members]
    return Table(
        ("property", "blocks and parts", "proofs", "proven", "without bound"), [*lines, ("all", *counts(columns))]
    ).markdown()


def proven(path: Path) -> set[tuple[str, str]]:
    """Return block, without its parameters, and name of each property that a table of proofs has as ``proven``.

    A property with another row of the same block that is not ``proven`` is left out. UserError for another file.
    """
    results: dict[tuple[str, str], set[str]] = {}
    for row in _read(path):
        results.setdefault((row[0].partition("[")[0], row[1]), set()).add(row[_COLUMNS.index("result")])
    return {names for names, found in results.items() if found == {_PROVEN}}


def _read(path: Path) -> list[tuple[str, ...]]:
    """Return the rows of a table of proofs. UserError for another file."""
    try:
        header, *rows = [tuple(row) for row in csv.reader(read_text(path).splitlines())] or [()]
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is no text in UTF-8: use a file that `cdu formal --table` has written") from None
    if header != _COLUMNS or any(len(row) != len(_COLUMNS) for row in rows):
        raise UserError(f"{path} is no table of proofs: use a file that `cdu formal --table` has written")
    return rows


def _explained(verdict: Verdict) -> str:
    return f"{verdict.message}; waveform: {verdict.trace}" if verdict.trace else verdict.message


def _file_name(label: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-" else "." for letter in label)

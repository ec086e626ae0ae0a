"""``cdu coverage``: tables of coverage and sign-off, from the results of a regression and of other commands."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdu.delivery.blocks import BLOCKS, UNITS
from cdu_spec.config import CduConfig
from cdu_tools.marks import Marks
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Page, Report, Table, json_text

from cdu_verif.blocks import record
from cdu_verif.coverage import evidence, sign_off, verify_folder, waivers
from cdu_verif.coverage.evidence import share
from cdu_verif.coverage.points import CoverPoint, Seen
from cdu_verif.coverage.sign_off import Facts
from cdu_verif.coverage.verify_folder import VerifiedBlock
from cdu_verif.coverage.waivers import Waiver
from cdu_verif.formal.properties import is_of_streams
from cdu_verif.proofs import campaign, catalog
from cdu_verif.regression import plan
from cdu_verif.simulation.coverage import KINDS

#: Marks of the part of a page that contains the tables.
MARKS = Marks("coverage")
#: Tables of blocks and of waivers, which a page has beside it; and of uncovered points, which only the report has.
BLOCK_FILE, WAIVER_FILE, UNCOVERED_FILE = "coverage_blocks.csv", "coverage_waivers.csv", "coverage_uncovered.csv"


@dataclass(frozen=True)
class CoverageSettings:
    """Inputs of the coverage report.

    Parameters
    ----------
    folder
        Folder of ``cdu verify --coverage``.
    config
        Configuration of the regression: it determines the parameter sets and the proofs.
    proofs
        ``proofs.csv`` of ``cdu formal --table``.
    tests
        Folder of the tests in Amaranth's simulator.
    mutants
        ``mutants.csv`` or ``report.json`` of ``cdu mutate``; None if no mutants were tried.
    python
        JSON file of coverage.py; None if Python was not measured.
    """

    folder: Path
    config: CduConfig
    proofs: Path
    tests: Path
    mutants: Path | None = None
    python: Path | None = None


@dataclass(frozen=True)
class Covered:
    """Coverage of one block."""

    block: VerifiedBlock
    waived: Mapping[CoverPoint, Waiver]

    def counts(self, kind: str) -> tuple[int, int, int]:
        """Return the number of points of a kind, of points hit, and of waived points."""
        points = self.block.points.of_kind(kind)
        hit = sum(self.block.points.seen[point].hits > 0 for point in points)
        return len(points), hit, sum(point.kind == kind for point in self.waived)

    def percent(self, kind: str) -> float:
        """Return the percentage of points hit among those that are not waived; 100 if there are none."""
        points, hit, waived = self.counts(kind)
        return 100 * hit / (points - waived) if points > waived else 100.0


def report_coverage(settings: CoverageSettings, command: str, progress: Progress | None = None) -> Report:
    """Read the results and make report.md, report.json, and tables of blocks, waivers and uncovered points in CSV files.

    A stale waiver is a failure. Raises UserError for a report that is missing or wrong.
    """
    known = waivers.read(known=tuple(BLOCKS))
    killed = evidence.killed(settings.mutants) if settings.mutants else {}
    python = evidence.python_table(settings.python) if settings.python else None
    proven = campaign.proven(settings.proofs)
    played = evidence.played_in_amaranth(settings.tests, BLOCKS)
    found = verify_folder.read(
        settings.folder, progress or Silent(), {block for one in known if one.constant for block in one.blocks}
    )
    blocks = [Covered(one, waivers.waived(known, one.name, one.points)) for one in found.blocks.values()]
    stages = {
        one.block.name: sign_off.stage(_facts(one, settings.config, proven, played, killed.get(one.block.name)))
        for one in blocks
    }
    stale = waivers.stale(known, {one.block.name: one.block.points for one in blocks})
    page = Page(
        "Coverage",
        [
            _headline(blocks, stages),
            stage_table({name: (reached, "; ".join(missing)) for name, (reached, missing) in stages.items()}),
            f"All blocks: [{BLOCK_FILE}]({BLOCK_FILE}); waivers and their reasons: [{WAIVER_FILE}]({WAIVER_FILE}); "
            f"uncovered points: `{UNCOVERED_FILE}` of the report.",
            "## Stages",
            sign_off.rules(),
            "## Python" if python else "",
            python or "",
        ],
        {"command": f"`{command}`", "regression": f"`{found.command}`"},
    )
    content = {
        "command": command,
        "regression": found.command,
        "blocks": {one.block.name: _content(one, *stages[one.block.name]) for one in blocks},
        "stale_waivers": stale,
    }
    files = {
        "report.json": json_text(content),
        "report.md": page.markdown(),
        BLOCK_FILE: _block_table(blocks, stages, killed).csv(),
        WAIVER_FILE: _waiver_table(blocks, known).csv(),
        UNCOVERED_FILE: uncovered_points(blocks).csv(),
    }
    reached = ", ".join(f"{name} {len(members)}" for name, members in _by_stage(stages).items())
    return Report(content, files, [f"{len(blocks)} of {len(BLOCKS)} blocks: {reached}"], stale)


def put_tables(page: Path, report: Report) -> None:
    """Write the text of a report between the marks of a page, and the tables of blocks and waivers beside it.

    Raises UserError if the page or its marks are missing.
    """
    text = str(report.files["report.md"]).partition("\n")[2]
    MARKS.put(page, text)
    Report({}, {name: report.files[name] for name in (BLOCK_FILE, WAIVER_FILE)}).write(page.parent)


def _facts(one: Covered, config: CduConfig, proven: set[tuple[str, str]], played: set[str], killed: float | None) -> Facts:
    block = one.block
    properties = {(what.block.partition("[")[0], what.name) for what in catalog.properties(config, [block.name])}
    planned = [run.label for run in plan.runs(config, [block.name], full=False)]
    return Facts(
        failing=block.failing,
        warned=block.warned,
        smoke=block.name in played if record(block.name).cases else None,
        missing_sets=[label for label in planned if label not in block.runs],
        missing_bins=block.missing_bins,
        unproven=sorted(name for _, name in properties - proven),
        proves_function=any(not is_of_streams(name) for _, name in properties),
        percent={kind: one.percent(kind) for kind in KINDS},
        killed=killed,
    )


def _headline(blocks: Sequence[Covered], stages: Mapping[str, tuple[str, list[str]]]) -> str:
    parts = []
    for kind in KINDS:
        points, hit, waived = map(sum, zip(*(one.counts(kind) for one in blocks), strict=True))
        parts.append(f"{kind} {share(hit, points - waived)} %")
    reached = ", ".join(f"{name}: {len(members)}" for name, members in _by_stage(stages).items())
    return f"**{len(blocks)} of {len(BLOCKS)} blocks. {', '.join(parts)} after waivers. Stages: {reached}.**"


def _by_stage(stages: Mapping[str, tuple[str, list[str]]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for block, (name, _) in sorted(stages.items(), key=lambda entry: entry[1][0]):
        found.setdefault(name, []).append(block)
    return found


def stage_table(stages: Mapping[str, tuple[str, str]]) -> Table:
    """Return the number of blocks with each stage and each gap, with the names of those that miss something."""
    groups: dict[tuple[str, str], list[str]] = {}
    for block, group in stages.items():
        groups.setdefault(group, []).append(block)
    rows = [
        (reached, str(len(members)), missing or "nothing", ", ".join(members) if missing else "all others")
        for (reached, missing), members in sorted(groups.items(), reverse=True)
    ]
    return Table(("stage", "blocks", "missing for the next stage", "names"), rows)


#: Columns of the table of blocks.
BLOCK_COLUMNS = (
    *("block", "stage", "% of mutants killed", "missing for the next stage", "runs"),
    *(f"{kind} {column}" for kind in KINDS for column in ("points", "%", "% before waivers")),
    *("bins", "bins %"),
)


def _block_table(blocks: Sequence[Covered], stages: Mapping[str, tuple[str, list[str]]], killed: Mapping[str, float]) -> Table:
    rows = []
    for one in blocks:
        name = one.block.name
        reached, missing = stages[name]
        score = f"{killed[name]:.1f}" if name in killed else "not measured"
        rows.append((name, reached, score, "; ".join(missing) or "nothing", *_coverage_cells(one)))
    return Table(BLOCK_COLUMNS, rows)


def _coverage_cells(one: Covered) -> tuple[str, ...]:
    cells = [str(len(one.block.runs))]
    for kind in KINDS:
        points, hit, waived = one.counts(kind)
        cells += [str(points - waived), share(hit, points - waived), share(hit, points)]
    bins = one.block.bins
    return (*cells, str(bins) if bins else "-", share(bins - len(one.block.missing_bins), bins))


def _waiver_table(blocks: Sequence[Covered], known: Sequence[Waiver]) -> Table:
    counts = [sum(list(part.waived.values()).count(one) for part in blocks) for one in known]
    rows = [(", ".join(one.blocks), one.kind, str(count), one.reason) for one, count in zip(known, counts, strict=True)]
    return Table(("blocks", "kind", "points", "reason"), rows)


def _content(one: Covered, reached: str, missing: list[str]) -> dict[str, Any]:
    kinds = {}
    for kind in KINDS:
        points, hit, waived = one.counts(kind)
        kinds[kind] = {"points": points, "hit": hit, "waived": waived, "percent": round(one.percent(kind), 2)}
    block = one.block
    bins = {"bins": block.bins, "missing": block.missing_bins}
    return {"runs": block.runs, "stage": reached, "missing": missing, "coverage": kinds, "cover_points": bins}


def uncovered_points(blocks: Sequence[Covered]) -> Table:
    """Return a row for each uncovered point, with the bits of one signal in one row.

    Whole units are left out, because most of their points are points of their blocks.
    """
    rows = []
    for one in blocks:
        if one.block.name in UNITS:
            continue
        groups: dict[tuple[str, ...], list[tuple[CoverPoint, Seen]]] = {}
        for point in one.block.points.uncovered():
            waiver = one.waived.get(point)
            reason = waiver.reason if waiver else ""
            groups.setdefault((point.kind, point.module, point.signal or point.text, reason), []).append(
                (point, one.block.points.seen[point])
            )
        for (kind, module, text, reason), members in groups.items():
            first = members[0][1]
            bits = _bits({point.bit for point, _ in members if point.bit is not None})
            rows.append((one.block.name, kind, module, text, bits, str(len(members)), first.run, str(first.line), reason))
    return Table(("block", "kind", "module", "point", "bits", "points", "first run", "line", "waiver"), rows)


def _bits(bits: Collection[int]) -> str:
    """Return bits as text such as ``3-7 9``."""
    ranges: list[list[int]] = []
    for bit in sorted(bits):
        if ranges and bit == ranges[-1][1] + 1:
            ranges[-1][1] = bit
        else:
            ranges.append([bit, bit])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)

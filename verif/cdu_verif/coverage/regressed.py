"""What ``cdu verify --coverage`` has left in its folder, by block."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdu.delivery.verilog import top_name
from cdu_tools import verilator
from cdu_tools.errors import UserError
from cdu_tools.progress import Progress

from cdu_verif.coverage.constants import constant_bits
from cdu_verif.coverage.points import Merged, verilog_file
from cdu_verif.regression.results import PASSED, SKIPPED
from cdu_verif.simulation import coverage
from cdu_verif.simulation.cover_points import merged


@dataclass
class Block:
    """The runs of one block."""

    name: str
    points: Merged
    runs: list[str] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)  #: runs with a test that did not pass
    warned: list[str] = field(default_factory=list)  #: runs whose Verilog Verilator's lint warns of
    bins: int = 0  #: of its cover points
    missing_bins: list[str] = field(default_factory=list)  #: that no passed test has hit


@dataclass(frozen=True)
class Regressed:
    """A regression."""

    command: str
    blocks: dict[str, Block]


def read(folder: Path, shown: Progress, constants_of: Collection[str] = ()) -> Regressed:
    """Read the report, the Verilog and the counts of all runs, and let Verilator lint the Verilog.

    Of the blocks ``constants_of`` Yosys finds the bits that are constant.

    Raises UserError when the folder holds no report, or when a run that built has left no counts.
    """
    path = folder / "report.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        command, runs, results = content["command"], content["runs"], content["results"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is no report of `cdu verify` ({error}): run `cdu verify --coverage -o {folder}`") from None
    shown.begin("coverage", len(runs))
    blocks: dict[str, Block] = {}
    for run in runs:
        tests = [test for test in results if test["group"] == run["group"]]
        _add_run(blocks, run, tests, folder / "runs" / run["folder"], run["block"] in constants_of)
        shown.step()
    for block in blocks.values():
        _count_bins(block, [run for run in runs if run["block"] == block.name], results)
    return Regressed(command, blocks)


def _add_run(
    blocks: dict[str, Block], run: dict[str, Any], tests: Sequence[dict[str, Any]], folder: Path, constants: bool
) -> None:
    name, label = run["block"], run["group"]
    try:
        file = verilog_file(folder)
        counts = coverage.read(folder / "coverage.dat")
    except FileNotFoundError as error:
        raise UserError(f"{label}: no counts in {folder} ({error}): run `cdu verify --coverage` for all its blocks") from None
    block = blocks.setdefault(name, Block(name, Merged(top_name(file.stem))))
    block.runs.append(label)
    try:
        verilog = file.read_text(encoding="utf-8")
        block.points.add(label, verilog, counts, constant_bits(verilog, top_name(file.stem)) if constants else ())
    except ValueError as error:
        raise UserError(f"{folder}: counts and Verilog are not of one run ({error}): simulate again") from None
    if not any(test["status"] == PASSED for test in tests) or any(test["status"] not in (PASSED, SKIPPED) for test in tests):
        block.failing.append(label)
    if verilator.find().lint(file, top=top_name(file.stem)):
        block.warned.append(label)


def _count_bins(block: Block, runs: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]]) -> None:
    groups = {run["group"] for run in runs}
    wanted = merged(run["bins"] for run in runs)
    hit = merged(test["covered"] for test in results if test["group"] in groups)
    block.bins = sum(map(len, wanted.values()))
    block.missing_bins = [
        f"{point}: {name}" for point, names in wanted.items() for name in sorted(names - hit.get(point, set()))
    ]

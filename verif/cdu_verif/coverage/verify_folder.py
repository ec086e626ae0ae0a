"""Results of ``cdu verify --coverage`` in its folder, by block."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from cdu.delivery.verilog import top_name
from cdu_tools import verilator
from cdu_tools.errors import UserError, reason
from cdu_tools.parallel import largest_first
from cdu_tools.progress import Progress

from cdu_verif.coverage.constants import held_constant_bits
from cdu_verif.coverage.points import Merged, verilog_file
from cdu_verif.regression.results import PASSED, SKIPPED
from cdu_verif.simulation import coverage
from cdu_verif.simulation.cover_points import merged

_Found = TypeVar("_Found")


@dataclass
class VerifiedBlock:
    """Runs of one block."""

    name: str
    points: Merged
    runs: list[str] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)  #: runs with a failing test
    warned: list[str] = field(default_factory=list)  #: runs whose Verilog Verilator's lint warns of
    bins: int = 0  #: number of bins of its cover points
    missing_bins: list[str] = field(default_factory=list)  #: bins that no passed test has hit


@dataclass(frozen=True)
class Regressed:
    """Results of a regression."""

    command: str
    blocks: dict[str, VerifiedBlock]


def read(folder: Path, shown: Progress, constants_of: Collection[str] = ()) -> Regressed:
    """Read the report, the Verilog and the counts of all runs, and lint the Verilog with Verilator.

    For the blocks ``constants_of`` Yosys finds the bits that are constant.

    Raises UserError if the folder has no report, or if a run that was built has no counts.
    """
    path = folder / "report.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        command, runs, results = content["command"], content["runs"], content["results"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} is no report of `cdu verify` ({reason(error)}): run `cdu verify --coverage -o {folder}`"
        ) from None
    shown.begin("coverage", len(runs))

    def looked_at(run: dict[str, Any]) -> _Tools:
        found = _tools(folder / "runs" / run["folder"], run["group"], run["block"] in constants_of)
        shown.step()
        return found

    # Yosys takes the better part of an hour: counts that do not fit are found before.
    blocks: dict[str, VerifiedBlock] = {}
    numbers = [
        _add_run(blocks, run, [test for test in results if test["group"] == run["group"]], folder / "runs" / run["folder"])
        for run in runs
    ]
    for run, number, found in zip(runs, numbers, largest_first(looked_at, runs, partial(_size, folder)), strict=True):
        block = blocks[run["block"]]
        block.points.mark_constant(number, found.constants)
        if found.warned:
            block.warned.append(run["group"])
    for block in blocks.values():
        _count_bins(block, [run for run in runs if run["block"] == block.name], results)
    return Regressed(command, blocks)


@dataclass(frozen=True)
class _Tools:
    """Findings of programs about the Verilog of a run."""

    constants: Collection[tuple[str, str, int]]  #: constant bits found by Yosys, for blocks that need them
    warned: bool  #: Verilator's lint gives warnings


def _tools(folder: Path, label: str, constants: bool) -> _Tools:
    file = _present(label, verilog_file, folder)
    top = top_name(file.stem)
    verilog = file.read_text(encoding="utf-8")
    found = held_constant_bits(verilog, top, folder / "constants.json") if constants else ()
    return _Tools(found, bool(verilator.find().lint(file, top=top)))


def _size(folder: Path, run: dict[str, Any]) -> float:
    return _present(run["group"], verilog_file, folder / "runs" / run["folder"]).stat().st_size


def _present(label: str, read: Callable[[Path], _Found], path: Path) -> _Found:
    """Return a file of a run as ``read`` reads it; UserError if it is missing."""
    try:
        return read(path)
    except FileNotFoundError as error:
        raise UserError(
            f"{label}: no counts in {path} ({reason(error)}): run `cdu verify --coverage` for all its blocks"
        ) from None


def _add_run(blocks: dict[str, VerifiedBlock], run: dict[str, Any], tests: Sequence[dict[str, Any]], folder: Path) -> int:
    """Add a run to its block, and return its number there."""
    name, label = run["block"], run["group"]
    file = _present(label, verilog_file, folder)
    counts = _present(label, coverage.read, folder / "coverage.dat")
    block = blocks.setdefault(name, VerifiedBlock(name, Merged(top_name(file.stem))))
    try:
        block.points.add(label, file.read_text(encoding="utf-8"), counts)
    except ValueError as error:
        raise UserError(f"{folder}: counts and Verilog are not of one run ({error}): simulate again") from None
    if not any(test["status"] == PASSED for test in tests) or any(test["status"] not in (PASSED, SKIPPED) for test in tests):
        block.failing.append(label)
    block.runs.append(label)
    return len(block.runs) - 1


def _count_bins(block: VerifiedBlock, runs: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]]) -> None:
    groups = {run["group"] for run in runs}
    wanted = merged(run["bins"] for run in runs)
    hit = merged(test["covered"] for test in results if test["group"] in groups)
    block.bins = sum(map(len, wanted.values()))
    block.missing_bins = [
        f"{point}: {name}" for point, names in wanted.items() for name in sorted(names - hit.get(point, set()))
    ]

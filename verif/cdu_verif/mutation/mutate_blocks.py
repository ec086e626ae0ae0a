"""``cdu mutate``: faults in the delivered Verilog of blocks, and the number of them that the benches find."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdu.delivery.blocks import BLOCKS, check_block, configured, impossible
from cdu_spec.config import CduConfig
from cdu_tools.errors import UserError
from cdu_tools.files import check_target, write_whole
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Page, Report, Table, json_text

from cdu_verif.mutation import campaign
from cdu_verif.mutation.campaign import EQUIVALENT, KILLED, SURVIVED, Score
from cdu_verif.simulation import simulators


@dataclass(frozen=True)
class MutationSettings:
    """Settings of a mutation campaign. ConfigError for an unknown block, or one that cannot be built.

    Parameters
    ----------
    config
        Configuration of all blocks.
    folder
        Folder in which the simulations are built and run.
    blocks
        Names of the blocks; all if empty.
    count
        Greatest number of mutants of each block.
    seed
        Seed of the choice of mutants and of all stimulus.
    table
        A mutants.csv in which each block's rows are replaced as soon as the block is done.
    """

    config: CduConfig
    folder: Path
    blocks: Sequence[str]
    count: int
    seed: int
    table: Path | None = None

    def __post_init__(self) -> None:
        for name in self.blocks:
            check_block(name)
            configured(name, self.config)
        if self.table:
            check_target(self.table)
            _rows(self.table)


def mutate_blocks(settings: MutationSettings, command: str, progress: Progress | None = None) -> Report:
    """Try mutants of every block and report them: report.md, report.json, and mutants.csv with a row for each.

    Raises UserError for a block whose benches fail without a fault, MissingToolError if Verilator is not installed.
    """
    simulators.check("verilator")
    shown = progress or Silent()
    scores = []
    out = impossible(settings.config)
    for why in () if settings.blocks else out.values():
        shown.say(f"left out: {why}")
    for block in settings.blocks or [name for name in BLOCKS if name not in out]:
        shown.begin(block, settings.count)
        place = settings.folder / block
        scores.append(campaign.score(block, settings.config, place, settings.count, settings.seed, lambda fate: shown.step()))
        shown.say(_line(scores[-1]))
        if settings.table:
            write_whole(settings.table, _merged(settings.table, scores[-1]).csv())
    return _report(settings, scores, command)


def _report(settings: MutationSettings, scores: Sequence[Score], command: str) -> Report:
    killed = sum(one.count(KILLED) for one in scores)
    real = sum(len(one.fates) - one.count(EQUIVALENT) for one in scores)
    survivors = [(one.block, fate) for one in scores for fate in one.fates if fate.outcome == SURVIVED]
    page = Page(
        "Mutants",
        [
            "A mutant is the delivered Verilog with one bit of one cell constant or inverted, always or when another bit is"
            " high (`mutate` of Yosys). It is killed when a test of the block's benches fails. It is equivalent when PDR proves"
            " that from reset on no input tells it from the design that keeps the rules of streams and what the block is"
            " promised (`promised` of its record). Else it is killed when one of the block's proofs has a counterexample.",
            f"**{killed} of {real} mutants killed.**",
            summary(scores),
            "## Survivors" if survivors else "",
            Table(
                ("block", "mutant", "mode", "cell", "line"),
                [
                    (block, str(fate.mutant.number), fate.mutant.mode, fate.mutant.place, fate.mutant.line)
                    for block, fate in survivors
                ],
            ),
        ],
        {"command": f"`{command}`", "configuration": settings.config.unit_name, "seed": str(settings.seed)},
    )
    content = {"command": command, "blocks": [_content(one) for one in scores]}
    return Report(
        content,
        {"report.json": json_text(content), "report.md": page.markdown(), "mutants.csv": _every(scores).csv()},
        [f"{killed} of {real} mutants killed, {len(survivors)} survive"],
    )


def summary(scores: Sequence[Score]) -> Table:
    """Return a table with a row for each block."""
    rows = [
        (
            one.block,
            *map(str, (len(one.fates), one.count(KILLED), one.count(EQUIVALENT), one.count(SURVIVED))),
            f"{one.percent:.1f}",
        )
        for one in scores
    ]
    return Table(("block", "mutants", "killed", "equivalent", "survive", "% killed"), rows)


_COLUMNS = ("block", "mutant", "mode", "cell", "line", "outcome", "test")


def _merged(path: Path, score: Score) -> Table:
    """Return a table with the rows of one block replaced, in the order of the blocks."""
    kept = [row for row in _rows(path) if row[0] in BLOCKS and row[0] != score.block]
    return Table(_COLUMNS, sorted([*kept, *_every([score]).rows], key=lambda row: list(BLOCKS).index(row[0])))


def _rows(path: Path) -> list[tuple[str, ...]]:
    """Return the rows of a table, none if the file does not exist. UserError for a file that is not such a table."""
    if not path.exists():
        return []
    header, *rows = [tuple(row) for row in csv.reader(path.read_text("utf-8", errors="replace").splitlines())] or [()]
    if header != _COLUMNS or any(len(row) != len(_COLUMNS) for row in rows):
        raise UserError(f"{path} is no table of mutants: use a file that `cdu mutate` has written, or a new one")
    return rows


def _every(scores: Sequence[Score]) -> Table:
    """Return a table with a row for each mutant."""
    rows = [
        (one.block, str(fate.mutant.number), fate.mutant.mode, fate.mutant.place, fate.mutant.line, fate.outcome, fate.test)
        for one in scores
        for fate in one.fates
    ]
    return Table(_COLUMNS, rows)


def _content(one: Score) -> dict[str, Any]:
    counts = {outcome: one.count(outcome) for outcome in (KILLED, EQUIVALENT, SURVIVED)}
    return {"block": one.block, "mutants": len(one.fates), **counts, "percent": round(one.percent, 2)}


def _line(one: Score) -> str:
    real = len(one.fates) - one.count(EQUIVALENT)
    return f"{one.block:26} {one.count(KILLED):4} of {real:4} killed, {one.count(EQUIVALENT)} equivalent"

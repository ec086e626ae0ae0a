"""The rows that benchmarks/compiled_step.py has measured, and the tables of docs/evidence/compiled_step.md and its CSV file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cdu_tools.files import write_whole
from cdu_tools.marks import Marks
from cdu_tools.report import Table, json_text
from compiled_means import EAGER, MEANS
from torch_means import PLAIN

PAGE = Path(__file__).parents[1] / "docs/evidence/compiled_step.md"
ROWS = PAGE.with_suffix(".json")
CSV = PAGE.with_suffix(".csv")
BEST = Marks("compiled-step-best")
#: The goals of a compressed step: most time in that of the eager step, in hundredths, and least cosine with its gradient.
MOST_TIME, LEAST_COSINE = 1.0, 0.9995
_MIB = 1 << 20
#: Columns that rows of one table have in common.
SETTING = ("network", "precision", "vectors")
_HEADER = (
    *("means", "peak MiB", "of eager", "kept MiB", "resident MiB", "time", "cosine", "loss"),
    *("first step, CPU s", "wall s", "of inductor's"),
)


@dataclass(frozen=True)
class Figures:
    """Holds the figures of one means on one network."""

    peak: int  #: bytes
    kept: int  #: bytes
    resident: int | None  #: bytes
    parameters: int  #: bytes
    of_eager: float  #: peak as a part of the eager step's
    time: float  #: processor time in that of the eager step
    seconds: float  #: processor time
    cosine: float  #: cosine of the gradient with the eager step's
    same_loss: bool  #: as the uncompressed step's, compiled or not, in all bits
    first_cpu: float  #: seconds of the processor that the first step took more than later ones
    first_wall: float  #: the same by the clock


@dataclass(frozen=True)
class Row:
    """One means on one network: figures, or the error that ended it."""

    network: str
    precision: str
    vectors: str  #: of the processor, as ``torch.backends.cpu.get_cpu_capability()`` calls them
    means: str
    figures: Figures | None
    error: str

    @property
    def setting(self) -> tuple[str, str, str]:
        """Return what rows of one table have in common."""
        return self.network, self.precision, self.vectors


def read_rows(path: Path) -> list[Row]:
    """Read rows from a JSON file; none where there is no file."""
    if not path.exists():
        return []
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [Row(**{**row, "figures": row["figures"] and Figures(**row["figures"])}) for row in rows]


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Put rows into a JSON file in the place of all rows of their network, precision and vectors; new ones at its end."""
    found = dict(_by_setting(read_rows(path))) | dict(_by_setting(rows))
    write_whole(path, json_text([asdict(row) for its in found.values() for row in its]))


def table(rows: Sequence[Row]) -> Table:
    """Return the table of one network in one precision on one kind of processor."""
    base = next(row.figures for row in rows if row.means == PLAIN)
    assert base is not None, "plain torch.compile compiles every network of the benchmark"
    return Table(_HEADER, [(row.means, *_cells(row, base)) for row in rows])


def best(rows: Sequence[Row], budgets: Mapping[tuple[str, str, str], float]) -> Table:
    """Return for each network, precision and kind of processor the lowest peaks of torch's means and of this project's.

    Means count that keep both goals; where none but the eager step does, there is no row. ``budgets`` holds the lowest peaks
    that budgets brought within the goals, as parts of eager's; they count as this project's.
    """
    cells = []
    for setting, its in _by_setting(rows):
        torchs, own = (_lowest([row for row in its if MEANS[row.means].own == own]) for own in (False, True))
        if setting in budgets and (own is None or budgets[setting] < own[1]):
            own = "compiled, a budget", budgets[setting]
        if own is not None or (torchs is not None and torchs[0] != EAGER):
            cells.append((*setting, *_best_cells(torchs), *_best_cells(own)))
    return Table((*SETTING, "torch's own", "of eager", "this project", "of eager"), cells)


#: Means that :func:`costs` sets beside each other, with their heading.
_COMPARED = {
    "checkpoint per block": "checkpoint per block",
    "compiled, int8": "compiled, `int8`",
    "hooks, int8-rows": "hooks, `int8-rows`",
    "hooks, recommended": "hooks, densest",
}


def costs(rows: Sequence[Row], precision: str, vectors: str) -> Table:
    """Return for each network peak and time of a step with some means, as parts of the eager step's, on a kind of processor."""
    cells = []
    for (network, *others), its in _by_setting(rows):
        if others == [precision, vectors]:
            found = {row.means: row.figures for row in its}
            cells.append((network, *(_peak_and_time(found.get(name)) for name in _COMPARED)))
    return Table(("network", *_COMPARED.values()), cells)


def write_page(page: Path, rows: Sequence[Row], budgets: Mapping[tuple[str, str, str], float]) -> None:
    """Write the table between the marks of the page, and all rows beside the page."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*SETTING, "parameters MiB", "eager step, CPU s", *_HEADER))
    for setting, its in _by_setting(rows):
        writer.writerows((*setting, *_of_eager_step(its), *cells) for cells in table(its).rows)
    write_whole(page.with_suffix(".csv"), text.getvalue())
    BEST.put(page, f"\n\n{best(rows, budgets).markdown()}\n\n")


def _by_setting(rows: Sequence[Row]) -> list[tuple[tuple[str, str, str], list[Row]]]:
    """Return the rows of each table."""
    return [
        (setting, [row for row in rows if row.setting == setting]) for setting in dict.fromkeys(row.setting for row in rows)
    ]


def _of_eager_step(rows: Sequence[Row]) -> tuple[str, str]:
    eager = next(row.figures for row in rows if row.means == EAGER)
    assert eager is not None, "the eager step runs on every network"
    return f"{eager.parameters / _MIB:.1f}", f"{eager.seconds:.2f}"


def _cells(row: Row, base: Figures) -> list[str]:
    found = row.figures
    if found is None:
        return [row.error.splitlines()[0], *[""] * (len(_HEADER) - 2)]
    return [
        *(f"{found.peak / _MIB:.1f}", f"{found.of_eager:.3f}", f"{found.kept / _MIB:.1f}"),
        "" if found.resident is None else f"{found.resident / _MIB:.1f}",
        *(f"{found.time:.2f}", f"{found.cosine:.6f}", "same" if found.same_loss else "other"),
        *(_first(found, base) if MEANS[row.means].compiles else ("", "", "")),
    ]


def _first(found: Figures, base: Figures) -> tuple[str, str, str]:
    return f"{found.first_cpu:.1f}", f"{found.first_wall:.1f}", f"{found.first_cpu / base.first_cpu:.2f}"


def _peak_and_time(found: Figures | None) -> str:
    return "" if found is None else f"{found.of_eager:.2f} in {found.time:.2f}"


def _lowest(rows: Sequence[Row]) -> tuple[str, float] | None:
    """Return name and peak, as a part of eager's, of the means with the lowest peak that keeps both goals."""
    found = [
        (row.means, row.figures.of_eager) for row in rows if row.figures and keeps_goals(row.figures.time, row.figures.cosine)
    ]
    return min(found, key=lambda one: one[1], default=None)


def keeps_goals(time: float, cosine: float) -> bool:
    """Return whether a step keeps both goals."""
    return round(time, 2) <= MOST_TIME and cosine >= LEAST_COSINE


def _best_cells(one: tuple[str, float] | None) -> tuple[str, str]:
    return ("none", "") if one is None else (one[0], f"{one[1]:.3f}")

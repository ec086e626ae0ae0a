"""Budgets that ``actcodec.compiled`` is asked for, and the peaks that were measured; part of benchmarks/compiled_step.py."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import actcodec
from actcodec.graph.budget import TOLERANCE
from cdu_tools.files import write_whole
from cdu_tools.marks import Marks
from cdu_tools.report import Table
from compiled_means import EAGER, MEANS, Means, Step
from compiled_measure import FLOAT32, measure
from compiled_networks import Network
from compiled_page import PAGE, SETTING, keeps_goals
from compiled_worker import Memory, Worker
from torch import nn
from torch_means import PLAIN

ROWS = PAGE.with_name("compiled_budgets.csv")
MARKS = Marks("compiled-budgets")
#: The floor in the sentence that refuses a budget.
_FLOOR = re.compile(r"give (\d+) bytes")
_MIB = 1 << 20
_BEYOND_NEED = 1 << 40  #: bytes


@dataclass(frozen=True)
class Asked:
    """A budget on a network, and what came of it."""

    network: str
    precision: str
    vectors: str  #: of the processor, as ``torch.backends.cpu.get_cpu_capability()`` calls them
    budget: int  #: bytes
    peak: int  #: bytes
    of_eager: float  #: peak as a part of the eager step's
    cosine: float  #: cosine of the gradient with the eager step's
    time: float  #: processor time in that of the eager step

    @property
    def off(self) -> float:
        """Part of the budget by which the peak is above it, or below where it is negative."""
        return self.peak / self.budget - 1

    @property
    def setting(self) -> tuple[str, str, str]:
        """Return network, precision and vectors."""
        return self.network, self.precision, self.vectors


def sweep(network: str, count: int, autocast: bool, rounds: int) -> list[Asked]:
    """Ask for ``count`` budgets, 2 or more, at equal ratios from the floor to the peak of a step that codes nothing."""
    floor, exact = _floor(network, autocast), _exact_peak(network, autocast)
    budgets = [round(floor * (exact / floor) ** (place / (count - 1))) for place in range(count)]
    means = {str(budget): Means(partial(_budgeted, budget), compiles=True, own=True) for budget in budgets}
    rows = measure(network, {EAGER: MEANS[EAGER], PLAIN: MEANS[PLAIN], **means}, autocast, rounds)
    found = []
    for row in rows:
        if row.means in means:
            if row.figures is None:
                raise SystemExit(f"{network} does not train within {row.means} bytes: {row.error}")
            its = row.figures
            found.append(Asked(*row.setting, int(row.means), its.peak, its.of_eager, its.cosine, its.time))
    return found


def table(rows: Sequence[Asked]) -> Table:
    """Return a row for each budget."""
    cells = [
        (
            *(*row.setting, f"{row.budget / _MIB:.2f}", f"{row.peak / _MIB:.2f}", f"{100 * row.off:+.2f} %"),
            *(f"{row.of_eager:.3f}", f"{row.cosine:.6f}", f"{row.time:.2f}"),
        )
        for row in rows
    ]
    return Table((*SETTING, "asked MiB", "peak MiB", "off", "of eager", "cosine", "time"), cells)


def summary(rows: Sequence[Asked]) -> str:
    """Say how far peaks are from their budgets, and where more bytes were of no use."""
    farthest = max(rows, key=lambda row: abs(row.off))
    close = sum(abs(row.off) <= TOLERANCE for row in rows)
    text = f"{close} of {len(rows)} peaks are within {100 * TOLERANCE:.0f} % of their budgets; the farthest is "
    text += f"{100 * farthest.off:+.2f} % off ({_told(farthest.setting)})."
    worse = [
        f"{_told(more.setting)} at {more.budget / _MIB:.2f} MiB"
        for less, more in pairwise(rows)
        if less.setting == more.setting and (more.peak < less.peak or more.cosine < less.cosine)
    ]
    if worse:
        return f"{text} More bytes brought a lower peak or a lower cosine than the budget before: {', '.join(worse)}."
    return f"{text} On every network more bytes bring no lower peak and no lower cosine."


def lowest(rows: Sequence[Asked]) -> dict[tuple[str, str, str], float]:
    """Return for each network, precision and kind of processor the lowest peak, as a part of eager's, that keeps both goals."""
    found: dict[tuple[str, str, str], float] = {}
    for row in rows:
        if keeps_goals(row.time, row.cosine):
            found[row.setting] = min(row.of_eager, found.get(row.setting, row.of_eager))
    return found


def read_budgets() -> list[Asked]:
    """Read the rows of the file; their bytes are rounded."""
    return list(map(_asked, _read()))


def write(rows: Sequence[Asked]) -> None:
    """Write the rows in place of those of their networks, and the summary of all between the marks of the page."""
    new = {row.setting for row in rows}
    kept = [row for row in _read() if _asked(row).setting not in new]
    added = table(rows)
    write_whole(ROWS, Table(added.header, [*(tuple(row.values()) for row in kept), *added.rows]).csv())
    MARKS.put(PAGE, f"\n\n{summary([*map(_asked, kept), *rows])}\n\n")


def _read() -> list[dict[str, str]]:
    with ROWS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _asked(row: Mapping[str, str]) -> Asked:
    asked, peak = (round(float(row[f"{name} MiB"]) * _MIB) for name in ("asked", "peak"))
    setting = row["network"], row["precision"], row["vectors"]
    return Asked(*setting, asked, peak, float(row["of eager"]), float(row["cosine"]), float(row["time"]))


def _told(setting: tuple[str, str, str]) -> str:
    """Return a network's name, its precision where that is not the usual one, and the vectors of the processor."""
    return ", ".join(part for part in setting if part != FLOAT32)


def _budgeted(budget: int, model: nn.Module, network: Network, step: Step) -> None:
    actcodec.compiled(model, budget=budget, step=step)


def _floor(network: str, autocast: bool) -> int:
    """Ask for two bytes, as one is the whole peak, and read the floor in the refusal."""
    with closing(Worker(network, Means(partial(_budgeted, 2), compiles=True, own=True), autocast)) as worker:
        try:
            worker.call("first")
        except RuntimeError as refusal:
            if found := _FLOOR.search(str(refusal)):
                return int(found[1])
            raise
    raise SystemExit(f"a budget of two bytes was not refused on {network}")


def _exact_peak(network: str, autocast: bool) -> int:
    """Measure the peak under a budget that is beyond need: values are kept as they are, or computed again at no cost."""
    with closing(Worker(network, Means(partial(_budgeted, _BEYOND_NEED), compiles=True, own=True), autocast)) as worker:
        worker.call("first")
        memory: Memory = worker.call("memory")
    return memory.peak

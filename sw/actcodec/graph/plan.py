"""The choice for each kept value under a budget in bytes: an integer linear programme over the moments of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from cdu_tools.errors import UserError
from cdu_tools.silence import silent_libraries

#: Seconds that the solver may take; the best choice found until then is taken.
MOST_SECONDS = 10.0
#: Part of a byte that is rounding.
_EXACT = 1e-3
#: Part of the greatest loss below which a sum of losses is too small for the solver to tell from others.
_COARSE = 0.01


@dataclass(frozen=True)
class Option:
    """One way to keep a value."""

    action: str  #: ``keep``, ``recompute`` or the name of a format
    nbytes: int
    loss: float  #: squared relative error of the gradient
    work: float = 0.0  #: floating-point operations to compute it again


@dataclass(frozen=True)
class Item:
    """A kept value and the ways to keep it."""

    options: tuple[Option, ...]
    first: int  #: the moment it is made
    last: int  #: the moment it is read for the last time


class TooLittleError(UserError):
    """A budget that no choice keeps."""

    def __init__(self, budget: int, least: int) -> None:
        asked, possible = (f"{nbytes} bytes ({nbytes / 2**20:.1f} MiB)" for nbytes in (budget, least))
        super().__init__(f"a budget of {asked} cannot be kept: give {possible} or more")


def choose(items: Sequence[Item], others: Sequence[int], budget: int, most_work: float) -> list[Option] | None:
    """Return the option of each item with the least sum of losses such that no moment has more bytes than the budget.

    Parameters
    ----------
    items
        Kept values.
    others
        Bytes at each moment that belong to none of the items.
    budget
        Bytes at any moment.
    most_work
        Bound on the sum of work.

    Returns None when no choice fits.
    """
    if not items:
        return [] if max(others, default=0) <= budget else None
    programme = _Programme(items, others, most_work)
    losses = np.array([option.loss for option in programme.options])
    scale = losses.max() or 1.0
    # A little of the bytes breaks ties: of two choices with one loss the smaller one is taken.
    total = sum(max(option.nbytes for option in item.options) for item in items) or 1
    ties = np.array([1e-9 * option.nbytes / total + 1e-9 * option.work / (most_work or 1.0) for option in programme.options])
    taken, best = np.ones(len(losses)), list[Option]()
    while True:
        picked = programme.picked(np.minimum(losses / scale, 1.0) + ties, taken, budget)
        if picked is None:
            return best or None
        loss = losses[picked].sum()
        if best and loss > scale:
            return best
        best = [programme.options[place] for place in picked]
        if not 0 < loss < _COARSE * scale:
            return best
        # The solver sees no differences of so small losses: once more, without what alone would lose more.
        scale, taken = loss, (losses <= loss).astype(float)


def least_budget(items: Sequence[Item], others: Sequence[int], most_work: float) -> int:
    """Return the least budget with which :func:`choose` finds a choice."""
    return _Programme(items, others, most_work).least() if items else max(others, default=0)


class _Programme:
    """The constraints of a choice: one option of each item, bytes at each moment that can limit it, and the sum of work."""

    def __init__(self, items: Sequence[Item], others: Sequence[int], most_work: float) -> None:
        self.options = [option for item in items for option in item.options]
        sizes = [len(item.options) for item in items]
        self._starts = np.cumsum([0, *sizes])
        moments = _binding(items, others)
        self._others = [others[moment] for moment in moments]
        owner = np.repeat(np.arange(len(items)), sizes)
        first, last = np.array([(item.first, item.last) for item in items]).T[:, owner]
        alive = (first <= np.array(moments)[:, None]) & (np.array(moments)[:, None] <= last)
        nbytes = np.array([option.nbytes for option in self.options], dtype=float)
        self._unit = nbytes.max() or 1.0  # bytes; the solver's tolerances suit coefficients up to 1
        work = np.array([option.work for option in self.options])
        unit_of_work = work.max() or 1.0
        self._most_work = most_work / unit_of_work
        self._weights = np.vstack([alive * nbytes / self._unit, work / unit_of_work])
        self._picks = (owner == np.arange(len(items))[:, None]).astype(float)

    def picked(self, costs: np.ndarray, taken: np.ndarray, budget: int) -> list[int] | None:
        """Return the places of the options with the least sum of costs, None when no choice fits."""
        found = self._solved(costs, taken, self._weights, self._picks, budget)
        if found is None:
            return None
        return [start + int(np.argmax(found[start:end])) for start, end in pairwise(self._starts)]

    def least(self) -> int:
        """Return the least budget that some choice keeps."""
        more = np.append(-np.ones(len(self._others)), 0.0)  # the work has a bound of its own
        weights, picks = np.column_stack([self._weights, more]), np.pad(self._picks, ((0, 0), (0, 1)))
        costs = np.append(np.zeros(len(self.options)), 1.0)
        found = self._solved(costs, np.append(np.ones(len(self.options)), np.inf), weights, picks, 0)
        assert found is not None, "a budget may be as large as needed"
        return int(np.ceil(self._unit * found[-1] - _EXACT))

    def _solved(
        self, costs: np.ndarray, most: np.ndarray, weights: np.ndarray, picks: np.ndarray, budget: int
    ) -> np.ndarray | None:
        from scipy.optimize import Bounds, LinearConstraint, milp  # takes longer to import than a small model to compile

        bounds = np.array([(budget - other) / self._unit for other in self._others] + [self._most_work], dtype=float)
        constraints = [LinearConstraint(picks, 1, 1), LinearConstraint(weights, -np.inf, bounds)]
        kinds = np.ones(len(costs))
        kinds[len(self.options) :] = 0
        options = {"time_limit": MOST_SECONDS, "mip_rel_gap": 1e-3}
        with silent_libraries():  # the solver of SciPy 1.17 prints a line of its own
            found = milp(costs, integrality=kinds, bounds=Bounds(0, most), constraints=constraints, options=options)
        values: np.ndarray | None = found.x
        return values


def _binding(items: Sequence[Item], others: Sequence[int]) -> list[int]:
    """Return the moments that can limit a choice: of those at which the same items live, the one with most other bytes."""
    worst: dict[tuple[int, ...], int] = {}
    for moment, nbytes in enumerate(others):
        alive = tuple(number for number, item in enumerate(items) if item.first <= moment <= item.last)
        if alive not in worst or others[worst[alive]] < nbytes:
            worst[alive] = moment
    return sorted(worst.values())


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows of equal keys as text in columns."""
    if not rows:
        return ""
    texts = [list(rows[0])] + [[str(value) for value in row.values()] for row in rows]
    widths = [max(len(line[column]) for line in texts) for column in range(len(texts[0]))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in texts)

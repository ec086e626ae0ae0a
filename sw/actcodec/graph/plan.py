"""The choice for each kept value under a budget in bytes: an integer linear programme over the moments of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from cdu_tools.errors import UserError
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import hstack, lil_array

#: Seconds that the solver may take; the best choice found until then is taken.
MOST_SECONDS = 10.0
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
        self.least = least


def choose(items: Sequence[Item], others: Sequence[int], budget: int, most_work: float) -> list[Option]:
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

    Raises TooLittleError with the least budget when no choice fits.
    """
    if not items:
        if max(others, default=0) > budget:
            raise TooLittleError(budget, max(others))
        return []
    sizes = [len(item.options) for item in items]
    starts = np.cumsum([0, *sizes])
    options = [option for item in items for option in item.options]
    moments = _binding(items, others)
    weights = lil_array((len(moments) + 1, len(options)))
    picks = lil_array((len(items), len(options)))
    for number, item in enumerate(items):
        picks[number, starts[number] : starts[number + 1]] = 1
        for row, moment in enumerate(moments):
            if item.first <= moment <= item.last:
                weights[row, starts[number] : starts[number + 1]] = [option.nbytes for option in item.options]
    weights[len(moments), :] = [option.work for option in options]
    bounds = np.array([budget - others[moment] for moment in moments] + [most_work], dtype=float)
    losses, scale = np.array([option.loss for option in options]), max(option.loss for option in options) or 1.0
    # A little of the bytes breaks ties: of two choices with one loss the smaller one is taken.
    total = sum(max(option.nbytes for option in item.options) for item in items) or 1
    ties = np.array([1e-9 * option.nbytes / total + 1e-9 * option.work / (most_work or 1.0) for option in options])
    constraints = [LinearConstraint(picks.tocsr(), 1, 1), LinearConstraint(weights.tocsr(), -np.inf, bounds)]
    limits = {"time_limit": MOST_SECONDS, "mip_rel_gap": 1e-3}
    taken, best = np.ones(len(options)), list[Option]()
    while True:
        costs = np.minimum(losses / scale, 1.0) + ties
        found = milp(costs, integrality=np.ones(len(options)), bounds=Bounds(0, taken), constraints=constraints, options=limits)
        if found.x is None and not best:
            raise TooLittleError(budget, _floor(weights, picks, bounds, budget, limits))
        if found.x is None:
            return best
        picked = [start + int(np.argmax(found.x[start:end])) for start, end in pairwise(starts)]
        loss = losses[picked].sum()
        if best and loss > scale:
            return best
        best = [options[place] for place in picked]
        if not 0 < loss < _COARSE * scale:
            return best
        # The solver sees no differences of so small losses: once more, without what alone would lose more.
        scale, taken = loss, (losses <= loss).astype(float)


def _floor(weights: lil_array, picks: lil_array, bounds: np.ndarray, budget: int, limits: dict[str, float]) -> int:
    """Return the least budget that some choice keeps."""
    more = lil_array(np.append(-np.ones(weights.shape[0] - 1), 0.0)[:, None])  # the work has a bound of its own
    rows = LinearConstraint(hstack([weights, more]).tocsr(), -np.inf, bounds)
    one = LinearConstraint(hstack([picks, lil_array((picks.shape[0], 1))]).tocsr(), 1, 1)
    costs = np.append(np.zeros(weights.shape[1]), 1.0)
    kinds = np.append(np.ones(weights.shape[1]), 0.0)
    most = np.append(np.ones(weights.shape[1]), np.inf)
    found = milp(costs, integrality=kinds, bounds=Bounds(0, most), constraints=[rows, one], options=limits)
    return budget + int(np.ceil(found.fun))


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

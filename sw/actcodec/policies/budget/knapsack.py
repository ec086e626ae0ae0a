"""Choose one option for each item under one budget: the multiple-choice knapsack (Sinha and Zoltners, 1979).

An option has a weight, which the budget limits, and a loss. The solution picks one option per item such that the sum of losses
is least while the sum of weights is within the budget. Options above the lower convex hull of an item's (weight, loss)
are never part of a solution of the linear relaxation, and along the hull each further unit of weight removes less loss than
the one before: taking the steps of all hulls in the order of loss removed per weight solves the relaxation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from cdu_tools.errors import UserError

#: (weight, loss), both finite and not negative.
Option = tuple[float, float]


@dataclass(frozen=True)
class Choice:
    """One option per item, with total weight and loss."""

    picked: tuple[int, ...]  #: index of each item's option
    weight: float
    loss: float
    lower_bound: float  #: no choice within the budget has a smaller loss, up to rounding of floats

    @classmethod
    def of(cls, items: Sequence[Sequence[Option]], picked: Sequence[int], lower_bound: float | None = None) -> Choice:
        """Return the choice of the given options; without ``lower_bound`` it is taken to be the best."""
        weight = sum(options[place][0] for options, place in zip(items, picked, strict=True))
        loss = sum(options[place][1] for options, place in zip(items, picked, strict=True))
        return cls(tuple(picked), weight, loss, loss if lower_bound is None else min(lower_bound, loss))


def lightest_choice(items: Sequence[Sequence[Option]]) -> Choice:
    """Return the lightest option of each item, the one of least loss among equals: the least budget that can be met."""
    _check(items)
    return Choice.of(items, [options.index(min(options)) for options in items])


def greedy_choice(items: Sequence[Sequence[Option]], budget: float) -> Choice:
    """Take steps along the hulls, the best first, as long as they fit; then spend the rest on single changes that help most.

    The loss exceeds ``lower_bound``, the optimum when one step may be taken in part, by at most that of one hull step.
    O(options * log options) for the steps.

    Parameters
    ----------
    items
        The options of each item, one or more.
    budget
        Limit of the sum of weights; UserError if :func:`lightest_choice` exceeds it.
    """
    lightest = lightest_choice(items)
    _check_budget(lightest, budget)
    picked, room, loss, bound = list(lightest.picked), budget - lightest.weight, lightest.loss, None
    stopped: set[int] = set()
    for _, item, place in sorted(_steps(items)):
        if item in stopped:
            continue
        (weight, before), (heavier, after) = items[item][picked[item]], items[item][place]
        if heavier - weight > room:
            stopped.add(item)
            if bound is None:
                bound = loss - (before - after) * room / (heavier - weight)
            continue
        picked[item] = place
        room -= heavier - weight
        loss -= before - after
    _fill(items, picked, room)
    return Choice.of(items, picked, bound)


def no_worse_choice(items: Sequence[Sequence[Option]], budget: float, others: Sequence[Sequence[int]]) -> Choice:
    """Return :func:`greedy_choice`, or a choice of ``others``, one index per item, that fits the budget and loses less."""
    greedy = greedy_choice(items, budget)
    found = [Choice.of(items, picked, greedy.lower_bound) for picked in others]
    return min((greedy, *(one for one in found if one.weight <= budget)), key=lambda one: one.loss)


def hull(options: Sequence[Option]) -> list[int]:
    """Return the indices of the options on the lower convex hull, from the lightest to the one of least loss."""
    found: list[int] = []
    for place in sorted(range(len(options)), key=lambda place: options[place]):
        weight, loss = options[place]
        if found and loss >= options[found[-1]][1]:
            continue
        while len(found) > 1 and _slope(options[found[-2]], options[found[-1]]) >= _slope(options[found[-1]], (weight, loss)):
            found.pop()
        found.append(place)
    return found


def _slope(one: Option, other: Option) -> float:
    """Return the loss per weight from a lighter option to a heavier one, a negative number."""
    return (other[1] - one[1]) / (other[0] - one[0])


def _steps(items: Sequence[Sequence[Option]]) -> list[tuple[float, int, int]]:
    """Return (slope, item, index after it) of all steps along all hulls; the steps of an item have rising slopes."""
    return [
        (_slope(options[one], options[other]), item, other)
        for item, options in enumerate(items)
        for one, other in pairwise(hull(options))
    ]


def _fill(items: Sequence[Sequence[Option]], picked: list[int], room: float) -> None:
    """Change ``picked``, one item at a time, by the change that removes most loss within the room left."""
    while True:
        gain, item, place, weight = max(
            (options[now][1] - loss, item, place, weight - options[now][0])
            for item, (options, now) in enumerate(zip(items, picked, strict=True))
            for place, (weight, loss) in enumerate(options)
            if weight - options[now][0] <= room
        )
        if gain <= 0:
            return
        picked[item] = place
        room -= weight


def _check(items: Sequence[Sequence[Option]]) -> None:
    if not items or not all(items):
        raise UserError("there is no item, or one without options: give one option or more for each item")
    if not all(isfinite(number) and number >= 0 for options in items for option in options for number in option):
        raise UserError("a weight or loss is negative or not finite: use finite numbers from 0 up")


def _check_budget(lightest: Choice, budget: float) -> None:
    if lightest.weight > budget:
        raise UserError(f"a budget of {budget:g} does not hold the lightest options, which weigh {lightest.weight:g}: use more")

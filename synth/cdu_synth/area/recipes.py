"""Recipes by which logic is mapped, and the clock period, with their checks."""

from __future__ import annotations

from collections.abc import Sequence

from cdu_tools.distinct import check_distinct
from cdu_tools.errors import UserError

#: Ways to map logic onto gates, from the smallest to the fastest result. ``{period}`` is in picoseconds.
RECIPES = {
    "area": "dc2\ndc2\ndch -f\namap -m",
    "balanced": "&get -n\n&st\n&dch -f\n&nf -p -F 8 -D {period}\n&put",
    "speed": "dc2\ndc2\ndch -f\nmap -B 0.9 -D {period}",
}
#: Default of the target period in ns, and its limits.
CLOCK_NS, LEAST_CLOCK_NS, GREATEST_CLOCK_NS = 1.6, 0.01, 1000.0


def check_clock(clock_ns: float, name: str = "clock_ns =") -> float:
    """Return the period; UserError, naming its origin ``name``, if it is out of range."""
    if not LEAST_CLOCK_NS <= clock_ns <= GREATEST_CLOCK_NS:
        raise UserError(f"{name} {clock_ns:g} is not allowed: use {LEAST_CLOCK_NS:g} to {GREATEST_CLOCK_NS:g}")
    return clock_ns


def check_recipes(recipes: Sequence[str], name: str = "recipe") -> None:
    """Raise UserError, naming the origin ``name``, for a recipe that is not in :data:`RECIPES` or is given twice."""
    check_distinct(name, recipes)
    if unknown := [recipe for recipe in recipes if recipe not in RECIPES]:
        raise UserError(f"{name} {unknown[0]} is not known: use {', '.join(RECIPES)}")

"""Choose few cases of a product of factors in which the values of any two factors meet as they do in the product."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np

Case = TypeVar("Case", bound=tuple[Hashable, ...])
_Value = tuple[int, Hashable]


def pairs(case: tuple[Hashable, ...]) -> list[tuple[_Value, _Value]]:
    """Return the pairs of values of a case, each value with the number of its factor."""
    return list(combinations(enumerate(case), 2))


def pairwise(product: Sequence[Case], factors: Callable[[Case], tuple[Hashable, ...]] = tuple, seed: int = 0) -> list[Case]:
    """Return cases of a product, in its order, that have every pair of values that any case of the product has.

    A greedy search takes the case with the most new pairs, over and over. ``factors(case)`` are the values of a case that are
    paired, by default its own. ``seed`` decides between cases that have as many new pairs.
    """
    cases = np.random.default_rng(seed).permutation(len(product))
    numbers: dict[tuple[_Value, _Value], int] = {}
    table = np.array([[numbers.setdefault(pair, len(numbers)) for pair in pairs(factors(product[case]))] for case in cases])
    missing, chosen = np.ones(len(numbers), bool), []
    while missing.any():
        best = missing[table].sum(1).argmax()
        missing[table[best]] = False
        chosen.append(cases[best])
    return [product[case] for case in sorted(chosen)]

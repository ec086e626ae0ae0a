"""The best choice of one option for each item under a budget, by dynamic programming: what greedy choices are held against."""

from math import gcd, inf

import numpy as np
from actcodec.codecs.actnn.allocation import MAX_BITS, Allocation
from actcodec.policies.budget.knapsack import Choice


def exact_choice(items, budget):
    """The best choice for whole weights; time and memory grow with options times budget."""
    least = np.zeros(budget + 1)
    chosen = np.zeros((len(items), budget + 1), dtype=np.int64)
    for item, options in enumerate(items):
        before, least = least, np.full(budget + 1, inf)
        for place, (weight, loss) in enumerate(options):
            if weight > budget:
                continue
            candidate = before[: budget + 1 - weight] + loss
            better = candidate < least[weight:]
            least[weight:][better] = candidate[better]
            chosen[item, weight:][better] = place
    picked, left = [0] * len(items), budget
    for item in reversed(range(len(items))):
        picked[item] = int(chosen[item, left])
        left -= items[item][picked[item]][0]
    return Choice.of(items, picked)


def exact_allocation(sensitivity, sizes, budget):
    """The best bits from 1 to 8: of b bits an item of D values weighs b D, and loses ``w / (2**b - 1)**2``."""
    unit = gcd(*sizes)
    all_bits = range(1, MAX_BITS + 1)
    items = [
        [(bits * size // unit, w / (2**bits - 1) ** 2) for bits in all_bits] for w, size in zip(sensitivity, sizes, strict=True)
    ]
    found = exact_choice(items, min(budget, MAX_BITS * sum(sizes)) // unit)
    return Allocation.of([all_bits[place] for place in found.picked], sensitivity)

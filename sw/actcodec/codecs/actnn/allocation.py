"""Bits for tensors of different sensitivity under one budget (ActNN, section 4: mixed precision).

Item i (a sample of a saved tensor) has a sensitivity ``w_i``: codes of b bits add the variance ``w_i / (2**b - 1)**2`` to the
gradient. Its size ``D_i`` is its number of values. The bits, from 1 to 8, are to minimise the sum of the variances with
``sum D_i * b_i`` within the budget. The variance is convex in b, so that each further bit removed costs more than the one
before, and a greedy choice is good.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

import torch
from cdu_tools.errors import UserError
from torch import Tensor

#: Most bits per value; the fewest is 1.
MAX_BITS = 8
#: Factors ``1 / (2**b - 1)**2`` for b = 0 (infinite: every item needs a bit) to 8.
_VARIANCE = (inf, *(1.0 / ((1 << bits) - 1) ** 2 for bits in range(1, MAX_BITS + 1)))


@dataclass(frozen=True)
class Allocation:
    """Bits per item, and the resulting variance with a bound on the best one."""

    bits: tuple[int, ...]
    variance: float  #: sum of ``w_i / (2**b_i - 1)**2``
    lower_bound: float  #: no allocation within the budget has a smaller variance, rounding of floats apart

    @classmethod
    def of(cls, bits: Sequence[int], sensitivity: Sequence[float], lower_bound: float | None = None) -> Allocation:
        """Return the allocation of the given bits; without a bound it is known to be the best."""
        variance = sum(w * _VARIANCE[b] for w, b in zip(sensitivity, bits, strict=True))
        return cls(tuple(bits), variance, variance if lower_bound is None else min(lower_bound, variance))


def greedy_allocation(sensitivity: Sequence[float], sizes: Sequence[int], budget: int) -> Allocation:
    """Return ActNN's greedy allocation: 8 bits everywhere, then bits are removed where that costs the least variance per bit.

    Bits are removed until the budget holds, in O(items * log items) with a heap. With equal sizes the result is the best one.
    With different sizes it is the best one for the bits that it uses; the rest of the budget, less than the size of the last
    item that lost a bit, could be worth at most ``variance - lower_bound``, which is at most the cost of that last move:
    ``lower_bound`` is the optimum when a part of the last bit may be kept (the linear relaxation). Among equal costs the item
    with the most bits loses one, so that items without sensitivity share evenly.

    Parameters
    ----------
    sensitivity
        Sensitivity of each item, finite and not negative.
    sizes
        Values of each item, positive.
    budget
        Bits for all values, at least ``sum(sizes)``; UserError otherwise.
    """
    _check(sensitivity, sizes, budget)
    bits = [MAX_BITS] * len(sizes)
    excess = MAX_BITS * sum(sizes) - budget
    heap = [(_cost(w, MAX_BITS) / size, -MAX_BITS, item) for item, (w, size) in enumerate(zip(sensitivity, sizes, strict=True))]
    heapq.heapify(heap)
    partly = None
    while excess > 0:
        _, _, item = heap[0]
        if excess < sizes[item]:
            kept_part = 1 - excess / sizes[item]
            partly = _cost(sensitivity[item], bits[item]) * kept_part
        excess -= sizes[item]
        bits[item] -= 1
        if bits[item] > 1:
            heapq.heapreplace(heap, (_cost(sensitivity[item], bits[item]) / sizes[item], -bits[item], item))
        else:
            heapq.heappop(heap)
    found = Allocation.of(bits, sensitivity)
    return found if partly is None else Allocation.of(bits, sensitivity, found.variance - partly)


def equal_allocation(sensitivity: Tensor, total: int) -> Tensor:
    """Return the best bits of items of one size, without a loop over them, on the device of ``sensitivity``.

    Parameters
    ----------
    sensitivity
        (N,), finite and not negative.
    total
        Sum of the bits, N to 8 N; UserError otherwise.

    Returns
    -------
    uint8 (N,), each 1 to 8, of sum ``total``.
    """
    count = sensitivity.numel()
    if not count <= total <= MAX_BITS * count:
        raise UserError(f"{total} bits for {count} items are not possible: use {count} to {MAX_BITS * count}")
    costs = sensitivity.new_tensor([_cost(1.0, bits) for bits in range(MAX_BITS, 1, -1)], dtype=torch.float64)
    # Costs are sorted row by row from 8 bits down: of equal costs the sort takes first what leaves the items most even.
    order = torch.argsort((costs[:, None] * sensitivity.to(torch.float64)).flatten(), stable=True)
    taken = torch.bincount(order[: MAX_BITS * count - total] % count, minlength=count)
    return (MAX_BITS - taken).to(torch.uint8)


def _cost(sensitivity: float, bits: int) -> float:
    """Return the variance that is added when an item of ``bits`` bits loses one."""
    return sensitivity * (_VARIANCE[bits - 1] - _VARIANCE[bits])


def _check(sensitivity: Sequence[float], sizes: Sequence[int], budget: int) -> None:
    if not sizes or len(sensitivity) != len(sizes):
        raise UserError(f"{len(sensitivity)} sensitivities and {len(sizes)} sizes: give as many of both, one or more")
    if not all(isfinite(w) and w >= 0 for w in sensitivity):
        raise UserError("a sensitivity is negative or not finite: use finite numbers from 0 up")
    if min(sizes) < 1:
        raise UserError(f"size {min(sizes)} is not allowed: use 1 or more values")
    if budget < sum(sizes):
        raise UserError(f"a budget of {budget} bits does not give {sum(sizes)} values one bit each: use {sum(sizes)} or more")

"""Multiplication of one value by several constants with shifts and shared additions.

The classic multiple-constant-multiplication problem: every constant is reached from 1 by additions of shifted, already
built multiples (after Dempster and Macleod, "Use of minimum-adder multiplier blocks in FIR digital filters", 1995). The
search depends on nothing but the constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from amaranth.hdl import Module, Value

from cdu.parts.widths import Ranged


@dataclass(frozen=True)
class Addition:
    """``result = (left << left_shift) + sign * (right << right_shift)``, all multiples odd and positive."""

    result: int
    left: int
    left_shift: int
    right: int
    right_shift: int
    sign: int


def _odd(value: int) -> int:
    """The odd part of a positive number."""
    return value >> ((value & -value).bit_length() - 1)


def _sums(left: int, right: int, limit: int) -> Iterator[Addition]:
    """Every odd multiple below ``limit`` that one addition makes from two multiples."""
    for shift in range(limit.bit_length()):
        pairs = ((left, shift, right, 0), (left, 0, right, shift)) if shift else ((left, 0, right, 0),)
        for a, a_shift, b, b_shift in pairs:
            high, low = a << a_shift, b << b_shift
            for total, sign in ((high + low, 1), (high - low, -1)):
                if 0 < total < limit and total & 1:
                    yield Addition(total, a, a_shift, b, b_shift, sign)


#: Multiples that exist, each with the number of additions one after the other that it takes.
Depths = Mapping[int, int]


def _one_step(available: Depths, limit: int) -> dict[int, Addition]:
    """All odd multiples that one addition makes from those available, each with such an addition of the least depth."""
    found: dict[int, Addition] = {}
    for left, right in sorted(product(available, repeat=2), key=lambda pair: max(available[pair[0]], available[pair[1]])):
        for addition in _sums(left, right, limit):
            found.setdefault(addition.result, addition)
    return found


def _extended(available: Depths, addition: Addition) -> Depths:
    """The multiples after an addition."""
    depth = 1 + max(available[addition.left], available[addition.right])
    return {**available, addition.result: depth}


def _chain(available: Depths, constant: int, limit: int, length: int) -> tuple[Addition, ...] | None:
    """``length`` additions, the last of which makes ``constant``; None if there are none."""
    step = _one_step(available, limit)
    if length == 1:
        return (step[constant],) if constant in step else None
    for helper in sorted(set(step).difference(available)):
        rest = _chain(_extended(available, step[helper]), constant, limit, length - 1)
        if rest is not None:
            return (step[helper], *rest)
    return None


def _popular_helper(available: Depths, missing: list[int], limit: int) -> Addition | None:
    """The one addition after which most of the missing constants are one addition away; None if none would be."""
    step = _one_step(available, limit)

    def merit(helper: int) -> tuple[int, int]:
        near = {addition.result for other in (*available, helper) for addition in _sums(helper, other, limit)}
        return sum(constant in near for constant in missing), -_extended(available, step[helper])[helper]

    best = max(sorted(step), key=merit)
    return step[best] if merit(best)[0] else None


@lru_cache
def adder_graph(constants: frozenset[int]) -> tuple[Addition, ...]:
    """Additions, in order, that make every odd positive constant from 1.

    Raises ValueError for constants that are even or not positive.
    """
    if any(constant <= 0 or constant % 2 == 0 for constant in constants):
        raise ValueError(f"constants {sorted(constants)} are not allowed: use odd positive ones")
    limit = 1 << (max(constants, default=1).bit_length() + 1)
    available: Depths = {1: 0}
    graph: list[Addition] = []
    while missing := sorted(constants.difference(available)):
        step = _one_step(available, limit)
        ready = [step[constant] for constant in missing if constant in step]
        if ready:
            more: tuple[Addition, ...] = (ready[0],)
        elif helper := _popular_helper(available, missing, limit):
            more = (helper,)
        else:
            # The nearest constant takes several additions of its own: the shortest chain, which binary addition bounds.
            chains = (_chain(available, missing[0], limit, length) for length in range(3, limit.bit_length()))
            more = next(chain for chain in chains if chain is not None)
        graph += more
        for addition in more:
            available = _extended(available, addition)
    return tuple(graph)


@dataclass(frozen=True)
class Cut:
    """Registers, moved by ``advance``, amid a path of ``before`` additions, the products and ``behind`` additions."""

    advance: Value
    before: int
    behind: int

    def depth(self, deepest: int) -> int:
        """Additions of a graph of depth ``deepest`` in front of the registers."""
        return min(max((deepest + self.behind - self.before + 1) // 2, 0), deepest)


def products(m: Module, value: Ranged, constants: Iterable[int], name: str, cut: Cut | None = None) -> dict[int, Ranged]:
    """``value * constant`` for every positive constant, as signals of exactly the width they need.

    Combinational, or with a ``cut`` a cycle later: few multiples exist in the middle of the graph, so that registers there are
    cheaper than behind it.
    """
    wanted = set(constants)
    graph = adder_graph(frozenset(map(_odd, wanted)))
    depths: Depths = {1: 0}
    for step in graph:
        depths = _extended(depths, step)
    depth = cut.depth(max(depths.values())) if cut else None
    multiples = {1: value}
    later: dict[int, Ranged] = {}  # behind the cut

    def behind_cut(multiple: int) -> Ranged:
        if cut and multiple not in later:
            later[multiple] = multiples[multiple].register(m, cut.advance, f"{name}_x{multiple}_cut")
        return later[multiple] if cut else multiples[multiple]

    for step in graph:
        crosses = depth is not None and depths[step.result] > depth
        left, right = (behind_cut(one) if crosses else multiples[one] for one in (step.left, step.right))
        left, right = left << step.left_shift, right << step.right_shift
        total = left + right if step.sign > 0 else left - right
        exact = total.within(value.low * step.result, value.high * step.result)
        (later if crosses else multiples)[step.result] = exact.wire(m, f"{name}_x{step.result}")
    return {constant: behind_cut(_odd(constant)) << ((constant & -constant).bit_length() - 1) for constant in wanted}

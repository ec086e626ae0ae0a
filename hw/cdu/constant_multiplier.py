"""Multiplication of one value by several constants with shifts and shared additions.

The classic multiple-constant-multiplication problem: every constant is reached from 1 by additions of shifted, already
built multiples (after Dempster and Macleod, "Use of minimum-adder multiplier blocks in FIR digital filters", 1995). The
search is greedy, complete for one and two additions per constant, and depends on nothing but the constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from amaranth.hdl import Module

from cdu.widths import Ranged


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


def _one_step(available: tuple[int, ...], limit: int) -> dict[int, Addition]:
    """All odd multiples that one addition makes from those available, each with its first such addition."""
    found: dict[int, Addition] = {}
    for left in available:
        for right in available:
            for addition in _sums(left, right, limit):
                found.setdefault(addition.result, addition)
    return found


@lru_cache
def adder_graph(constants: frozenset[int]) -> tuple[Addition, ...]:
    """Additions, in order, that make every odd positive constant from 1.

    Raises ValueError for constants that are even or not positive.
    """
    if any(constant <= 0 or constant % 2 == 0 for constant in constants):
        raise ValueError(f"constants {sorted(constants)} are not allowed: use odd positive ones")
    missing = sorted(constants - {1})
    limit = 1 << (max(constants, default=1).bit_length() + 1)
    available, graph = (1,), []

    def add(addition: Addition) -> None:
        nonlocal available
        if addition.result not in available:
            graph.append(addition)
            available += (addition.result,)

    while missing := [constant for constant in missing if constant not in available]:
        step = _one_step(available, limit)
        if ready := [constant for constant in missing if constant in step]:
            add(step[ready[0]])
            continue
        # No constant is one addition away: take the intermediate multiple from which most constants are.
        best: tuple[int, int, int] | None = None
        for candidate in sorted(step):
            reach = _one_step_with(available, candidate, limit)
            hits = sum(constant in reach for constant in missing)
            if hits and (best is None or (-hits, candidate) < best[:2]):
                best = (-hits, candidate, 0)
        add(step[best[1]] if best else step[_nearest(step, missing[0])])
    return tuple(graph)


def _one_step_with(available: tuple[int, ...], candidate: int, limit: int) -> set[int]:
    """Odd multiples that one addition makes with ``candidate`` as an operand."""
    operands = (*available, candidate)
    return {addition.result for other in operands for addition in _sums(candidate, other, limit)}


def _nearest(step: dict[int, Addition], constant: int) -> int:
    """The reachable multiple that leaves the least of ``constant`` to be added."""
    return min(step, key=lambda value: (abs(constant - value).bit_count(), value))


def products(m: Module, value: Ranged, constants: Iterable[int], name: str) -> dict[int, Ranged]:
    """``value * constant`` for every positive constant, as combinational signals of exactly the width they need."""
    wanted = set(constants)
    multiples = {1: value}
    for step in adder_graph(frozenset(map(_odd, wanted))):
        left, right = multiples[step.left] << step.left_shift, multiples[step.right] << step.right_shift
        total = left + right if step.sign > 0 else left - right
        exact = total.within(value.low * step.result, value.high * step.result)
        multiples[step.result] = exact.wire(m, f"{name}_x{step.result}")
    return {constant: multiples[_odd(constant)] << ((constant & -constant).bit_length() - 1) for constant in wanted}

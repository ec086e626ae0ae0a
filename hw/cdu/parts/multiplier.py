"""Multiplication of values in one cycle or in two, and the delay of accompanying values."""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Cat, Const, Module, Signal, Value

#: Puts a value into a register of that name.
Stage = Callable[[Value, str], Value]


def multiplied(m: Module, stage: Stage, left: Value, right: Value, stages: int) -> Value:
    """Return ``left * right``, unsigned and exact, 1 + ``stages`` cycles later.

    ``stages`` is 0, or 1 for registers before the addition that propagates all carries.
    """
    if not stages:
        return stage(left * right, "product")
    total, carries = _carry_save(m, left, right)
    sums = stage(total, "product_sums") + stage(carries, "product_carries")
    return stage(sums[: len(total)], "product")


def beside_product(stage: Stage, value: Value, name: str, stages: int) -> Value:
    """Return a value as many cycles later as :func:`multiplied` takes."""
    for number in range(stages):
        value = stage(value, f"{name}_early{number}")
    return stage(value, name)


def _carry_save(m: Module, left: Value, right: Value) -> tuple[Value, Value]:
    """Return numbers with the product as their sum modulo its width (Wallace, "A suggestion for a fast multiplier")."""
    width = len(left) + len(right)
    shorter, longer = sorted((left, right), key=len)
    terms: list[Value] = [Cat(Const(0, place), longer & bit.replicate(len(longer))) for place, bit in enumerate(shorter)]
    while len(terms) > 2:
        reduced = []
        whole = len(terms) // 3 * 3
        for a, b, c in zip(terms[:whole:3], terms[1:whole:3], terms[2:whole:3], strict=True):
            sums = Signal(width)
            carries = Signal(width)
            m.d.comb += [sums.eq(a ^ b ^ c), carries.eq(((a & b) | (a & c) | (b & c)) << 1)]
            reduced += [sums, carries]
        terms = reduced + terms[whole:]
    total = Signal(width)
    carries = Signal(width)
    m.d.comb += [total.eq(terms[0]), carries.eq(terms[1])]
    return total, carries

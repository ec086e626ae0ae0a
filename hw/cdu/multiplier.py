"""Multiplication of values in one cycle or in several, and what waits for the product."""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Cat, Value

#: Puts a value into a register of that name.
Stage = Callable[[Value, str], Value]


def multiplied(stage: Stage, left: Value, right: Value, stages: int) -> Value:
    """``left * right``, unsigned and exact, 1 + ``stages`` cycles later.

    ``stages`` is 0, or 1 for registers behind the products with both halves of the shorter factor, which are then added.
    """
    if not stages:
        return stage(left * right, "product")
    shorter, longer = sorted((left, right), key=len)
    half = len(shorter) // 2
    low, high = stage(longer * shorter[:half], "low_product"), stage(longer * shorter[half:], "high_product")
    upper = (low[half:] + high)[: len(high)]  # no carry: a product has no more bits than its factors
    return stage(Cat(low[:half], upper), "product")


def beside_product(stage: Stage, value: Value, name: str, stages: int) -> Value:
    """A value as many cycles later as :func:`multiplied` takes."""
    for number in range(stages):
        value = stage(value, f"{name}_early{number}")
    return stage(value, name)

"""Sums and comparisons of wide counts without a carry that ripples through all of their bits."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Mux, Value
from amaranth.lib import data


class LateCarry(data.StructLayout):
    """A number of ``width`` bits that can grow in each cycle: the carry into its upper half waits until the next sum.

    The number is ``low + ((carry + high) << len(low))`` modulo ``2**width``.
    """

    def __init__(self, width: int) -> None:
        super().__init__({"low": width // 2, "carry": 1, "high": width - width // 2})

    def of(self, value: Value) -> Value:
        """Return a number without a carry that is equal to ``value``."""
        low = self["low"].width
        return Cat(value[:low], Const(0, 1), value[low:])

    def plus(self, number: Any, addend: Value) -> Value:
        """Return the number that is greater by ``addend``: no sum is wider than a half."""
        low = self["low"].width
        high = number["high"] + addend[low:] + number["carry"]
        return Cat((number["low"] + addend[:low])[: low + 1], high[: self["high"].width])

    def value(self, number: Any, offset: Value) -> Value:
        """Return the value of the number plus a narrow ``offset``."""
        return Cat(number["low"], number["high"]) + (offset + Value.cast(number["carry"] << self["low"].width))


def wide_sum(augend: Value, addend: Value, width: int) -> Value:
    """Return ``augend + addend`` modulo ``2**width``: the upper half is computed for both carries at once (carry select)."""
    return _selected(augend, addend, width, False)


def wide_difference(minuend: Value, subtrahend: Value, width: int) -> Value:
    """Return ``minuend - subtrahend`` modulo ``2**width``, with carry select."""
    return _selected(minuend, subtrahend, width, True)


def below(count: Value, limit: Value) -> Value:
    """Return ``count < limit`` for a narrow limit: no carry runs through a wide count."""
    bits = len(limit)
    return ~count[bits:].any() & (count[:bits] < limit)


def within(count: Value, limit: Value) -> Value:
    """Return ``count <= limit`` for a narrow limit: no carry runs through a wide count."""
    bits = len(limit)
    return ~count[bits:].any() & (count[:bits] <= limit)


def _selected(left: Value, right: Value, width: int, subtract: bool) -> Value:
    ours, theirs = (_extended(value, width) for value in (left, right))
    half = (width + 1) // 2
    if subtract:
        low = ours[:half] - theirs[:half]
        with_carry = ours[half:] + ~theirs[half:]
        without = ours[half:] - theirs[half:]
    else:
        low = ours[:half] + theirs[:half]
        with_carry = ours[half:] - ~theirs[half:]
        without = ours[half:] + theirs[half:]
    upper = width - half
    return Cat(low[:half], Mux(low[half], with_carry[:upper], without[:upper]))


def _extended(value: Value, width: int) -> Value:
    missing = width - len(value)
    if missing <= 0:
        return value[:width]
    return Cat(value, value[-1].replicate(missing) if value.shape().signed else Const(0, missing))

"""Sums and comparisons of wide counts without a carry that ripples through all of their bits."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Mux, Value


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

"""Barrel shifters over bytes."""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Const, Module, Mux, Signal, Value


def rotate_left(m: Module, value: Value, count: Value, name: str) -> Value:
    """Return ``value`` with every byte ``count`` places higher, the highest ones at the bottom."""
    return _staged(m, value, count, name, lambda bits, places: bits.rotate_left(8 * places))


def rotate_right(m: Module, value: Value, count: Value, name: str) -> Value:
    """Return ``value`` with every byte ``count`` places lower, the lowest ones at the top."""
    return _staged(m, value, count, name, lambda bits, places: bits.rotate_right(8 * places))


def shift_left(m: Module, value: Value, count: Value, name: str) -> Value:
    """Return ``value`` with every byte ``count`` places higher, zeros below; bytes beyond the end are cut off."""
    return _staged(m, value, count, name, lambda bits, places: bits.shift_left(8 * places)[: len(bits)])


def shift_right(m: Module, value: Value, count: Value, name: str) -> Value:
    """Return ``value`` with every byte ``count`` places lower, zeros above."""
    return _staged(m, value, count, name, lambda bits, places: bits.shift_right(8 * places))


def _staged(m: Module, value: Value, count: Value, name: str, move: Callable[[Value, int], Value]) -> Value:
    """Return one multiplexer per bit of ``count``, each a signal: the text of an expression would double with every stage."""
    for stage in range(len(count)):
        moved = Signal(len(value), name=f"{name}{1 << stage}")
        m.d.comb += moved.eq(Mux(count[stage], move(value, 1 << stage), value))
        value = moved
    return value


def wrapped(start: Value, size: int) -> list[Value]:
    """Return for every place of a ring of ``size`` bytes whether data that begin at ``start`` wrap round before it.

    ``start`` counts to ``size - 1``; nothing can begin behind the last place.
    """
    return [*(start > place for place in range(size - 1)), Const(0, 1)]

"""Counters that registers show."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from cdu_spec.register_types import REGISTER_BITS


def registered(m: Module, value: Value, name: str) -> Signal:
    """Return a value of one cycle earlier, so that no path leads from the ports of the unit through a counter."""
    delayed = Signal.like(value, name=name)
    m.d.sync += delayed.eq(value)
    return delayed


def counter(m: Module, name: str, increment: Value, clear: Value) -> Signal:
    """Return a counter of 32 bits that wraps."""
    count = Signal(REGISTER_BITS, name=name)
    with m.If(clear):
        m.d.sync += count.eq(0)
    with m.Else():
        m.d.sync += count.eq(count + increment)
    return count


def wide_counter(m: Module, name: str, increment: Value, clear: Value) -> tuple[Signal, Signal]:
    """Return the low and the high half of a counter of 64 bits.

    The carry between the halves is registered: the high half lags the low half by one cycle.
    """
    low, high = Signal(REGISTER_BITS, name=f"{name}_lower"), Signal(REGISTER_BITS, name=f"{name}_upper")
    carry = Signal(name=f"{name}_carry")
    m.d.sync += [Cat(low, carry).eq(low + increment), high.eq(high + carry)]
    with m.If(clear):
        m.d.sync += [low.eq(0), carry.eq(0), high.eq(0)]
    return low, high


def event_counter(m: Module, name: str, event: Value, clear: Value) -> Signal:
    """Return a counter of 32 bits that saturates."""
    count = Signal(REGISTER_BITS, name=name)
    with m.If(clear):
        m.d.sync += count.eq(0)
    with m.Elif(event & ~count.all()):
        m.d.sync += count.eq(count + 1)
    return count

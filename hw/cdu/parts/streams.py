"""Payloads of the streams between blocks, and the pipeline of most blocks.

Streams obey Amaranth's four rules (valid and payload hold until the transfer, valid never waits for ready).
"""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Shape, Signal, Value, signed
from amaranth.lib import data, stream
from cdu_spec.geometry import LANES, VALUE_BITS
from cdu_spec.modes import Dtype
from cdu_spec.register_types import COUNT_BITS


def lanes(width: int) -> data.ArrayLayout:
    """Return the layout of one row of 8 signed integers of ``width`` bits, a beat."""
    return data.ArrayLayout(signed(width), LANES)


#: Width of the count of beats in a job.
BEATS_BITS = COUNT_BITS

#: A beat of quantised values.
Beat = lanes(VALUE_BITS)


def float_beat(dtype: Dtype) -> data.ArrayLayout:
    """Return the layout of one row of 8 floating-point values as bit patterns."""
    return data.ArrayLayout(Shape(dtype.bits), LANES)


def pipeline(m: Module, i: stream.Interface, o: stream.Interface, stages: int) -> Signal:
    """Connect the handshakes of a block whose data pass through ``stages`` registers that move together.

    Returns the enable of these registers: high unless the output waits. One transfer per cycle, latency ``stages``.
    """
    advance = Signal()
    valid = Signal(stages)
    m.d.comb += [advance.eq(~o.valid | o.ready), o.valid.eq(valid[-1]), i.ready.eq(advance)]
    with m.If(advance):
        m.d.sync += valid.eq(Cat(i.valid, valid)[:stages])
    return advance


def registered(m: Module, enable: Value, value: Value, name: str) -> Value:
    """Return ``value`` one cycle later, in a register that moves when ``enable`` is high and is not reset."""
    register = Signal.like(value, name=name, reset_less=True)
    with m.If(enable):
        m.d.sync += register.eq(value)
    return register

"""Round-robin choice of one of several streams of bursts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream


def granted(m: Module, streams: Sequence[stream.Interface], advance: Value) -> tuple[Value, Value, Any]:
    """Choose a valid stream in round-robin order; return whether there is one, its number, and its payload.

    ``advance`` takes the payload; the next choice begins behind the stream that was taken last. Combinational. The number can
    change before it is taken, when a stream that comes earlier in this order becomes valid.
    """
    count = len(streams)
    turn = Signal(range(count))
    chosen = Signal(range(count))
    valids = Cat(stream.valid for stream in streams)
    # The first valid stream from the turn on, or else the first of all; the turn is never behind the last stream.
    reached = Cat(*(turn <= number for number in range(count - 1)), Const(1, 1))
    first: Value = Value.cast(0)
    behind: Value = Value.cast(0)
    for number in reversed(range(count)):
        first = Mux(valids[number], number, first)
        behind = Mux(valids[number] & reached[number], number, behind)
    m.d.comb += [
        chosen.eq(Mux((valids & reached).any(), behind, first)),
        *(stream.ready.eq(advance & (chosen == number)) for number, stream in enumerate(streams)),
    ]
    with m.If(advance & valids.any()):
        m.d.sync += turn.eq(Mux(chosen == count - 1, 0, chosen + 1))
    return valids.any(), chosen, Array(stream.payload for stream in streams)[chosen]

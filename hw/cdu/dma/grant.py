"""One of several streams of bursts, in turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream


def granted(m: Module, streams: Sequence[stream.Interface], advance: Value) -> tuple[Value, Value, Any]:
    """Whether one is valid, its number, its payload; ``advance`` takes it. The one behind the last that was taken goes first.

    A number stays until it is taken, or one that goes before it comes.
    """
    count = len(streams)
    turn = Signal(range(count))
    chosen = Signal(range(count))
    valids = Cat(stream.valid for stream in streams)
    # Of those from the turn on the first, or else the first of all; the turn is never behind the last one.
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

"""A zero byte after every FF of an entropy-coded segment (ITU-T T.81, B.1.1.5)."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.jpeg import MARKER

from cdu.coding.zvc import popcount
from cdu.parts.streams import pipeline, registered
from cdu.parts.width_converter import Bytes


class ByteStuffer(wiring.Component):
    """Words of bytes with the zero bytes that keep them from looking like markers.

    Parameters
    ----------
    size
        Bytes of a word that comes; one that leaves has room for twice as many.

    Ports: ``i``, ``o`` streams of :class:`~cdu.parts.width_converter.Bytes`. Latency 1 cycle, one transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    latency = 1

    def __init__(self, size: int) -> None:
        self.size = size
        super().__init__({"i": In(stream.Signature(Bytes(size))), "o": Out(stream.Signature(Bytes(2 * size)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        advance = pipeline(m, self.i, self.o, self.latency)
        word: Any = self.i.payload
        # Behind the end of a job there are zeros: no FF.
        marks = Signal(self.size)
        stuffed = [word["data"].word_select(place, 8) for place in range(self.size)]
        m.d.comb += marks.eq(Cat(*(byte == MARKER for byte in stuffed)))
        before = [popcount(marks[:place]) if place else Const(0) for place in range(self.size)]

        def at(place: int) -> Value:
            candidates = (
                Mux(before[source] == place - source, stuffed[source], 0)
                for source in range((place + 1) // 2, min(place + 1, self.size))
            )
            return reduce(or_, candidates, Const(0, 8))

        out: Any = self.o.payload
        m.d.comb += [
            out["data"].eq(registered(m, advance, Cat(*(at(place) for place in range(2 * self.size))), "stuffed")),
            out["count"].eq(registered(m, advance, word["count"] + popcount(marks), "count")),
            out["last"].eq(registered(m, advance, word["last"], "last")),
        ]
        return m

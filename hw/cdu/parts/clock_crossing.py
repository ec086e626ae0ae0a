"""Crossing of a stream from one clock to another."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import AsyncFIFO
from amaranth.lib.wiring import In, Out

#: Number of words in transit. A pointer needs three clocks of the other side to be seen there, and one to move on.
DEPTH = 8


class ClockCrossing(wiring.Component):
    """Amaranth's asynchronous FIFO as a stream: Gray-coded pointers, each through two registers.

    Parameters
    ----------
    shape
        Shape of the payload.
    depth
        Number of words in transit, a power of 2.
    source, sink
        Domains of both sides. Their clocks may have any frequencies and phases; their resets are given together.

    Ports
    -----
    i, o
        The stream at both sides. ``i.ready`` is low while the reset of the sink's side lasts.

    Latency: one cycle of the source, two to three of the sink. A word per cycle of the slower clock.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, shape: Any, source: str, sink: str, depth: int = DEPTH) -> None:
        self._source, self._sink, self._depth = source, sink, depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        payload = Value.cast(self.i.payload)
        m.submodules.fifo = fifo = AsyncFIFO(width=len(payload), depth=self._depth, r_domain=self._sink, w_domain=self._source)
        m.d.comb += [
            *(fifo.w_data.eq(payload), fifo.w_en.eq(self.i.valid), self.i.ready.eq(fifo.w_rdy)),
            *(Value.cast(self.o.payload).eq(fifo.r_data), self.o.valid.eq(fifo.r_rdy), fifo.r_en.eq(self.o.ready)),
        ]
        return m

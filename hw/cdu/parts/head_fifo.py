"""Queue with its head in a separate register."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from cdu.parts.stream_fifo import StreamFifo


class HeadFifo(wiring.Component):
    """A :class:`~cdu.parts.stream_fifo.StreamFifo` that selects among its registers before the head, not behind it.

    It suits payloads from which much is computed in the cycle of their transfer, and has as many registers.

    Parameters
    ----------
    shape
        Shape of the payload.
    depth
        Number of payloads, at least 2.

    Ports: ``i``, ``o`` streams of ``shape``. Latency 1 cycle, one transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    latency = 1

    def __init__(self, shape: Any, depth: int) -> None:
        self.shape, self.depth = shape, depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.behind = behind = StreamFifo(self.shape, self.depth - 1)
        head: Any = Signal.like(self.o.payload, reset_less=True)
        moves = Signal()
        given, kept = Value.cast(self.i.payload), Value.cast(behind.o.payload)
        m.d.comb += [
            moves.eq(~self.o.valid | self.o.ready),
            behind.i.payload.eq(self.i.payload),
            behind.i.valid.eq(self.i.valid & (~moves | behind.o.valid)),
            behind.o.ready.eq(moves),
            self.i.ready.eq(behind.i.ready),
            self.o.payload.eq(head),
        ]
        with m.If(moves):
            m.d.sync += [self.o.valid.eq(self.i.valid | behind.o.valid), head.eq(Mux(behind.o.valid, kept, given))]
        return m

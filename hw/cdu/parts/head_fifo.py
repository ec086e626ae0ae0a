"""Queue whose head is a register."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out


class HeadFifo(wiring.Component):
    """A :class:`~cdu.parts.stream_fifo.StreamFifo` that moves its payloads towards the head.

    It suits payloads from which much is computed in the cycle of their transfer: nothing is selected behind the head, and
    ``ready``, which then comes late, enables registers without passing through a counter.

    Parameters
    ----------
    shape
        Shape of the payload.
    depth
        Number of payloads, at least 1.

    Ports: ``i``, ``o`` streams of ``shape``. Latency 1 cycle; one transfer per cycle, with ``depth`` 1 one in two cycles.
    """

    i: stream.Interface
    o: stream.Interface

    latency = 1

    def __init__(self, shape: Any, depth: int) -> None:
        self.depth = depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        given = Value.cast(self.i.payload)
        places = [Signal(len(given), reset_less=True, name=f"place{number}") for number in range(self.depth)]
        filled = Signal(self.depth)  # from the head on
        comes = Signal()
        leaves = Signal()
        m.d.comb += [
            self.i.ready.eq(~filled[-1]),
            self.o.valid.eq(filled[0]),
            self.o.payload.eq(places[0]),
            comes.eq(self.i.valid & self.i.ready),
            leaves.eq(self.o.valid & self.o.ready),
        ]
        for number, place in enumerate(places):
            behind = filled[number + 1] if number + 1 < self.depth else 0
            before = filled[number - 1] if number else 1
            with m.If(leaves | (before & ~filled[number])):  # the first free place has what is offered, taken or not
                m.d.sync += place.eq(Mux(behind, places[min(number + 1, self.depth - 1)], given))
            m.d.sync += filled[number].eq(Mux(leaves, Mux(comes, filled[number], behind), filled[number] | (comes & before)))
        return m

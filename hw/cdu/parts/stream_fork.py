"""Fork of one stream to several takers."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out


class StreamFork(wiring.Component):
    """Give every payload of ``i`` to every stream of ``o``; the streams take it independently.

    Parameters
    ----------
    shape
        Shape of the payload.
    takers
        Number of streams ``o``.

    The payload stays in ``i`` until the last taker has it, so that none can be more than one payload ahead of another. Once a
    taker has a payload, ``i`` may lose its valid for a while but comes back with the same payload. No latency, one transfer per
    cycle; the readiness of ``i`` does not depend on its valid.
    """

    i: stream.Interface
    o: Any

    def __init__(self, shape: Any, takers: int) -> None:
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)).array(takers)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        takers = len(self.o)
        taken = Signal(takers)  # in earlier cycles
        done = Signal(takers)  # with this cycle
        m.d.comb += self.i.ready.eq(done.all())
        for taker, o in enumerate(self.o):
            m.d.comb += [
                o.payload.eq(self.i.payload),
                o.valid.eq(self.i.valid & ~taken[taker]),
                done[taker].eq(taken[taker] | o.ready),
            ]
        with m.If(self.i.valid):
            m.d.sync += taken.eq(Mux(self.i.ready, 0, done))
        return m

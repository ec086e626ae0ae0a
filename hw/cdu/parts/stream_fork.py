"""One stream for several takers."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out


class StreamFork(wiring.Component):
    """Hands every payload of ``i`` to every stream of ``o``, each of which takes it when it likes.

    Parameters
    ----------
    shape
        Shape of the payload.
    takers
        Number of streams ``o``.

    Every ``o`` has a register, so that it may be one payload behind the others. Latency 1 cycle, one transfer per cycle.
    """

    i: stream.Interface
    o: Any

    latency = 1

    def __init__(self, shape: Any, takers: int) -> None:
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)).array(takers)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        room = Signal(len(self.o))
        m.d.comb += self.i.ready.eq(room.all())
        for taker, o in enumerate(self.o):
            kept: Any = Signal(o.payload.shape(), name=f"kept{taker}", reset_less=True)
            m.d.comb += [room[taker].eq(~o.valid | o.ready), o.payload.eq(kept)]
            with m.If(room[taker]):
                m.d.sync += o.valid.eq(0)
            with m.If(self.i.valid & self.i.ready):
                m.d.sync += [o.valid.eq(1), kept.eq(self.i.payload)]
        return m

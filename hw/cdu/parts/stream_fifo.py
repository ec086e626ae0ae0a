"""Queue between two streams."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out


class StreamFifo(wiring.Component):
    """Queue of up to ``depth`` payloads.

    Parameters
    ----------
    shape
        Shape of the payload.
    depth
        Number of payloads, at least 1.

    Ports: ``i``, ``o`` streams of ``shape``. Latency 1 cycle; one transfer per cycle, with ``depth`` 1
    one in two cycles.
    """

    i: stream.Interface
    o: stream.Interface

    latency = 1

    def __init__(self, shape: Any, depth: int) -> None:
        self.depth = depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = SyncFIFO(width=len(Value.cast(self.i.payload)), depth=self.depth)
        m.d.comb += [
            queue.w_data.eq(self.i.payload),
            queue.w_en.eq(self.i.valid),
            self.i.ready.eq(queue.w_rdy),
            self.o.payload.eq(queue.r_data),
            self.o.valid.eq(queue.r_rdy),
            queue.r_en.eq(self.o.ready),
        ]
        return m

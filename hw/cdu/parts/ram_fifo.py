"""Queue between two streams whose words are in a memory."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from cdu.parts.ram import Ram


class RamFifo(wiring.Component):
    """Queue of up to ``depth`` payloads, and one that is offered, in a :class:`~cdu.parts.ram.Ram`.

    It suits long queues of wide payloads, instead of the registers of a :class:`~cdu.parts.stream_fifo.StreamFifo`.

    Parameters
    ----------
    shape
        Shape of the payload.
    depth
        Number of payloads, at least 2.

    Ports: ``i``, ``o`` streams of ``shape``. Latency 2 cycles, one transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    latency = 2

    def __init__(self, shape: Any, depth: int) -> None:
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})
        self.depth, self.ram = depth, Ram(len(Value.cast(self.i.payload)), depth)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        given, head = Value.cast(self.i.payload), Value.cast(self.o.payload)
        m.submodules.words = words = self.ram
        level = Signal(range(self.depth + 1))
        produce, consume = (Signal(range(self.depth), name=name) for name in ("produce", "consume"))
        writes = Signal()
        reads = Signal()
        m.d.comb += [
            self.i.ready.eq(level != self.depth),
            writes.eq(self.i.valid & self.i.ready),
            reads.eq((level != 0) & (~self.o.valid | self.o.ready)),
            words.write_enable.eq(writes),
            words.write_address.eq(produce),
            words.write_data.eq(given),
            words.read_enable.eq(reads),
            words.read_address.eq(consume),
            head.eq(words.read_data),
        ]
        m.d.sync += level.eq(level + writes - reads)
        for moves, place in ((writes, produce), (reads, consume)):
            with m.If(moves):
                m.d.sync += place.eq(Mux(place == self.depth - 1, 0, place + 1))
        with m.If(reads):
            m.d.sync += self.o.valid.eq(1)
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m

"""Packer of words of any number of bytes to full words."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from cdu.parts.barrel import rotate_left, wrapped
from cdu.parts.width_converter import Bytes, expand


class BytePacker(wiring.Component):
    """Close the gaps between the bytes of a job: all words but the last one are full.

    A job of no bytes gives one word of no bytes.

    Parameters
    ----------
    size
        Bytes of a word, a power of two.

    Ports: ``i``, ``o`` streams of :class:`~cdu.parts.width_converter.Bytes`. No latency from the byte that fills a word; one
    transfer per cycle at each end, but that the end of a job may take one more at ``o``.
    """

    i: stream.Interface
    o: stream.Interface

    latency = 0

    def __init__(self, size: int) -> None:
        if size & (size - 1):
            raise ValueError(f"{size} bytes are not allowed: use a power of two")
        self.size = size
        words = stream.Signature(Bytes(size))
        super().__init__({"i": In(words), "o": Out(words)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size, part, word = self.size, self.i.payload, self.o.payload
        held = Signal(8 * size)  # bytes that wait for a full word
        level = Signal(range(size))  # how many they are
        over = Signal()  # they are the end of a job
        total = Signal(range(2 * size))
        fills = Signal()
        ends = Signal()
        turned = rotate_left(m, part["data"], level, "turned")
        fresh = Signal(size)  # places of this word that were free; new bytes in the others begin the next word
        filled = Signal(size)  # places that the new bytes fill
        m.d.comb += [
            fresh.eq(~Cat(*wrapped(level, size))),
            filled.eq(fresh & ~over.replicate(size)),
            total.eq(level + part["count"]),
            fills.eq(total >= size),
            ends.eq(part["last"] & (total <= size)),
            self.o.valid.eq(over | (self.i.valid & (fills | part["last"]))),
            self.i.ready.eq(~over & (self.o.ready | ~(fills | part["last"]))),
            word["data"].eq(held | (turned & expand(filled))),
            word["count"].eq(Mux(over, level, Mux(fills, size, total))),
            word["last"].eq(over | ends),
        ]
        with m.If(over & self.o.ready):
            m.d.sync += [over.eq(0), level.eq(0), held.eq(0)]
        with m.Elif(self.i.valid & self.i.ready):
            m.d.sync += [
                over.eq(part["last"] & ~ends),
                level.eq(Mux(ends, 0, total[: len(level)])),
                held.eq(Mux(ends, 0, Mux(fills, turned & ~expand(fresh), word["data"]))),
            ]
        return m

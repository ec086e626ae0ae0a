"""Cutter of segments of memory into bursts."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2
from cdu_spec.dma import MEMORY_ADDRESS_BITS, SIZE_BITS

from cdu.dma.axi4 import BURST_WORDS, Burst
from cdu.dma.segments import PAD_BITS, Segment, words_to_boundary


class Part(data.StructLayout):
    """Part of a segment: ``bytes`` bytes of one burst, the first one ``offset`` bytes behind the beginning of a word.

    The last part of a segment has its padding and its ``last``; the part of a segment without bytes has no burst.
    """

    def __init__(self, size: int, words: int) -> None:
        numbers = {"offset": exact_log2(size), "bytes": (words * size).bit_length(), "pad": PAD_BITS}
        super().__init__(numbers | {"repeats": 1, "last": 1})


class SegmentCutter(wiring.Component):
    """Cut one segment after the other into bursts, and say which bytes of each burst belong to the segment.

    Parameters
    ----------
    size
        Bytes of a word of memory.
    words
        Words of the longest burst, at most :data:`~cdu.dma.axi4.BURST_WORDS`.

    Ports
    -----
    segments
        Stream of :class:`~cdu.dma.segments.Segment`.
    bursts
        Stream of :class:`~cdu.dma.axi4.Burst`, in the order of the segments; none crosses a boundary of 4 KiB.
    parts
        Stream of :class:`Part`, one for each burst, before it, and one for each segment without bytes.

    Latency: 1 cycle from ``segments`` to ``parts``, 2 to ``bursts``; a part per cycle at each stream.
    """

    segments: stream.Interface
    bursts: stream.Interface
    parts: stream.Interface

    def __init__(self, size: int, words: int = BURST_WORDS) -> None:
        self.size, self.words = size, words
        super().__init__(
            {
                "segments": In(stream.Signature(Segment())),
                "bursts": Out(stream.Signature(Burst())),
                "parts": Out(stream.Signature(Part(size, words))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        place = exact_log2(self.size)
        segment, part = self.segments.payload, self.parts.payload
        burst: Any = self.bursts.payload
        held = Signal()  # a segment is in progress
        address = Signal(MEMORY_ADDRESS_BITS)  # of the bytes that no burst has yet
        left = Signal(SIZE_BITS)  # number of these bytes
        kept = {name: Signal.like(segment[name], name=name) for name in ("pad", "repeats", "last")}
        # The rest is compared in as many bits as a burst has bytes, beside a bit that says whether there is more.
        few_bits = len(part["bytes"])
        few, rest = ~left[few_bits:].any(), left[:few_bits]
        needed = Signal(few_bits + 1)  # words up to the end of the segment, if they are few
        limit = Signal(range(self.words + 1))  # most words of a burst from here
        whole = Signal()  # one burst has the rest of the segment
        moves = Signal()
        moved = Signal(few_bits)
        reach = words_to_boundary(address, self.size)
        m.d.comb += [
            needed.eq((address[:place] + rest + self.size - 1) >> place),
            limit.eq(Mux(reach < self.words, reach, self.words)),
            whole.eq(few & (needed <= limit)),
            moved.eq((limit << place) - address[:place]),
            self.parts.valid.eq(held & (~self.bursts.valid | self.bursts.ready)),
            moves.eq(self.parts.valid & self.parts.ready),
            self.segments.ready.eq(~held | (moves & whole)),
            part["offset"].eq(address[:place]),
            part["bytes"].eq(Mux(whole, rest, moved)),
            part["pad"].eq(Mux(whole, kept["pad"], 0)),
            part["repeats"].eq(kept["repeats"]),
            part["last"].eq(whole & kept["last"]),
        ]
        with m.If(moves):
            m.d.sync += [self.bursts.valid.eq(left != 0), burst["words"].eq(Mux(whole, needed, limit))]
            m.d.sync += burst["address"].eq(Cat(Const(0, place), address[place:]))
        with m.Elif(self.bursts.ready):
            m.d.sync += self.bursts.valid.eq(0)
        with m.If(self.segments.ready):
            m.d.sync += [held.eq(self.segments.valid), address.eq(segment["address"]), left.eq(segment["bytes"])]
            m.d.sync += [kept[name].eq(segment[name]) for name in kept]
        with m.Elif(moves):
            # A burst that leaves a rest ends with a word.
            m.d.sync += [address[place:].eq(address[place:] + limit), address[:place].eq(0), left.eq(left - moved)]
        return m

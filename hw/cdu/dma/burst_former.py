"""Words of memory, one behind the other, to bursts."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2
from cdu_spec.dma import MEMORY_ADDRESS_BITS

from cdu.dma.axi4 import BURST_WORDS, Burst
from cdu.dma.segments import words_to_boundary
from cdu.parts.ram_fifo import RamFifo
from cdu.parts.stream_fifo import StreamFifo

#: Bursts whose words wait to be sent.
BURSTS = 4


class Word(data.StructLayout):
    """A word of memory with its byte enables; ``last`` ends a burst."""

    def __init__(self, size: int) -> None:
        super().__init__({"data": 8 * size, "strobe": size, "last": 1})


class PlacedWord(data.StructLayout):
    """A word and an address in it; ``last``: the next one is not the next in memory."""

    def __init__(self, size: int) -> None:
        super().__init__({"address": MEMORY_ADDRESS_BITS, "data": 8 * size, "strobe": size, "last": 1})


class BurstFormer(wiring.Component):
    """Collects words until they are a burst; a burst is offered when all its words are there.

    Parameters
    ----------
    size
        Bytes of a word.
    words
        Words that may wait, at least 2; no burst has more.

    Ports
    -----
    i
        Stream of :class:`PlacedWord`.
    bursts, o
        Streams of :class:`~cdu.dma.axi4.Burst`, none of which crosses a boundary of 4 KiB, and of their words.
    begun
        Words of a burst have come, and its last one has not: the next word is of that burst.
    closed
        High for a cycle when the last word of a burst has come.

    One word per cycle.
    """

    i: stream.Interface
    bursts: stream.Interface
    o: stream.Interface
    begun: Signal
    closed: Signal

    def __init__(self, size: int, words: int) -> None:
        self.size, self.words = size, words
        super().__init__(
            {
                "i": In(stream.Signature(PlacedWord(size))),
                "bursts": Out(stream.Signature(Burst())),
                "o": Out(stream.Signature(Word(size))),
                "begun": Out(1),
                "closed": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        place = exact_log2(self.size)
        most = min(BURST_WORDS, self.words)
        m.submodules.words = words = RamFifo(Word(self.size), self.words)
        m.submodules.queue = queue = StreamFifo(Burst(), BURSTS)
        connect(m, words.o, flipped(self.o))
        connect(m, queue.o, flipped(self.bursts))
        first = Signal(MEMORY_ADDRESS_BITS)
        open_words = Signal(range(most))
        word: Any = self.i.payload
        takes = Signal()
        closes = Signal()
        m.d.comb += [
            self.i.ready.eq(words.i.ready & queue.i.ready),
            takes.eq(self.i.valid & self.i.ready),
            closes.eq(word["last"] | (open_words == most - 1) | (words_to_boundary(word["address"], self.size) == 1)),
            words.i.valid.eq(takes),
            words.i.payload["data"].eq(word["data"]),
            words.i.payload["strobe"].eq(word["strobe"]),
            words.i.payload["last"].eq(closes),
            self.begun.eq(open_words != 0),
            self.closed.eq(takes & closes),
            queue.i.valid.eq(self.closed),
            queue.i.payload["address"].eq(Cat(Const(0, place), Mux(open_words == 0, word["address"], first)[place:])),
            queue.i.payload["words"].eq(open_words + 1),
        ]
        with m.If(takes):
            m.d.sync += open_words.eq(Mux(closes, 0, open_words + 1))
            with m.If(open_words == 0):
                m.d.sync += first.eq(word["address"])
        return m

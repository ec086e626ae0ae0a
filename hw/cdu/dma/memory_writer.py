"""Writer of a packet to segments of memory."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2
from cdu_spec.dma import MEMORY_ADDRESS_BITS, SIZE_BITS

from cdu.dma.axi4 import BURST_WORDS, Burst
from cdu.dma.burst_former import BurstFormer, Word
from cdu.dma.pieces import Pieces
from cdu.dma.segments import Segment
from cdu.lanes.byte_window import ByteWindow
from cdu.parts.barrel import shift_left
from cdu.parts.width_converter import Bytes, expand, ones

#: Default of the number of bursts that may be without an answer.
UNANSWERED = 31


class WriteResult(data.StructLayout):
    """Result of a packet: number of ``bytes``; ``surplus``, bytes had no segment; ``failed``, memory refused some."""

    def __init__(self) -> None:
        super().__init__({"bytes": SIZE_BITS, "surplus": 1, "failed": 1})


class MemoryWriter(wiring.Component):
    """Write the bytes of a packet to segments of memory; drop the segments' padding and the bytes behind the last segment.

    A packet that ends before its segments leaves the rest of the memory unchanged. If its last word is empty while a burst is
    open, a word without byte enables ends the burst, which changes no byte of memory.

    Parameters
    ----------
    size
        Bytes of a word of memory.
    words
        Number of words that may be buffered, at least 2; no burst is longer.
    unanswered
        Number of bursts that may be without an answer.

    Ports
    -----
    segments
        Stream of :class:`~cdu.dma.segments.Segment`.
    i
        Stream of :class:`~cdu.parts.width_converter.Bytes`, words of any count; the last one of a packet may be empty.
    bursts, o
        Streams of :class:`~cdu.dma.axi4.Burst` and of their words, as given by :class:`~cdu.dma.burst_former.BurstFormer`.
    answer, answer_failed
        Memory has answered a burst, and whether with an error.
    result
        Stream of :class:`WriteResult`, one per packet once memory has answered all its bursts. The next packet is written
        meanwhile; it ends only after the result has been taken.

    Throughput: one word of memory, or one word of padding, per cycle.
    """

    segments: stream.Interface
    i: stream.Interface
    bursts: stream.Interface
    o: stream.Interface
    answer: Signal
    answer_failed: Signal
    result: stream.Interface

    def __init__(self, size: int, words: int = 2 * BURST_WORDS, unanswered: int = UNANSWERED) -> None:
        self.size, self.words, self.unanswered = size, words, unanswered
        super().__init__(
            {
                "segments": In(stream.Signature(Segment())),
                "i": In(stream.Signature(Bytes(size))),
                "bursts": Out(stream.Signature(Burst())),
                "o": Out(stream.Signature(Word(size))),
                "answer": In(1),
                "answer_failed": In(1),
                "result": Out(stream.Signature(WriteResult())),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = self.size
        m.submodules.window = window = ByteWindow(size, size)
        m.submodules.former = former = BurstFormer(size, self.words)
        connect(m, former.o, flipped(self.o))
        connect(m, former.bursts, flipped(self.bursts))
        m.d.comb += [
            window.i.valid.eq(self.i.valid),
            self.i.ready.eq(window.i.ready),
            window.i.payload.eq(self.i.payload),
        ]

        # A segment: its bytes, then its padding; behind the last segment all bytes are dropped
        pieces = Pieces(m, size, SIZE_BITS)
        piece, to_memory = pieces.count, pieces.of_memory
        word_address = Signal(MEMORY_ADDRESS_BITS - exact_log2(size))
        active = Signal()
        last = Signal()
        rest = Signal()
        there = Signal(range(size + 1))
        moves = Signal()
        over = Signal()
        ends = Signal()
        waits = Signal()
        unanswered = Signal(range(self.unanswered + 1))
        m.d.comb += [
            there.eq(Mux(window.level < piece, window.level, piece)),
            over.eq(window.ended & (window.level <= piece)),  # the packet has no more than this
        ]
        word: Any = former.i.payload
        # An open burst ends with its packet, if necessary with a word that writes no byte.
        writes = to_memory & ((window.level != 0) | former.begun)
        enough = (window.level >= piece) | window.ended | rest
        free = former.i.ready & (unanswered != self.unanswered)
        content = window.data[: 8 * size] & expand(ones(piece, size))
        m.d.comb += [
            moves.eq((active | rest) & enough & (~writes | free) & ~(rest & window.ended & waits)),
            window.amount.eq(Mux(moves, piece, 0)),
            window.finishes.eq(rest & moves & over),
            former.i.valid.eq(moves & writes),
            word["address"].eq(Cat(pieces.offset, word_address)),
            word["strobe"].eq((Cat(*ones(there, size)) << pieces.offset)[:size]),
            word["data"].eq(shift_left(m, content, pieces.offset, "placed")),
            word["last"].eq(over | pieces.whole),
            ends.eq(moves & active & (over | pieces.last)),
            self.segments.ready.eq(Mux(active, ends & ~last, ~rest)),
        ]
        with m.If(ends):
            m.d.sync += [active.eq(0), rest.eq(last)]
        segment = self.segments.payload
        with m.If(self.segments.valid & self.segments.ready):
            pieces.begin(m, segment["address"][: exact_log2(size)], segment["bytes"], segment["pad"])
            m.d.sync += [active.eq(1), word_address.eq(segment["address"][exact_log2(size) :]), last.eq(segment["last"])]
        with m.Elif(ends):
            m.d.sync += [to_memory.eq(0), piece.eq(size)]
        with m.Elif(moves & active):
            pieces.follow(m)
            m.d.sync += word_address.eq(word_address + 1)

        m.d.sync += unanswered.eq(unanswered + former.closed - self.answer)
        self._end(m, window, moves, there, rest, waits, unanswered + former.closed - self.answer)
        with m.If(window.finishes):
            m.d.sync += rest.eq(0)
        return m

    def _end(
        self, m: Module, window: ByteWindow, moves: Value, there: Value, rest: Value, waits: Signal, unanswered: Value
    ) -> None:
        """Give the result of a packet once its last burst has an answer; memory answers bursts in order.

        ``unanswered`` bursts have no answer after this cycle; no packet may end while ``waits`` is high.
        """
        result = self.result.payload
        # Size of the incoming packet; and whether a packet that has ended waits for answers, and for how many
        size = Signal(SIZE_BITS)
        surplus = Signal()
        refused = Signal()
        expects = Signal()
        due = Signal(range(self.unanswered + 1))
        total = Signal(SIZE_BITS)
        too_much = Signal()
        fails = Signal()
        m.d.comb += [
            waits.eq(expects | self.result.valid),
            total.eq(size + there),
            too_much.eq(surplus | (rest & (there != 0))),
            fails.eq(self.answer & self.answer_failed),
        ]
        with m.If(moves):
            m.d.sync += [size.eq(total), surplus.eq(too_much)]
        with m.If(self.result.ready):
            m.d.sync += self.result.valid.eq(0)
        with m.If(window.finishes):
            m.d.sync += [
                *(size.eq(0), surplus.eq(0), refused.eq(0)),
                *(expects.eq(1), due.eq(unanswered)),
                *(result["bytes"].eq(total), result["surplus"].eq(too_much), result["failed"].eq(refused | fails)),
            ]
        with m.Elif(due != 0):
            # ``result`` must not change while it is valid; the proof checks this.
            m.d.sync += [due.eq(due - self.answer), result["failed"].eq(result["failed"] | (fails & ~self.result.valid))]
        with m.Else():
            m.d.sync += [refused.eq(refused | fails), expects.eq(0)]
            with m.If(expects):
                m.d.sync += self.result.valid.eq(1)

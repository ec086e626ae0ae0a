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
from cdu.dma.segments import PAD_BITS, Segment
from cdu.lanes.byte_window import ByteWindow
from cdu.parts.barrel import shift_left
from cdu.parts.width_converter import Bytes, expand, ones

#: Default of the number of bursts that may be without an answer.
UNANSWERED = 31


class WriteResult(data.StructLayout):
    """Result of a packet: number of ``bytes``; ``surplus``, bytes had no segment; ``failed``, memory refused some."""

    def __init__(self) -> None:
        super().__init__({"bytes": SIZE_BITS, "surplus": 1, "failed": 1})


class _Place:
    """The place in a segment that is written next, and what is left of the segment; memory has words of ``size`` bytes."""

    def __init__(self, size: int) -> None:
        self.address = Signal(MEMORY_ADDRESS_BITS)
        self.left = Signal(SIZE_BITS)
        self.pad = Signal(PAD_BITS)
        self.active = Signal()
        self.last = Signal()
        self.few = Signal()  # the high bits of ``left`` are 0
        self.in_word = Signal(range(size + 1))  # bytes from the address to the end of its word
        self.offset, self.word_address = self.address[: exact_log2(size)], self.address[exact_log2(size) :]
        self.of_word, self.high = self.left[: exact_log2(size) + 1], self.left[exact_log2(size) + 1 :]


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
        place = _Place(size)
        active, pad, in_word, of_word = place.active, place.pad, place.in_word, place.of_word
        rest = Signal()
        room, wanted, there = (Signal(range(size + 1), name=name) for name in ("room", "wanted", "there"))
        to_memory = Signal()
        moves = Signal()
        over = Signal()
        ends = Signal()
        fits = Signal()  # the rest of the segment fits this word
        fills = Signal()  # it fills this word
        of_padding = Mux(pad < room, pad, room)
        waits = Signal()
        unanswered = Signal(range(self.unanswered + 1))
        m.d.comb += [
            to_memory.eq(active & ~(place.few & (of_word == 0))),
            fits.eq(place.few & (of_word <= in_word)),
            fills.eq(~place.few | (of_word >= in_word)),
            room.eq(Mux(to_memory, in_word, size)),
            wanted.eq(Mux(to_memory, Mux(fills, in_word, of_word), Mux(active, of_padding, Mux(rest, size, 0)))),
            there.eq(Mux(window.level < wanted, window.level, wanted)),
            over.eq(window.ended & (window.level <= wanted)),  # the packet has no more than this
        ]
        word: Any = former.i.payload
        # An open burst ends with its packet, if necessary with a word that writes no byte.
        writes = to_memory & ((there != 0) | former.begun)
        enough = (window.level >= wanted) | window.ended | rest
        free = former.i.ready & (unanswered != self.unanswered)
        content = window.data[: 8 * size] & expand(ones(there, size))
        m.d.comb += [
            moves.eq((active | rest) & enough & (~writes | free) & ~(rest & window.ended & waits)),
            window.amount.eq(Mux(moves, there, 0)),
            window.finishes.eq(rest & moves & over),
            former.i.valid.eq(moves & writes),
            word["address"].eq(place.address),
            word["strobe"].eq((Cat(*ones(there, size)) << place.offset)[:size]),
            word["data"].eq(shift_left(m, content, place.offset, "placed")),
            word["last"].eq(over | fits),
            ends.eq(moves & active & (over | Mux(to_memory, fits & (pad == 0), pad <= room))),
            self.segments.ready.eq(Mux(active, ends & ~place.last, ~rest)),
        ]
        with m.If(ends):
            m.d.sync += [active.eq(0), rest.eq(place.last)]
        self._walk(m, place, moves, to_memory, wanted, fills)

        m.d.sync += unanswered.eq(unanswered + former.closed - self.answer)
        self._end(m, window, moves, there, rest, waits, unanswered + former.closed - self.answer)
        with m.If(window.finishes):
            m.d.sync += rest.eq(0)
        return m

    def _walk(self, m: Module, place: _Place, moves: Value, to_memory: Value, wanted: Value, fills: Value) -> None:
        """Take a segment, or move on in it by the bytes ``wanted`` when a word moves."""
        with m.If(self.segments.valid & self.segments.ready):
            segment = self.segments.payload
            m.d.sync += [
                place.active.eq(1),
                place.address.eq(segment["address"]),
                place.in_word.eq(self.size - segment["address"][: exact_log2(self.size)]),
                place.left.eq(segment["bytes"]),
                place.few.eq(~segment["bytes"][len(place.of_word) :].any()),
                place.pad.eq(segment["pad"]),
                place.last.eq(segment["last"]),
            ]
        with m.Elif(moves & to_memory):
            # The number of bytes only selects among address bits within a word.
            following = Signal(range(2 * self.size), name="place")
            m.d.comb += following.eq(place.offset + wanted)
            m.d.sync += [
                place.offset.eq(following),
                place.word_address.eq(Mux(following >= self.size, place.word_address + 1, place.word_address)),
                place.left.eq(Mux(fills, place.left - place.in_word, 0)),
                place.in_word.eq(self.size),
                place.few.eq(place.few | ((place.high == 1) & (place.of_word < place.in_word))),
            ]
        with m.Elif(moves):
            m.d.sync += place.pad.eq(place.pad - wanted)

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

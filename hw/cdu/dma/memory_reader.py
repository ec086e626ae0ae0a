"""Reader of segments of memory, which make a packet."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig

from cdu.dma.axi4 import BURST_WORDS, Burst
from cdu.dma.pieces import Pieces
from cdu.dma.segment_cutter import Part, SegmentCutter
from cdu.dma.segments import Segment
from cdu.parts.barrel import rotate_right, shift_right
from cdu.parts.byte_packer import BytePacker
from cdu.parts.ram_fifo import RamFifo
from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.width_converter import Bytes, expand, ones

#: Words of a part of the plan if not told otherwise, and parts from which on the plan is kept in a memory.
_WORDS_OF_PART, _MANY = 4, 16


def repeated_bytes(config: CduConfig) -> int:
    """Return the bytes of a value that padding may repeat; 0 if no mode of the unit repeats values."""
    return config.dtype.bits // 8 if config.has_ranges else 0


class MemoryReader(wiring.Component):
    """Fetch segments, which may begin at any byte, and concatenate their bytes and their padding.

    A burst is requested when all its words have room, so that answers never wait.

    Parameters
    ----------
    size
        Bytes of a word of memory.
    words
        Number of words in progress or waiting, at least 2; no burst is longer.
    parts
        Number of parts of segments, a burst each, in progress or waiting; 0: one for 4 words.
    value_bytes
        Bytes of a value that padding may repeat; segments are then whole values; 0: padding is zeros.

    Ports
    -----
    segments
        Stream of :class:`~cdu.dma.segments.Segment`.
    bursts
        Stream of :class:`~cdu.dma.axi4.Burst`, in the order of the segments; none crosses a boundary of 4 KiB.
    answer, answer_data, answer_failed
        A requested word has come; memory reports an error of it.
    o
        Stream of :class:`~cdu.parts.width_converter.Bytes`: full words except for the last one of a packet. A packet of no
        bytes is one word of no bytes.
    result
        Stream, one transfer for each packet behind its last word: whether memory reported an error of any word. The next
        packet waits for it.

    Throughput: one burst, one word and one piece of padding per cycle.
    """

    segments: stream.Interface
    bursts: stream.Interface
    answer: Signal
    answer_data: Signal
    answer_failed: Signal
    o: stream.Interface
    result: stream.Interface

    def __init__(self, size: int, words: int = 4 * BURST_WORDS, value_bytes: int = 0, parts: int = 0) -> None:
        self.size, self.words, self.value_bytes = size, words, value_bytes
        self.parts = parts or max(2, words // _WORDS_OF_PART)
        super().__init__(
            {
                "segments": In(stream.Signature(Segment())),
                "bursts": Out(stream.Signature(Burst())),
                "answer": In(1),
                "answer_data": In(8 * size),
                "answer_failed": In(1),
                "o": Out(stream.Signature(Bytes(size))),
                "result": Out(stream.Signature(1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.arrived = arrived = RamFifo(data.StructLayout({"data": 8 * self.size, "failed": 1}), self.words)
        most = min(BURST_WORDS, self.words)
        m.submodules.cutter = cutter = SegmentCutter(self.size, most)
        m.submodules.plan = plan = (RamFifo if self.parts >= _MANY else StreamFifo)(Part(self.size, most), self.parts)
        connect(m, flipped(self.segments), cutter.segments)
        connect(m, cutter.parts, plan.i)
        self._ask(m, cutter.bursts, arrived)
        m.submodules.packer = packer = BytePacker(self.size)
        self._put_together(m, plan, arrived, packer)
        connect(m, packer.o, flipped(self.o))
        return m

    def _ask(self, m: Module, wanted: stream.Interface, arrived: RamFifo) -> None:
        """Request the bursts that have room, and store the answers."""
        free = Signal(range(self.words + 1), init=self.words)
        words = wanted.payload["words"]
        taken = self.bursts.valid & self.bursts.ready
        m.d.comb += [
            self.bursts.payload.eq(wanted.payload),
            # Free room only grows until a burst is taken, so that valid holds.
            self.bursts.valid.eq(wanted.valid & (words <= free)),
            wanted.ready.eq(taken),
            arrived.i.valid.eq(self.answer),
            arrived.i.payload["data"].eq(self.answer_data),
            arrived.i.payload["failed"].eq(self.answer_failed),
        ]
        m.d.sync += free.eq(free - Mux(taken, words, 0) + (arrived.o.valid & arrived.o.ready))

    def _put_together(self, m: Module, plan: StreamFifo | RamFifo, arrived: RamFifo, packer: BytePacker) -> None:
        """Join the bytes of each word that belong to a part, and its padding, a piece per cycle."""
        pieces = Pieces(m, self.size, len(plan.o.payload["bytes"]))
        of_memory, count = pieces.of_memory, pieces.count
        last = Signal()
        active = Signal()
        failed = Signal()
        moves = Signal()
        piece = packer.i.payload
        turned = rotate_right(m, arrived.o.payload["data"], pieces.offset, "turned")
        repeats = Signal()
        filling = self._filling(m, turned, count, repeats, moves & of_memory) if self.value_bytes else Const(0, 8 * self.size)
        m.d.comb += [
            piece["data"].eq(Mux(of_memory, turned, filling) & expand(ones(count, self.size))),
            piece["count"].eq(count),
            piece["last"].eq(pieces.last & last),
            packer.i.valid.eq(active & ~self.result.valid & (arrived.o.valid | ~of_memory)),
            moves.eq(packer.i.valid & packer.i.ready),
            arrived.o.ready.eq(moves & of_memory),
            plan.o.ready.eq(~active | (moves & pieces.last)),
        ]
        with m.If(plan.o.ready):
            part = plan.o.payload
            pieces.begin(m, part["offset"], part["bytes"], part["pad"])
            m.d.sync += [active.eq(plan.o.valid), last.eq(part["last"]), repeats.eq(part["repeats"])]
        with m.Elif(moves):
            pieces.follow(m)

        wrong = failed | (of_memory & arrived.o.payload["failed"])
        with m.If(self.result.ready):
            m.d.sync += self.result.valid.eq(0)
        with m.If(moves):
            m.d.sync += failed.eq(wrong & ~piece["last"])
            with m.If(piece["last"]):
                m.d.sync += [self.result.valid.eq(1), self.result.payload.eq(wrong)]

    def _filling(self, m: Module, word: Value, count: Value, repeats: Value, passes: Value) -> Value:
        """Return the padding: zeros, or the last of the values in the ``count`` bytes of a word that pass."""
        value = Signal(8 * self.value_bytes, reset_less=True)
        behind = shift_right(m, Cat(value, word), count, "behind")
        with m.If(passes):
            m.d.sync += value.eq(behind)
        filling = Signal(8 * self.size, name="filling")
        m.d.comb += filling.eq(Mux(repeats, value.replicate(self.size // self.value_bytes), 0))
        return filling

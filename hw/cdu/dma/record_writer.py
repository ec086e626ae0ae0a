"""Completion records to memory."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2
from cdu_spec.dma import COMPLETION, COMPLETION_BYTES, part

from cdu.dma.memory_writer import WriteResult
from cdu.dma.records import Outcome
from cdu.dma.segments import Segment
from cdu.parts.width_converter import Bytes, WidthConverter


class RecordWriter(wiring.Component):
    """Writes a record, and says when memory has it.

    ``done``, its last part, is written when memory has all others, unless one word has the whole record: so memory that refuses
    a part of a record never leaves one with ``done``.

    Parameters
    ----------
    size
        Bytes of a word of memory.

    Ports
    -----
    i
        Stream of :class:`~cdu.dma.records.Outcome`, taken when it is done.
    segments, o, result
        Streams to and from a :class:`~cdu.dma.memory_writer.MemoryWriter`.
    done, lost, unknown
        High for a cycle: a job is done; there is no record of it; nor was there a descriptor.
    """

    i: stream.Interface
    segments: stream.Interface
    o: stream.Interface
    result: stream.Interface
    done: Signal
    lost: Signal
    unknown: Signal

    def __init__(self, size: int) -> None:
        self.size = size
        super().__init__(
            {
                "i": In(stream.Signature(Outcome())),
                "segments": Out(stream.Signature(Segment())),
                "o": Out(stream.Signature(Bytes(size))),
                "result": In(stream.Signature(WriteResult())),
                "done": Out(1),
                "lost": Out(1),
                "unknown": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.converter = converter = WidthConverter(COMPLETION_BYTES, self.size)
        connect(m, converter.o, flipped(self.o))
        outcome, segment, content = self.i.payload, self.segments.payload, converter.i.payload
        placed = Signal()
        sent = Signal()
        ending = Signal()  # memory has all but the last part
        flag = part(COMPLETION, "done")
        writes = self.i.valid & ~outcome["nowhere"] & ~outcome["failed"]
        goes_on = Signal()
        whole = self._within_a_word(outcome["address"])
        record = outcome["record"].as_value()
        size = Mux(ending, flag.size, Mux(whole, COMPLETION_BYTES, flag.offset))
        m.d.comb += [
            segment["address"].eq(outcome["address"] + Mux(ending, flag.offset, 0)),
            segment["bytes"].eq(size),
            segment["last"].eq(1),
            self.segments.valid.eq(writes & ~placed),
            # Bytes behind the count are 0
            content["data"].eq(Mux(ending, record >> 8 * flag.offset, Mux(whole, record, record[: 8 * flag.offset]))),
            content["count"].eq(size),
            content["last"].eq(1),
            converter.i.valid.eq(writes & ~sent),
            self.result.ready.eq(1),
            goes_on.eq(self.result.valid & ~self.result.payload["failed"] & ~ending & ~whole),
            self.done.eq(self.i.valid & (outcome["nowhere"] | outcome["failed"] | (self.result.valid & ~goes_on))),
            self.unknown.eq(self.done & outcome["failed"]),
            self.lost.eq(self.done & ~outcome["failed"] & (outcome["nowhere"] | self.result.payload["failed"])),
            self.i.ready.eq(self.done),
        ]
        with m.If(self.done | goes_on):
            m.d.sync += [placed.eq(0), sent.eq(0), ending.eq(goes_on)]
        with m.Else():
            m.d.sync += [
                placed.eq(placed | (self.segments.valid & self.segments.ready)),
                sent.eq(sent | (converter.i.valid & converter.i.ready)),
            ]
        return m

    def _within_a_word(self, address: Value) -> Value:
        """Return whether a record at an address lies in one word of memory."""
        last = self.size - COMPLETION_BYTES
        return address[: exact_log2(self.size)] <= last if last >= 0 else Const(0)

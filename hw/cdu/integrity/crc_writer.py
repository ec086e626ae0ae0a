"""Writer that appends a CRC-32 to payloads."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec import latencies
from cdu_spec.bitstream import CRC_BYTES

from cdu.integrity.crc_register import CrcRegister
from cdu.parts.barrel import shift_left
from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.streams import registered
from cdu.parts.width_converter import Bytes


class CrcWriter(wiring.Component):
    """Append the CRC-32 (:mod:`cdu_spec.crc`) to payloads as four more bytes, least significant first, if a job asks for it.

    Parameters
    ----------
    size
        M, bytes of a word, at least 4.

    Ports
    -----
    job
        Stream of one bit, one per packet: whether it gets a CRC. Ready while there is room for one more.
    i, o
        Streams of :class:`~cdu.parts.width_converter.Bytes`, a packet per job. A packet leaves with the words in which it
        came; if the CRC does not fit into its last one, one more word follows.

    Latency: 2 cycles. One transfer per cycle; the further word takes a cycle of its own.
    """

    job: stream.Interface
    i: stream.Interface
    o: stream.Interface

    latency = latencies.CRC_WRITER
    #: Number of packets that have not ended.
    depth = 4

    def __init__(self, size: int) -> None:
        self.size = size
        words = stream.Signature(Bytes(size))
        super().__init__({"job": In(stream.Signature(1)), "i": In(words), "o": Out(words)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.jobs = jobs = StreamFifo(1, self.depth)
        connect(m, flipped(self.job), jobs.i)
        crc = CrcRegister(self.size)
        advance = Signal()
        taken = Signal()
        valid1 = Signal()
        valid2 = Signal()
        m.d.comb += [
            self.i.ready.eq(advance & jobs.o.valid),
            taken.eq(self.i.valid & self.i.ready),
            jobs.o.ready.eq(taken & self.i.payload["last"]),
        ]
        with m.If(advance):
            m.d.sync += [valid1.eq(taken), valid2.eq(valid1)]

        # 1: the word beside its bytes at the end, 2: the word and the register behind it
        bytes_at_end, places = crc.at_end(m, self.i.payload["data"], self.i.payload["count"])
        word1: Any = registered(m, advance, self.i.payload, "word1")
        at_end1, places1 = registered(m, advance, bytes_at_end, "at_end1"), registered(m, advance, places, "places1")
        signed1 = registered(m, advance, jobs.o.payload, "signed1")
        behind = crc.update(m, advance & valid1, at_end1, places1, word1["last"])
        word2: Any = registered(m, advance, word1, "word2")
        crc2 = registered(m, advance, ~behind, "crc2")
        signs = registered(m, advance, signed1 & word1["last"], "signs")

        # The CRC behind the last byte; bytes that do not fit are in a further word
        added = shift_left(m, Cat(crc2, Const(0, 8 * self.size)), word2["count"], "added")
        joined = added & signs.replicate(len(added)) | word2["data"]
        total = word2["count"] + Mux(signs, CRC_BYTES, 0)
        spills = Signal()
        rest = Signal()
        m.d.comb += [
            spills.eq(total > self.size),
            advance.eq(~valid2 | (self.o.ready & (rest | ~spills))),
            self.o.valid.eq(valid2),
            self.o.payload["data"].eq(Mux(rest, joined[8 * self.size :], joined[: 8 * self.size])),
            self.o.payload["count"].eq(Mux(rest, total - self.size, Mux(spills, self.size, total))),
            self.o.payload["last"].eq(word2["last"] & (rest | ~spills)),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += rest.eq(spills & ~rest)
        return m

"""Checker of the CRC-32 behind payloads, which it removes."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec import latencies
from cdu_spec.bitstream import CRC_BYTES
from cdu_spec.crc import RESIDUE

from cdu.integrity.crc_register import CrcRegister
from cdu.parts.barrel import shift_left, shift_right
from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.streams import registered
from cdu.parts.width_converter import Bytes, expand, ones


class CrcChecker(wiring.Component):
    """Check and remove the CRC that :class:`~cdu.integrity.crc_writer.CrcWriter` appends to payloads.

    Parameters
    ----------
    size
        M, bytes of a word, at least 4.

    Ports
    -----
    job
        Stream of one bit, one per packet: whether it has a CRC. Ready while there is room for one more.
    i, o
        Streams of :class:`~cdu.parts.width_converter.Bytes`, words of any count, a packet per job. The last four bytes of a
        packet with a CRC are removed; words that become empty do not leave, except for the last one of a packet.
    bad_crc
        High for a cycle, two cycles after the last word of a packet has come, if its last four bytes are not the CRC of the
        bytes before them, or are missing.

    Latency: 1 cycle. One transfer per cycle.
    """

    job: stream.Interface
    i: stream.Interface
    o: stream.Interface
    bad_crc: Signal

    latency = latencies.CRC_CHECKER
    #: Number of packets that have not ended.
    depth = 4

    def __init__(self, size: int) -> None:
        self.size = size
        words = stream.Signature(Bytes(size))
        super().__init__({"job": In(stream.Signature(1)), "i": In(words), "o": Out(words), "bad_crc": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.jobs = jobs = StreamFifo(1, self.depth)
        connect(m, flipped(self.job), jobs.i)
        crc = CrcRegister(self.size)
        word, signed = self.i.payload, jobs.o.payload
        advance = Signal()
        taken = Signal()
        m.d.comb += [
            advance.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(advance & jobs.o.valid),
            taken.eq(self.i.valid & self.i.ready),
            jobs.o.ready.eq(taken & word["last"]),
        ]

        # The last bytes so far wait before the new ones
        tail = Signal(8 * CRC_BYTES)
        held = Signal(range(CRC_BYTES + 1))
        arrived = shift_left(m, Cat(word["data"], Const(0, 8 * CRC_BYTES)), held, "arrived") | tail
        there = Signal(range(self.size + CRC_BYTES + 1))
        leaving = Signal(range(self.size + 1))
        m.d.comb += [
            there.eq(held + word["count"]),
            leaving.eq(Mux(signed, Mux(there > CRC_BYTES, there - CRC_BYTES, 0), there)),
        ]
        stays = signed & ~word["last"]
        kept = shift_right(m, arrived, leaving, "kept")[: len(tail)]
        with m.If(taken):
            m.d.sync += [tail.eq(Mux(stays, kept, 0)), held.eq(Mux(stays, there - leaving, 0))]
        with m.If(advance):
            m.d.sync += self.o.valid.eq(taken & (word["last"] | (leaving != 0)))
        payload = {"data": arrived[: 8 * self.size] & expand(ones(leaving, self.size)), "count": leaving, "last": word["last"]}
        for name, value in payload.items():
            m.d.comb += self.o.payload[name].eq(registered(m, advance, value, f"o_{name}"))

        # The register behind all received bytes, those of the CRC included
        fresh = Signal()
        judged = Signal()
        bytes_at_end, places = crc.at_end(m, word["data"], word["count"])
        at_end1, places1 = registered(m, taken, bytes_at_end, "at_end1"), registered(m, taken, places, "places1")
        last1, signed1 = registered(m, taken, word["last"], "last1"), registered(m, taken, signed, "signed1")
        behind = registered(m, fresh, crc.update(m, fresh, at_end1, places1, last1), "behind")
        m.d.sync += [fresh.eq(taken), judged.eq(fresh & last1 & signed1)]
        m.d.comb += self.bad_crc.eq(judged & (behind != RESIDUE))
        return m

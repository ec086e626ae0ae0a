"""The writing half of an AXI4 port, for several writers."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from cdu.dma import axi4
from cdu.dma.axi4 import BURST_WORDS
from cdu.dma.burst_arbiter import granted
from cdu.dma.memory_writer import UNANSWERED, MemoryWriter, WriteResult
from cdu.dma.segments import Segment
from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.width_converter import Bytes

#: Bursts that were asked for and whose words have not been sent.
BURSTS_ASKED = 4


def writer_streams(size: int) -> dict[str, wiring.Member]:
    """The streams of a writer, which takes words of ``size`` bytes, as it has them."""
    return {
        "segments": In(stream.Signature(Segment())),
        "i": In(stream.Signature(Bytes(size))),
        "result": Out(stream.Signature(WriteResult())),
    }


class AxiWriteMaster(wiring.Component):
    """Several :class:`~cdu.dma.memory_writer.MemoryWriter` behind the channels AW, W and B.

    Bursts of all writers are under way at a time, each with the number of its writer as ID. The words of a burst follow one
    another without a gap, and may come before the request has been taken. BREADY is always high.

    Parameters
    ----------
    size
        Bytes of a word.
    words
        Words that may wait, of each writer.
    unanswered
        Bursts of each writer that may be without an answer.

    Ports
    -----
    segments, i, result
        Streams of every :class:`~cdu.dma.memory_writer.MemoryWriter` (arrays): the last word of a packet may be empty.
    attributes
        :class:`~cdu.dma.axi4.Attributes` of every writer (array).
    m_axi_aw*, m_axi_w*, m_axi_b*
        AXI4. BRESP SLVERR and DECERR are told in the result of the packet.
    """

    segments: Any
    i: Any
    result: Any
    attributes: Any

    def __init__(
        self, size: int, words: tuple[int, ...] = (2 * BURST_WORDS, BURST_WORDS), unanswered: int = UNANSWERED
    ) -> None:
        self.size, self.words, self.unanswered = size, words, unanswered
        self._port = axi4.write_members("m_axi", size)
        members = writer_streams(size) | {"attributes": In(axi4.Attributes())}
        super().__init__(self._port | {name: member.array(len(words)) for name, member in members.items()})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        port: Any = self
        writers = []
        for number, words in enumerate(self.words):
            m.submodules[f"writer{number}"] = writer = MemoryWriter(self.size, words, self.unanswered)
            connect(m, flipped(self.segments[number]), writer.segments)
            connect(m, flipped(self.i[number]), writer.i)
            connect(m, writer.result, flipped(self.result[number]))
            writers.append(writer)
            m.d.comb += [
                writer.answer.eq(port.m_axi_bvalid & (port.m_axi_bid == number)),
                writer.answer_failed.eq(port.m_axi_bresp[1]),
            ]
        m.submodules.order = order = StreamFifo(range(len(writers)), BURSTS_ASKED)
        advance = Signal()
        valid, client, burst = granted(m, [writer.bursts for writer in writers], advance)
        m.d.comb += [
            advance.eq((~port.m_axi_awvalid | port.m_axi_awready) & order.i.ready),
            order.i.valid.eq(advance & valid),
            order.i.payload.eq(client),
            port.m_axi_bready.eq(1),
        ]
        with m.If(port.m_axi_awready):
            m.d.sync += port.m_axi_awvalid.eq(0)
        axi4.request(m, port, "m_axi_aw", self.size, advance, valid, client, burst)

        # The words of the oldest burst
        word = Array(writer.o.payload for writer in writers)[order.o.payload]
        waits = Array(writer.o.valid for writer in writers)[order.o.payload]
        sends = port.m_axi_wvalid & port.m_axi_wready
        m.d.comb += [
            port.m_axi_wvalid.eq(order.o.valid & waits),
            port.m_axi_wdata.eq(word["data"]),
            port.m_axi_wstrb.eq(word["strobe"]),
            port.m_axi_wlast.eq(word["last"]),
            order.o.ready.eq(sends & word["last"]),
            *(writer.o.ready.eq(sends & (order.o.payload == number)) for number, writer in enumerate(writers)),
        ]
        return m

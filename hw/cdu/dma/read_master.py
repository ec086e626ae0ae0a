"""The reading half of an AXI4 port, for several readers."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from cdu.dma import axi4
from cdu.dma.axi4 import BURST_WORDS, Burst
from cdu.dma.burst_arbiter import granted
from cdu.dma.memory_reader import MemoryReader
from cdu.dma.segments import Segment
from cdu.parts.width_converter import Bytes


def burst_streams(size: int) -> dict[str, wiring.Member]:
    """Return the signals of a client that requests bursts itself, as this client has them."""
    answer = {"answer": In(1), "answer_data": In(8 * size), "answer_failed": In(1)}
    return {"bursts": Out(stream.Signature(Burst())), **answer}


def reader_streams(size: int) -> dict[str, wiring.Member]:
    """The streams of a reader, which fetches words of ``size`` bytes, as it has them."""
    return {
        "segments": In(stream.Signature(Segment())),
        "o": Out(stream.Signature(Bytes(size))),
        "result": Out(stream.Signature(1)),
    }


class AxiReadMaster(wiring.Component):
    """Several :class:`~cdu.dma.memory_reader.MemoryReader` behind the channels AR and R, and clients that need no reader.

    Bursts of all readers are under way at a time, each with the number of its reader as ID; their words may come in any order
    that AXI4 allows. RREADY is always high.

    Parameters
    ----------
    size
        Bytes of a word.
    words
        Words that are under way or wait, of each reader.
    value_bytes
        Bytes of a value that padding of the first reader may repeat; 0: padding is zeros.
    parts
        ``parts`` of the first reader.
    direct
        Number of clients that request bursts themselves, and take each word of an answer in the cycle in which it comes.

    Ports
    -----
    segments, o, result
        Of every reader (arrays).
    bursts, answer, answer_data, answer_failed
        Of every direct client (arrays; none without one); their IDs are behind those of the readers.
    attributes
        :class:`~cdu.dma.axi4.Attributes` of every client (array).
    m_axi_ar*, m_axi_r*
        AXI4. A word with RRESP SLVERR or DECERR passes, and the result of its packet says so.
    """

    segments: Any
    o: Any
    result: Any
    bursts: Any
    attributes: Any

    def __init__(
        self,
        size: int,
        words: tuple[int, ...] = (4 * BURST_WORDS, BURST_WORDS),
        value_bytes: int = 0,
        parts: int = 0,
        direct: int = 0,
    ) -> None:
        self.size, self.words, self.value_bytes, self.parts, self.direct = size, words, value_bytes, parts, direct
        members = {name: member.array(len(words)) for name, member in reader_streams(size).items()}
        if direct:
            members |= {name: member.flip().array(direct) for name, member in burst_streams(size).items()}
        members["attributes"] = In(axi4.Attributes()).array(len(words) + direct)
        super().__init__(axi4.read_members("m_axi", size) | members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        port: Any = self
        # Each client's stream of bursts, and its signals of an answer
        clients: list[tuple[stream.Interface, Any, Any, Any]] = []
        for number, words in enumerate(self.words):
            own = (0, 0) if number else (self.value_bytes, self.parts)
            m.submodules[f"reader{number}"] = reader = MemoryReader(self.size, words, *own)
            connect(m, flipped(self.segments[number]), reader.segments)
            connect(m, reader.o, flipped(self.o[number]))
            connect(m, reader.result, flipped(self.result[number]))
            clients.append((reader.bursts, reader.answer, reader.answer_data, reader.answer_failed))
        for number in range(self.direct):
            answer = (getattr(self, name)[number] for name in ("answer", "answer_data", "answer_failed"))
            clients.append((self.bursts[number], *answer))
        for number, (_, answer, answer_data, answer_failed) in enumerate(clients):
            m.d.comb += [
                answer.eq(port.m_axi_rvalid & (port.m_axi_rid == number)),
                answer_data.eq(port.m_axi_rdata),
                answer_failed.eq(port.m_axi_rresp[1]),
            ]
        advance = Signal()
        valid, client, burst = granted(m, [bursts for bursts, *_ in clients], advance)
        m.d.comb += [advance.eq(~port.m_axi_arvalid | port.m_axi_arready), port.m_axi_rready.eq(1)]
        axi4.request(m, port, "m_axi_ar", self.size, advance, valid, client, burst)
        return m

"""Accesses to a memory with one port, and the buses that make them: Wishbone of a processor, AXI4 of a DMA engine."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu.dma import axi4
from cdu_spec.dma import MEMORY_ADDRESS_BITS

#: Bytes of a word of the processor, and of memory: the engine's port is as wide.
CPU_BYTES, WORD_BYTES = 4, 8
_SLVERR = 2

#: Bus of the processor, at the requesting end: classic cycles, one word of 32 bits each. ``adr`` counts words.
Wishbone = wiring.Signature(
    {
        **{"cyc": Out(1), "stb": Out(1), "we": Out(1), "adr": Out(30), "sel": Out(CPU_BYTES), "dat_w": Out(8 * CPU_BYTES)},
        **{"dat_r": In(8 * CPU_BYTES), "ack": In(1), "err": In(1)},
    }
)


class MemoryAccess(data.StructLayout):
    """Access to a word of memory with the bytes to write: none for a read, whose word comes in the next cycle."""

    def __init__(self, word_bits: int) -> None:
        super().__init__({"word": word_bits, "strobe": WORD_BYTES, "data": 8 * WORD_BYTES})


def memory_port(word_bits: int) -> wiring.Signature:
    """Return the requesting end: a stream of :class:`MemoryAccess`, and ``found``, the word of the transfer before."""
    return wiring.Signature({"o": Out(stream.Signature(MemoryAccess(word_bits))), "found": In(8 * WORD_BYTES)})


class WishboneAccess(wiring.Component):
    """Bridge from a Wishbone bus to memory: an access, and its answer a cycle later."""

    bus: Any
    memory: Any

    def __init__(self, word_bits: int) -> None:
        super().__init__({"bus": In(Wishbone), "memory": Out(memory_port(word_bits))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus, access = self.bus, self.memory.o
        high = bus.adr[0]
        m.d.comb += [
            access.valid.eq(bus.cyc & bus.stb & ~bus.ack),
            access.p.word.eq(bus.adr[1:]),
            access.p.strobe.eq(Mux(bus.we, Mux(high, bus.sel << CPU_BYTES, bus.sel), 0)),
            access.p.data.eq(bus.dat_w.replicate(2)),
            bus.dat_r.eq(self.memory.found.word_select(high, 8 * CPU_BYTES)),  # the address holds until the answer
        ]
        m.d.sync += bus.ack.eq(access.valid & access.ready)
        return m


class AxiReads(wiring.Component):
    """Bridge from channels AR and R to memory: bursts of whole words, one after the other. SLVERR outside of memory."""

    memory: Any

    def __init__(self, word_bits: int) -> None:
        self._word_bits = word_bits
        bus = {name: member.flip() for name, member in axi4.read_members("s_axi", WORD_BYTES).items()}
        super().__init__(bus | {"memory": Out(memory_port(word_bits))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus: Any = self
        place = Signal(MEMORY_ADDRESS_BITS)
        left = Signal(8)
        outside = Signal()
        fresh = Signal()
        kept = Signal(8 * WORD_BYTES)
        word = place[WORD_BYTES.bit_length() - 1 :]
        m.d.comb += [
            outside.eq(word >> self._word_bits != 0),
            self.memory.o.p.word.eq(word),
            bus.s_axi_rdata.eq(Mux(fresh, self.memory.found, kept)),
            bus.s_axi_rresp.eq(Mux(outside, _SLVERR, 0)),
            bus.s_axi_rlast.eq(left == 0),
        ]
        m.d.sync += fresh.eq(0)
        with m.If(fresh):
            m.d.sync += kept.eq(self.memory.found)
        with m.FSM():
            with m.State("rest"):
                m.d.comb += bus.s_axi_arready.eq(1)
                m.d.sync += [place.eq(bus.s_axi_araddr), left.eq(bus.s_axi_arlen), bus.s_axi_rid.eq(bus.s_axi_arid)]
                with m.If(bus.s_axi_arvalid):
                    m.next = "ask"
            with m.State("ask"):
                m.d.comb += self.memory.o.valid.eq(~outside)
                with m.If(self.memory.o.ready | outside):
                    m.d.sync += fresh.eq(1)
                    m.next = "answer"
            with m.State("answer"):
                m.d.comb += bus.s_axi_rvalid.eq(1)
                with m.If(bus.s_axi_rready):
                    m.d.sync += [place.eq(place + WORD_BYTES), left.eq(left - 1)]
                    with m.If(left == 0):
                        m.next = "rest"
                    with m.Else():
                        m.next = "ask"
        return m


class AxiWrites(wiring.Component):
    """Bridge from channels AW, W and B to memory: bursts of whole words, one after the other. SLVERR outside of memory."""

    memory: Any

    def __init__(self, word_bits: int) -> None:
        self._word_bits = word_bits
        bus = {name: member.flip() for name, member in axi4.write_members("s_axi", WORD_BYTES).items()}
        super().__init__(bus | {"memory": Out(memory_port(word_bits))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus: Any = self
        place = Signal(MEMORY_ADDRESS_BITS)
        outside = Signal()
        refused = Signal()
        word = place[WORD_BYTES.bit_length() - 1 :]
        m.d.comb += [
            outside.eq(word >> self._word_bits != 0),
            self.memory.o.p.word.eq(word),
            self.memory.o.p.strobe.eq(bus.s_axi_wstrb),
            self.memory.o.p.data.eq(bus.s_axi_wdata),
            bus.s_axi_bresp.eq(Mux(refused, _SLVERR, 0)),
        ]
        with m.FSM():
            with m.State("rest"):
                m.d.comb += bus.s_axi_awready.eq(1)
                m.d.sync += [place.eq(bus.s_axi_awaddr), bus.s_axi_bid.eq(bus.s_axi_awid)]
                with m.If(bus.s_axi_awvalid):
                    m.next = "take"
            with m.State("take"):
                m.d.comb += [
                    self.memory.o.valid.eq(bus.s_axi_wvalid & ~outside),
                    bus.s_axi_wready.eq(self.memory.o.ready | outside),
                ]
                with m.If(bus.s_axi_wvalid & bus.s_axi_wready):
                    m.d.sync += [place.eq(place + WORD_BYTES), refused.eq(outside)]
                    with m.If(bus.s_axi_wlast):
                        m.next = "answer"
            with m.State("answer"):
                m.d.comb += bus.s_axi_bvalid.eq(1)
                with m.If(bus.s_axi_bready):
                    m.next = "rest"
        return m

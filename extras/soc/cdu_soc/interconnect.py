"""Interconnect of processor, memory and unit."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu.bus import axi_lite
from cdu.dma import axi4
from cdu.dma.burst_arbiter import granted
from cdu_spec.register_types import REGISTER_BYTES

from cdu_soc.memory_access import CPU_BYTES, WORD_BYTES, AxiReads, AxiWrites, Wishbone, WishboneAccess

#: Regions of the processor's addresses by their highest bits: memory from 0, registers of the unit, end of the simulation.
REGISTERS, EXIT = 0x8000_0000, 0xC000_0000
_PREFIX = "m_axil"


class WishboneRegisters(wiring.Component):
    """Bridge from a Wishbone bus to an AXI4-Lite port; an access refused there ends with ``err``."""

    bus: Any

    def __init__(self) -> None:
        port = {name: member.flip() for name, member in axi_lite.members(_PREFIX).items()}
        super().__init__(port | {"bus": In(Wishbone)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus, port = self.bus, self._port
        place = Cat(C(0, (REGISTER_BYTES - 1).bit_length()), bus.adr)
        m.d.comb += [port("awaddr").eq(place), port("araddr").eq(place), port("wdata").eq(bus.dat_w), port("wstrb").eq(bus.sel)]
        for name in ("awvalid", "wvalid", "arvalid"):
            with m.If(port(name.replace("valid", "ready"))):
                m.d.sync += port(name).eq(0)
        with m.FSM():
            with m.State("rest"), m.If(bus.cyc & bus.stb):
                m.d.sync += [port("awvalid").eq(bus.we), port("wvalid").eq(bus.we), port("arvalid").eq(~bus.we)]
                m.next = "wait"
            with m.State("wait"):
                failed = Mux(bus.we, port("bresp"), port("rresp")) != 0
                ended = Mux(bus.we, port("bvalid"), port("rvalid"))
                m.d.comb += [port("bready").eq(1), port("rready").eq(1), bus.dat_r.eq(port("rdata"))]
                m.d.comb += [bus.ack.eq(ended & ~failed), bus.err.eq(ended & failed)]
                with m.If(ended):
                    m.next = "rest"
        return m

    def _port(self, name: str) -> Any:
        return getattr(self, f"{_PREFIX}_{name}")


class Interconnect(wiring.Component):
    """Let two buses of the processor and one of the engine take turns at a memory with one port.

    Parameters
    ----------
    word_bits
        Memory has 2**word_bits words of 8 bytes, from address 0 on.

    Ports
    -----
    ibus, dbus
        Instructions, which come from memory only, and data, whose regions are :data:`REGISTERS` and :data:`EXIT`.
    s_axi_*
        AXI4 port of the engine, to memory.
    m_axil_*
        AXI4-Lite port to the unit.
    ram_word, ram_strobe, ram_wdata, ram_rdata
        Memory; read data come in the cycle after the address.
    exit, exit_code
        High for a cycle when the processor writes to EXIT, and the value that it writes.
    """

    def __init__(self, word_bits: int) -> None:
        self._word_bits = word_bits
        engine = axi4.read_members("s_axi", WORD_BYTES) | axi4.write_members("s_axi", WORD_BYTES)
        ports: dict[str, Any] = {"ibus": In(Wishbone), "dbus": In(Wishbone), "exit": Out(1), "exit_code": Out(8 * CPU_BYTES)}
        ports |= {name: member.flip() for name, member in (engine | axi_lite.members(_PREFIX)).items()}
        ports |= {"ram_word": Out(word_bits), "ram_strobe": Out(WORD_BYTES)}
        super().__init__(ports | {"ram_wdata": Out(8 * WORD_BYTES), "ram_rdata": In(8 * WORD_BYTES)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        outer: Any = self
        m.submodules.instructions = instructions = WishboneAccess(self._word_bits)
        m.submodules.data = data = WishboneAccess(self._word_bits)
        m.submodules.reads = reads = AxiReads(self._word_bits)
        m.submodules.writes = writes = AxiWrites(self._word_bits)
        m.submodules.registers = registers = WishboneRegisters()
        connect(m, flipped(outer.ibus), instructions.bus)
        axi4.join(m, reads, outer, axi4.read_members("s_axi", WORD_BYTES))
        axi4.join(m, writes, outer, axi4.write_members("s_axi", WORD_BYTES))
        for name, member in axi_lite.members(_PREFIX).items():
            ends = getattr(outer, name), getattr(registers, name)
            m.d.comb += ends[0].eq(ends[1]) if member.flow is In else ends[1].eq(ends[0])
        self._data_bus(m, outer.dbus, data.bus, registers.bus)

        clients = [instructions.memory, data.memory, reads.memory, writes.memory]
        some, _, access = granted(m, [client.o for client in clients], Value.cast(1))
        m.d.comb += [
            outer.ram_word.eq(access["word"]),
            outer.ram_strobe.eq(Mux(some, access["strobe"], 0)),
            outer.ram_wdata.eq(access["data"]),
            *(client.found.eq(outer.ram_rdata) for client in clients),
        ]
        return m

    def _data_bus(self, m: Module, bus: Any, memory: Any, registers: Any) -> None:
        """Connect the processor's data bus to the region that its address selects."""
        outer: Any = self
        of_registers, of_exit = (self._begins(bus, address) for address in (REGISTERS, EXIT))
        ends = Signal(name="ends")
        for side, mine in ((memory, ~of_registers & ~of_exit), (registers, of_registers)):
            m.d.comb += [getattr(side, name).eq(getattr(bus, name)) for name in ("cyc", "we", "adr", "sel", "dat_w")]
            m.d.comb += side.stb.eq(bus.stb & mine)
        m.d.sync += ends.eq(bus.cyc & bus.stb & of_exit & ~ends)
        m.d.comb += [
            bus.dat_r.eq(Mux(of_registers, registers.dat_r, memory.dat_r)),
            bus.ack.eq(memory.ack | registers.ack | ends),
            bus.err.eq(registers.err),
            outer.exit.eq(ends & bus.we),
            outer.exit_code.eq(bus.dat_w),
        ]

    @staticmethod
    def _begins(bus: Any, address: int) -> Value:
        return Value.cast(bus.adr[-2:] == address >> 30)

"""Registers that the host sees: those of the rings, and through them those of the unit."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out
from amaranth.utils import exact_log2
from cdu_spec.dma import DMA_BASE, DMA_CHANNEL, DMA_CHANNEL_BYTES, DMA_HALTS, RING_REGISTERS
from cdu_spec.ports import REGISTER_PORT
from cdu_spec.register_types import BLOCK_BYTES, REGISTER_BITS, REGISTER_BYTES, Channel

from cdu.bus import axi_lite
from cdu.bus.axi_lite import AccessPort, AxiLite
from cdu.control.register_file import RegisterFile
from cdu.dma.axi4 import Attributes

#: Bits of the number of a register of a direction, and the number of the engine's part of the address space.
_WORD_BITS = exact_log2(DMA_CHANNEL_BYTES // REGISTER_BYTES)
_PART_BITS = exact_log2(BLOCK_BYTES // REGISTER_BYTES)
_PART = DMA_BASE // BLOCK_BYTES


class DmaRegisters(wiring.Component):
    """Registers of the rings of both directions behind an AXI4-Lite port; other accesses are passed on to the unit.

    Ports
    -----
    s_axil_*
        AXI4-Lite, 32 bits of data, 12 of address.
    access
        :data:`~cdu.bus.axi_lite.AccessPort` to the unit. Accesses refused here are passed on as well: the unit has no register
        at the address either, refuses them, and reports them in BUS_ERRORS. A write to a register that only the engine may
        write is passed on without its bytes, and is refused and reported likewise.
    CHANNEL_enable, CHANNEL_halt, CHANNEL_ring, CHANNEL_ring_log2, CHANNEL_tail, CHANNEL_head, CHANNEL_busy
        Signals of :class:`~cdu.dma.ring.Ring`, for both directions.
    CHANNEL_attributes
        Register ATTRIBUTES of both directions.
    CHANNEL_done, CHANNEL_lost, CHANNEL_unknown, CHANNEL_bad_tail, CHANNEL_beyond
        Errors of :class:`~cdu.dma.ring.Ring`, for both directions; they set bits of ERRORS and INTERRUPT_STATUS.
    irq
        Interrupt, level, registered.
    """

    access: Any
    irq: Signal

    #: Signals to a ring, and signals from it.
    to_ring = ("enable", "halt", "ring", "ring_log2", "tail")
    of_ring = ("head", "busy", "done", "lost", "unknown", "bad_tail", "beyond")

    def __init__(self, ring: wiring.Signature) -> None:
        members = {
            f"{channel.value}_{name}": ring.members[name].flip()
            for channel in Channel
            for name in (*self.to_ring, *self.of_ring)
        }
        members |= {f"{channel.value}_attributes": Out(Attributes()) for channel in Channel}
        super().__init__(axi_lite.members(REGISTER_PORT) | members | {"access": Out(AccessPort), "irq": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.axi = axi = AxiLite()
        axi_lite.join(m, self, REGISTER_PORT, axi, "")
        access = axi.access
        mine = Signal()
        which = access.word[_WORD_BITS]
        strobe = Signal()
        answered = Signal()
        m.d.comb += mine.eq(access.word[_PART_BITS:] == _PART)
        m.d.sync += strobe.eq(access.active & mine & ~strobe & ~answered)
        with m.If(strobe):
            m.d.sync += answered.eq(1)
        with m.Elif(access.done):
            m.d.sync += answered.eq(0)
        # The engine owns the unit's registers of both directions.
        owned = {channel: access.write & (access.word[_PART_BITS:] == channel.base // BLOCK_BYTES) for channel in Channel}
        answers, interrupts = [], []
        for number, channel in enumerate(Channel):
            registers: Any = RegisterFile(DMA_CHANNEL, guarded=RING_REGISTERS)
            m.submodules[channel.value] = registers
            block = registers.block
            m.d.comb += [
                block.word.eq(access.word[:_WORD_BITS]),
                block.data.eq(access.data),
                block.write.eq(strobe & (which == number) & access.write & access.whole),
                block.read.eq(strobe & (which == number) & ~access.write),
            ]
            answers.append(block)
            interrupts.append(self._of_ring(m, channel, registers, access.active & access.done & owned[channel]))
        m.d.sync += self.irq.eq(Cat(interrupts).any())

        refused = Signal()
        here = Signal()
        partial = access.write & ~access.whole
        m.d.comb += [
            refused.eq(partial | Mux(which, answers[1].error, answers[0].error)),
            here.eq(mine & ~(answered & refused)),
            *(getattr(self.access, name).eq(getattr(access, name)) for name in ("word", "write", "data")),
            self.access.whole.eq(access.whole & ~Cat(owned.values()).any()),
            self.access.active.eq(access.active & ~here),
            access.done.eq(Mux(here, answered, self.access.done)),
            access.read_data.eq(Mux(here, Mux(which, answers[1].read_data, answers[0].read_data), self.access.read_data)),
            access.error.eq(~here & self.access.error),
        ]
        return m

    def _of_ring(self, m: Module, channel: Channel, registers: Any, trespass: Value) -> Any:
        """Add the registers of a direction and its ring; return its interrupt. ``trespass``: a write to the unit is refused."""

        def port(name: str) -> Any:
            return getattr(self, f"{channel.value}_{name}")

        m.d.comb += [
            port("enable").eq(registers.control["enable"]),
            port("ring").eq(registers.ring_low.as_value() | (registers.ring_high.as_value() << REGISTER_BITS)),
            port("ring_log2").eq(registers.ring_size["log2"]),
            port("tail").eq(registers.tail["value"]),
            *(port("attributes")[name].eq(registers.attributes[name]) for name, _ in Attributes()),
            registers.head["value"].eq(port("head")),
            registers.status["busy"].eq(port("busy")),
            port("halt").eq(Cat(registers.errors[name] for name in DMA_HALTS).any()),
            registers.guard.eq(port("enable") | port("busy")),
            registers.errors_set["descriptor"].eq(port("unknown")),
            registers.errors_set["completion"].eq(port("lost")),
            registers.errors_set["tail"].eq(port("bad_tail")),
            registers.errors_set["ring"].eq(port("beyond") | registers.bad_value),
            registers.errors_set["owned"].eq(trespass | registers.bad_time),
            registers.interrupt_status_set["job_done"].eq(port("done")),
            registers.interrupt_status_set["error"].eq(registers.errors_set.as_value().any()),
        ]
        return (registers.interrupt_status.as_value() & registers.interrupt_enable.as_value()).any()

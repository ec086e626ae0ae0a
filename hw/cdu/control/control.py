"""The control of a whole unit: AXI4-Lite port, registers, both channels."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped
from cdu_spec.config import CduConfig
from cdu_spec.ports import REGISTER_PORT
from cdu_spec.register_types import REGISTER_BYTES, Channel
from cdu_spec.registers import GLOBAL, entries, read_only_values

from cdu.bus import axi_lite
from cdu.bus.axi_lite import AxiLite
from cdu.control.channel_control import ChannelControl, ChannelPorts
from cdu.control.register_file import RegisterFile


class Control(wiring.Component):
    """Registers behind an AXI4-Lite port.

    Their manual is docs/reference/registers.md.

    Parameters
    ----------
    config
        Configuration of the unit, read back from registers.

    Ports
    -----
    s_axil_*
        AXI4-Lite, 32 bits of data, 12 of address. An access takes 4 cycles, a START in mode jpeg-act 30 more.
    compress, decompress
        :class:`~cdu.control.channel_control.ChannelPorts` of both directions.
    irq
        Interrupt, level, registered.
    works
        An access is worked on, or a direction has jobs or the rest of an abort.
    """

    compress: Any
    decompress: Any
    irq: Signal
    works: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        self.registers = list(entries(config))
        channels: dict[str, wiring.Member] = {channel.value: Out(ChannelPorts(config, channel)) for channel in Channel}
        super().__init__({**axi_lite.members(REGISTER_PORT), "irq": Out(1), "works": Out(1), **channels})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.axi = axi = AxiLite()
        axi_lite.join(m, self, REGISTER_PORT, axi, "")

        registers: Any = RegisterFile(GLOBAL)
        m.submodules.registers = registers
        for name, value in read_only_values(self.config).items():
            m.d.comb += getattr(registers, name.lower()).as_value().eq(value)
        blocks, holds, works = [registers.block], [], [axi.access.active]
        for channel in Channel:
            control = m.submodules[channel.value] = ChannelControl(self.config, channel)
            connect(m, control.unit, flipped(getattr(self, channel.value)))
            m.d.comb += getattr(registers.interrupts, channel.value).eq(control.interrupt)
            blocks.append(control.block)
            holds.append(control.hold)
            works.append(control.works)
        m.d.comb += self.works.eq(Cat(works).any())
        bus_error = registers.bus_errors.as_value() & registers.bus_error_enable.as_value()
        m.d.comb += registers.interrupts.bus.eq(bus_error.any())
        m.d.sync += self.irq.eq(registers.interrupts.as_value().any())

        # One access: the address is decoded, then comes the strobe, then the answer
        access = axi.access
        word, which = access.word[: len(registers.block.word)], access.word[len(registers.block.word) :]
        strobe = Signal()
        answered = Signal()
        m.d.sync += [strobe.eq(access.active & ~strobe & ~answered)]
        with m.If(strobe):
            m.d.sync += answered.eq(1)
        with m.Elif(access.done):
            m.d.sync += answered.eq(0)
        for number, block in enumerate(blocks):
            mine = which == number
            m.d.comb += [
                block.word.eq(word),
                block.data.eq(access.data),
                block.write.eq(strobe & mine & access.write & access.whole),
                block.read.eq(strobe & mine & ~access.write),
            ]
        missing = (1 << len(which)) - len(blocks)
        answers = [(block.read_data, block.error) for block in blocks] + [(0, 1)] * missing
        partial = access.write & ~access.whole
        m.d.comb += [
            access.done.eq(answered & ~(holds[0] | holds[1])),
            access.read_data.eq(Array(read_data for read_data, _ in answers)[which]),
            access.error.eq(partial | Array(error for _, error in answers)[which]),
        ]

        m.d.comb += registers.bus_errors_set.bad_access.eq(access.done & access.error)
        address = Signal(len(access.word) + (REGISTER_BYTES - 1).bit_length())
        was_write = Signal()
        with m.If(access.done & access.error):
            m.d.sync += [address.eq(access.word << (REGISTER_BYTES - 1).bit_length()), was_write.eq(access.write)]
        m.d.comb += [registers.bad_address.address.eq(address), registers.bad_address.write.eq(was_write)]
        return m

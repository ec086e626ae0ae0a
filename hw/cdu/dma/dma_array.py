"""A unit with the DMA engine in front of it."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out
from cdu_spec.config import CduConfig
from cdu_spec.ports import PORTS, REGISTER_PORT

from cdu.bus import axi_lite, axi_stream
from cdu.dma import axi4, register_bridge
from cdu.dma.dma import MEMORY_PORT, CduDma
from cdu.unit.array import CduArray


class CduDmaArray(wiring.Component):
    """A :class:`~cdu.unit.array.CduArray` whose data and scales a :class:`~cdu.dma.dma.CduDma` fetches and puts into memory.

    Parameters
    ----------
    config
        All parameters are used; ``dma_bits`` must not be 0.

    Ports
    -----
    s_axil_*
        AXI4-Lite of all registers (page ``dma.md``).
    m_axi_*
        AXI4 to memory.
    irq
        Interrupt, high as long as an enabled condition of engine or unit stands.
    """

    irq: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config, self._size = config, config.dma_bits // 8
        self._unit, self._engine = CduArray(config), CduDma(config)
        self.registers = [*self._unit.registers, *self._engine.registers]
        ports: dict[str, Any] = axi_lite.members(REGISTER_PORT) | {"irq": Out(1)}
        ports |= axi4.read_members(MEMORY_PORT, self._size) | axi4.write_members(MEMORY_PORT, self._size)
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit, m.submodules.engine = unit, engine = self._unit, self._engine
        axi_lite.join(m, self, REGISTER_PORT, engine)
        axi_lite.join(m, engine, register_bridge.PREFIX, unit, REGISTER_PORT)
        axi4.join(m, self, engine, axi4.read_members(MEMORY_PORT, self._size) | axi4.write_members(MEMORY_PORT, self._size))
        for names in PORTS.values():
            for port in (names.input, names.scales):
                axi_stream.link(m, engine, unit, port)
            axi_stream.link(m, unit, engine, names.output)
        m.d.comb += self.irq.eq(unit.irq | engine.irq)
        return m

"""Accesses from several sides to the registers of a unit."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from amaranth.utils import exact_log2
from cdu_spec.register_types import REGISTER_BYTES

from cdu.bus import axi_lite
from cdu.bus.axi_lite import AccessPort

#: Prefix of the port to the unit.
PREFIX = "m_axil"


class RegisterBridge(wiring.Component):
    """The asking end of an AXI4-Lite port, for several sides; one access at a time, the first side that asks goes first.

    Parameters
    ----------
    sides
        Their number.

    Ports
    -----
    access
        :data:`~cdu.bus.axi_lite.AccessPort` of each side (array).
    m_axil_*
        AXI4-Lite.
    """

    access: Any

    def __init__(self, sides: int) -> None:
        self.sides = sides
        port = {name: member.flip() for name, member in axi_lite.members(PREFIX).items()}
        super().__init__(port | {"access": In(AccessPort).array(sides)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        port: Any = self
        chosen = Signal(range(self.sides))
        access: Any = {
            name: Array(getattr(side, name) for side in self.access)[chosen] for name in ("word", "write", "data", "whole")
        }
        done = Signal()
        address = access["word"] << exact_log2(REGISTER_BYTES)
        m.d.comb += [
            *(getattr(port, f"{PREFIX}_{channel}addr").eq(address) for channel in ("aw", "ar")),
            port.m_axil_wdata.eq(access["data"]),
            port.m_axil_wstrb.eq(access["whole"].replicate(REGISTER_BYTES)),
        ]
        for number, side in enumerate(self.access):
            m.d.comb += [
                side.done.eq(done & (chosen == number)),
                side.read_data.eq(port.m_axil_rdata),
                side.error.eq(port.m_axil_rresp[1] & ~access["write"] | port.m_axil_bresp[1] & access["write"]),
            ]
        for channel in ("aw", "w", "ar"):
            with m.If(getattr(port, f"{PREFIX}_{channel}ready")):
                m.d.sync += getattr(port, f"{PREFIX}_{channel}valid").eq(0)
        with m.FSM():
            with m.State("REST"):
                for number in reversed(range(self.sides)):
                    with m.If(self.access[number].active):
                        m.d.sync += chosen.eq(number)
                with m.If(Cat(side.active for side in self.access).any()):
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.sync += [
                    port.m_axil_awvalid.eq(access["write"]),
                    port.m_axil_wvalid.eq(access["write"]),
                    port.m_axil_arvalid.eq(~access["write"]),
                ]
                m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += [
                    port.m_axil_bready.eq(1),
                    port.m_axil_rready.eq(1),
                    done.eq(port.m_axil_bvalid | port.m_axil_rvalid),
                ]
                with m.If(done):
                    m.next = "REST"
        return m

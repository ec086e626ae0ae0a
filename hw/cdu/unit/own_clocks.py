"""``ClockedUnit``, a unit whose ports have clocks of their own."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out
from cdu_spec.config import CduConfig
from cdu_spec.ports import CLOCK_OF

from cdu.bus.channels import Channel, channels
from cdu.parts.clock_crossing import ClockCrossing

#: Domain of the unit.
_UNIT = "sync"


class ClockedUnit(wiring.Component):
    """A unit with asynchronous FIFOs at the ports that ``own_clocks`` names.

    Parameters
    ----------
    config
        Configuration; its ``own_clocks`` is not empty.
    unit
        Unit without them: :class:`~cdu.unit.array.CduArray`, alone or behind a DMA engine.

    Ports
    -----
    Those of ``unit`` except ``idle``, because a stopped clock would not notice a transfer; NAME_clk and the reset of each
    domain NAME. ``irq`` belongs to ``clk`` and must be synchronised for any other clock.

    Resets are asynchronous and asserted together; each ends in step with its clock, when the slowest clock has had four
    cycles. Nothing is offered before all have ended. Each transfer takes one cycle of the clock that it leaves, and two to
    three of the other, longer; a payload is complete in the FIFO up to eight words before it is at the port, so that
    ``job_done`` may come before its last word has been taken.
    """

    irq: Signal

    def __init__(self, config: CduConfig, unit: Any) -> None:
        self.config, self._unit = config, unit
        self.registers = unit.registers
        super().__init__({name: member for name, member in unit.signature.members.items() if name != "idle"})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self._unit
        members = dict(self.signature.members.items())
        for channel in channels(members):
            domain = CLOCK_OF.get(channel.port)
            if domain in self.config.own_clocks:
                m.submodules[f"{channel.stem}_crossing"] = _crossing(m, channel, domain, self, unit)
                for name in channel.names:
                    del members[name]
        for name, member in members.items():
            ours, theirs = getattr(self, name), getattr(unit, name)
            m.d.comb += ours.eq(theirs) if member.flow is Out else theirs.eq(ours)
        return m


def _crossing(m: Module, channel: Channel, domain: str, outer: Any, inner: Any) -> ClockCrossing:
    """Connect a channel of two components through a FIFO between the domain and that of the unit."""
    begin, end = (outer, inner) if channel.receives else (inner, outer)
    payload = [Cat(getattr(side, name) for name in channel.payload) for side in (begin, end)]
    fifo = ClockCrossing(len(payload[0]), *((domain, _UNIT) if channel.receives else (_UNIT, domain)))
    m.d.comb += [
        fifo.i.payload.eq(payload[0]),
        fifo.i.valid.eq(getattr(begin, channel.valid)),
        getattr(begin, channel.ready).eq(fifo.i.ready),
        payload[1].eq(fifo.o.payload),
        getattr(end, channel.valid).eq(fifo.o.valid),
        fifo.o.ready.eq(getattr(end, channel.ready)),
    ]
    return fifo

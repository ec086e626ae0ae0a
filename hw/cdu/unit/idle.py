"""Monitor of whether a unit needs its clock."""

from __future__ import annotations

from amaranth.hdl import Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

#: Cycles until counters, interrupts and the outputs of an abort have settled after the last activity.
SETTLE = 15


class IdleMonitor(wiring.Component):
    """Find when the clock may stop without any visible difference.

    Ports
    -----
    works
        Work is in progress; driven by registers.
    asked
        A source offers data; driven by the ports combinationally.
    idle
        ``works`` and ``asked`` have been low for 15 cycles and are low in this one: no register changes at the next clock
        edge. Falls in the cycle in which ``asked`` or the reset rises.
    """

    works: Signal
    asked: Signal
    idle: Signal

    def __init__(self) -> None:
        super().__init__({"works": In(1), "asked": In(1), "idle": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        still = Signal(range(SETTLE + 1))
        settled = Signal()
        m.d.comb += [settled.eq(still == SETTLE), self.idle.eq(settled & ~self.works & ~self.asked & ~ResetSignal())]
        with m.If(self.works | self.asked):
            m.d.sync += still.eq(0)
        with m.Elif(~settled):
            m.d.sync += still.eq(still + 1)
        return m

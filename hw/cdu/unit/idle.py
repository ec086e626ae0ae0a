"""When a unit needs no clock."""

from __future__ import annotations

from amaranth.hdl import Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

#: Cycles in which what has ended comes to rest: counters, interrupts, what an abort empties.
SETTLE = 15


class IdleMonitor(wiring.Component):
    """Says when the clock may stop without a difference that anybody sees.

    Ports
    -----
    works
        Something is under way; comes out of registers.
    asked
        A source offers something; comes straight from the ports.
    idle
        Nothing has been under way and nothing been asked for for 15 cycles, nor is in this one: no register changes at the next
        edge of the clock. Falls in the cycle in which ``asked`` or the reset rises.
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

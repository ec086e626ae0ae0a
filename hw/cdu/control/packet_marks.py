"""Keeps in mind of which packet inside a receiver something was wrong."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class PacketMarks(wiring.Component):
    """Carries a mark from where a packet enters to where it leaves.

    Ports
    -----
    bad
        High for a cycle: the packet that enters is marked.
    enters, leaves
        High for a cycle when the last word of a packet does; at most three packets are between them, the one that enters among
        them, and a cycle at least.
    marked
        The packet that leaves is marked.
    """

    bad: Signal
    enters: Signal
    leaves: Signal
    marked: Signal

    #: Packets that have not left.
    depth = 4

    def __init__(self) -> None:
        super().__init__({"bad": In(1), "enters": In(1), "leaves": In(1), "marked": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        marks = Signal(self.depth)
        first = Signal(range(self.depth))
        last = Signal(range(self.depth))
        place, gone = (Const(1) << last)[: self.depth], (Const(1) << first)[: self.depth]
        m.d.comb += self.marked.eq(marks.bit_select(first, 1))
        m.d.sync += [
            marks.eq((marks | (place & self.bad.replicate(self.depth))) & ~(gone & self.leaves.replicate(self.depth))),
            last.eq(last + self.enters),
            first.eq(first + self.leaves),
        ]
        return m

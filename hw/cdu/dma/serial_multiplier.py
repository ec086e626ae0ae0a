"""Multiplication where there is time."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class SerialMultiplier(wiring.Component):
    """A product of two unsigned numbers, a bit of ``b`` per cycle.

    Parameters
    ----------
    width
        Bits of factors and product.

    Ports
    -----
    a, b, start
        Factors; begins when nothing is under way.
    busy, done
        It goes on; high for a cycle at its end, with the next.
    product, overflow
        Its low bits, and whether there are others.

    As many cycles as ``b`` has bits up to its highest one, and two more.
    """

    a: Signal
    b: Signal
    start: Signal
    busy: Signal
    done: Signal
    product: Signal
    overflow: Signal

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(
            {
                "a": In(width),
                "b": In(width),
                "start": In(1),
                "busy": Out(1),
                "done": Out(1),
                "product": Out(width),
                "overflow": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        total, multiple = Signal(2 * self.width), Signal(2 * self.width)
        rest = Signal(self.width)
        m.d.comb += [
            self.done.eq(self.busy & (rest == 0)),
            self.product.eq(total),
            self.overflow.eq(total >> self.width != 0),
        ]
        with m.If(~self.busy):
            m.d.sync += [self.busy.eq(self.start), total.eq(0), multiple.eq(self.a), rest.eq(self.b)]
        with m.Else():
            m.d.sync += [
                self.busy.eq(~self.done),
                total.eq(total + Mux(rest[0], multiple, 0)),
                multiple.eq(multiple << 1),
                rest.eq(rest >> 1),
            ]
        return m

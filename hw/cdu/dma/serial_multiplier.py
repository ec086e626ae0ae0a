"""Multiplication where there is time."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

#: Bits that a carry passes in a cycle.
_CHUNK = 16


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

    As many cycles as ``b`` has bits up to its highest one, two more, and one for each 16 bits that a last carry passes: sums
    are made 16 bits at a time, and the carry of such a piece is added to the next one in the cycle after.
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
        total = Signal(2 * self.width)
        multiple = Signal(2 * self.width)
        rest = Signal(self.width)
        pieces = range(0, len(total), _CHUNK)
        carries = Signal(len(pieces))
        m.d.comb += [
            self.done.eq(self.busy & (rest == 0) & (carries == 0)),
            self.product.eq(total),
            self.overflow.eq(total >> self.width != 0),
        ]
        with m.If(~self.busy):
            m.d.sync += [self.busy.eq(self.start), total.eq(0), carries.eq(0), multiple.eq(self.a), rest.eq(self.b)]
        with m.Else():
            m.d.sync += [
                self.busy.eq(~self.done),
                multiple.eq(multiple << 1),
                rest.eq(rest >> 1),
            ]
            for number, place in enumerate(pieces):
                piece = slice(place, place + _CHUNK)
                carry = carries[number - 1] if number else 0
                m.d.sync += Cat(total[piece], carries[number]).eq(total[piece] + Mux(rest[0], multiple[piece], 0) + carry)
        return m

"""Coefficients and their places to the columns of blocks: the inverse of zig-zag order and run lengths."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.jpeg import ZIGZAG

from cdu.coding.jpeg_words import COEFFICIENT, DecodedColumn, PlacedCoefficient


class RunLengthDecoder(wiring.Component):
    """Puts the coefficients of a block into a store, and gives it out when the next block begins or the scan ends.

    Two stores of 64 coefficients: one block leaves while the next one comes.

    Ports
    -----
    i
        Stream of :class:`~cdu.coding.jpeg_words.PlacedCoefficient`.
    o
        Stream of :class:`~cdu.coding.jpeg_words.DecodedColumn`, 8 for a block.

    Latency 1 cycle from the first symbol of the next block, or the end, to the first column. A symbol and a column per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(PlacedCoefficient())), "o": Out(stream.Signature(DecodedColumn()))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        symbol: Any = self.i.payload
        pending = Signal()  # a block is in the store
        wrong = Signal()  # it has an error, behind which nothing counts but the end
        turn = Signal()
        free = Signal()
        starts = (symbol["begins"] & ~wrong) | symbol["ends"]
        m.d.comb += [
            self.i.ready.eq(free | ~(starts & pending)),
            turn.eq(self.i.valid & self.i.ready & starts),
        ]
        store = [Signal(COEFFICIENT, name=f"coming{place}", reset_less=True) for place in range(BLOCK_VALUES)]
        with m.If(self.i.valid & self.i.ready):
            for place, coefficient in enumerate(store):
                with m.If(symbol["stores"] & (symbol["place"] == place)):
                    m.d.sync += coefficient.eq(symbol["value"])
                with m.Elif(starts):
                    m.d.sync += coefficient.eq(0)
            with m.If(starts):
                m.d.sync += [pending.eq(symbol["begins"]), wrong.eq(symbol["error"])]
            with m.Elif(symbol["error"]):
                m.d.sync += wrong.eq(1)

        number = Signal(range(BLOCK_SIDE))
        last = Signal(reset_less=True)
        error = Signal(reset_less=True)
        block = [Signal(COEFFICIENT, name=f"leaving{place}", reset_less=True) for place in range(BLOCK_VALUES)]
        column: Any = self.o.payload
        m.d.comb += free.eq(~self.o.valid | (self.o.ready & (number == BLOCK_SIDE - 1)))
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += number.eq(number + 1)
        with m.If(free):
            m.d.sync += self.o.valid.eq(turn & pending)
        with m.If(turn & pending):
            m.d.sync += [leaving.eq(coming) for leaving, coming in zip(block, store, strict=True)]
            m.d.sync += [last.eq(symbol["ends"]), error.eq(wrong)]
        place_of = {index: place for place, index in enumerate(ZIGZAG)}
        columns = Array(
            Cat(*(block[place_of[BLOCK_SIDE * vertical + horizontal]] for vertical in range(BLOCK_SIDE)))
            for horizontal in range(BLOCK_SIDE)
        )
        m.d.comb += [column["values"].as_value().eq(columns[number]), column["last"].eq(last), column["error"].eq(error)]
        return m

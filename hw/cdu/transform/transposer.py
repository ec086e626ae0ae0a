"""Transposition of 8x8 blocks at one row per cycle in a single block of registers."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.geometry import BLOCK_SIDE

from cdu.parts.streams import lanes
from cdu.transform.block_exchange import exchange_blocks


class Transposer(wiring.Component):
    """Rows in, columns out: 64 registers whose shift direction alternates with every block.

    While one block leaves on one side, the next enters on the opposite side in the same direction, so that a block passes
    every 8 cycles without a bubble (:func:`cdu.transform.block_exchange.exchange_blocks`).

    Parameters
    ----------
    width
        Width of the signed values.

    Ports: ``i``, ``o`` streams of 8 values of ``signed(width)``. Latency 8 cycles.
    """

    i: stream.Interface
    o: stream.Interface

    latency = 8

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__({"i": In(stream.Signature(lanes(width))), "o": Out(stream.Signature(lanes(width)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        side = range(BLOCK_SIDE)
        cells = [[Signal(self.width, name=f"cell{row}{column}", reset_less=True) for column in side] for row in side]
        upwards = Signal()  # rows enter at the bottom and cells move up; otherwise columns enter at the right
        shift, _, turn = exchange_blocks(m, self.i, self.o)
        m.d.sync += upwards.eq(upwards ^ turn)
        for row in side:
            for column in side:
                below = cells[row + 1][column] if row < BLOCK_SIDE - 1 else self.i.payload[column]
                right = cells[row][column + 1] if column < BLOCK_SIDE - 1 else self.i.payload[row]
                with m.If(shift):
                    m.d.sync += cells[row][column].eq(Mux(upwards, below, right))
        for lane in side:
            m.d.comb += self.o.payload[lane].eq(Mux(upwards, cells[0][lane], cells[lane][0]))
        return m

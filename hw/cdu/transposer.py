"""Transposition of 8x8 blocks at one row per cycle in a single block of registers."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.geometry import BLOCK_SIDE

from cdu.streams import lanes


class Transposer(wiring.Component):
    """Rows in, columns out: 64 registers whose shift direction alternates with every block.

    While one block leaves on one side, the next enters on the opposite side in the same direction, so that a block passes
    every 8 cycles without a bubble. When a complete block stands in the registers and no row of the next one is there, it
    leaves by itself, and input waits for at most 8 cycles.

    Parameters
    ----------
    width
        Width of the signed values.

    Ports: ``i``, ``o`` streams of 8 values of ``signed(width)``. Latency 8 cycles.
    """

    latency = 8

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__({"i": In(stream.Signature(lanes(width))), "o": Out(stream.Signature(lanes(width)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        side = range(BLOCK_SIDE)
        cells = [[Signal(self.width, name=f"cell{row}{column}", reset_less=True) for column in side] for row in side]
        step = Signal(range(BLOCK_SIDE))  # shifts done in this direction
        full = Signal()  # a whole block stands in the registers when step is 0, and is leaving otherwise
        alone = Signal()  # that block leaves without a successor
        downwards = Signal()  # rows enter at the bottom (cells move up); otherwise columns enter at the right

        starting = step == 0
        leaves_alone = Mux(starting, full & ~self.i.valid, alone)
        shift = Signal()
        m.d.comb += [
            self.o.valid.eq(full & (leaves_alone | self.i.valid)),
            self.i.ready.eq(~leaves_alone & (~full | self.o.ready)),
            shift.eq((~full | self.o.ready) & (leaves_alone | self.i.valid)),
        ]
        with m.If(shift):
            m.d.sync += [step.eq(step + 1), alone.eq(leaves_alone)]
            with m.If(step == BLOCK_SIDE - 1):
                m.d.sync += [full.eq(~leaves_alone), alone.eq(0), downwards.eq(~downwards)]
            for row in side:
                for column in side:
                    below = cells[row + 1][column] if row < BLOCK_SIDE - 1 else self.i.payload[column]
                    right = cells[row][column + 1] if column < BLOCK_SIDE - 1 else self.i.payload[row]
                    m.d.sync += cells[row][column].eq(Mux(downwards, below, right))
        for lane in side:
            m.d.comb += self.o.payload[lane].eq(Mux(downwards, cells[0][lane], cells[lane][0]))
        return m

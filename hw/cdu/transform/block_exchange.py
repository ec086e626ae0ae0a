"""Handshake of a store of one block, whose old content leaves while the new one enters."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from cdu_spec.geometry import BLOCK_SIDE


def exchange_blocks(m: Module, i: stream.Interface, o: stream.Interface) -> tuple[Signal, Signal, Signal]:
    """Connect the handshakes of ``i`` and ``o`` to a store that shifts 8 rows in and 8 rows out.

    A row enters and a row of the block before it leaves in the same cycle, so that a block passes every 8 cycles without a
    bubble. When a complete block is in the store and no row of the next one is offered, the block leaves alone; input then
    waits for at most 8 transfers of the output.

    Returns
    -------
    shift
        High in the cycles in which the store moves by one row.
    step
        Row (0..7) of the old and of the new block that moves.
    turn
        High in the last of these cycles, after which the new block is the old one.
    """
    shift = Signal()
    turn = Signal()
    step = Signal(range(BLOCK_SIDE))
    full = Signal()  # a block is in the store when step is 0, and is leaving otherwise
    alone = Signal()  # that block leaves without a successor
    leaves_alone = Mux(step == 0, full & ~i.valid, alone)
    m.d.comb += [
        o.valid.eq(full & (leaves_alone | i.valid)),
        i.ready.eq(~leaves_alone & (~full | o.ready)),
        shift.eq((~full | o.ready) & (leaves_alone | i.valid)),
        turn.eq(shift & (step == BLOCK_SIDE - 1)),
    ]
    with m.If(shift):
        m.d.sync += [step.eq(step + 1), alone.eq(leaves_alone)]
    with m.If(turn):
        m.d.sync += [full.eq(~leaves_alone), alone.eq(0)]
    return shift, step, turn

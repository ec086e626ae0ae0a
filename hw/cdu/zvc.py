"""ZVC, zero-value compression: a mask of the non-zero values of a block, then these values (JPEG-ACT, "ZVC")."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.bitstream import MASK_BYTES
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES, PACKED_BYTES, VALUE_BITS

from cdu.block_exchange import exchange_blocks
from cdu.streams import Beat, Chunk, Marked, pipeline, registered

_ROW_BITS = LANES * VALUE_BITS


def popcount(mask: Value) -> Value:
    """Number of set bits."""
    return sum((bit for bit in mask[1:]), start=mask[0])


def ranks(mask: Value) -> list[Value]:
    """For every lane the number of set mask bits before it, that is its place among the bytes that are kept."""
    return [popcount(mask[:lane]) if lane else Value.cast(0) for lane in range(LANES)]


def compact(row: Value, mask: Value) -> Value:
    """The bytes of a row whose mask bit is set, moved to the front; zeros behind them."""
    places = ranks(mask)

    def kept(place: int) -> Value:
        candidates = (
            Mux(mask[lane] & (places[lane] == place), row.word_select(lane, VALUE_BITS), 0) for lane in range(place, LANES)
        )
        return reduce(or_, candidates)

    return Cat(*(kept(place) for place in range(LANES)))


def expand(packed: Value, mask: Value) -> list[Value]:
    """The inverse of :func:`compact`: one signed value per lane, zero where the mask bit is clear."""
    return [
        Mux(mask[lane], packed[: (lane + 1) * VALUE_BITS].word_select(place, VALUE_BITS), 0).as_signed()
        for lane, place in enumerate(ranks(mask))
    ]


class ZvcEncoder(wiring.Component):
    """Blocks of 64 values to 8 mask bytes and the non-zero bytes, a row of 8 values per cycle.

    A block waits in a store of 64 bytes until its mask is complete; while it leaves row by row, the next one enters.

    Ports
    -----
    i
        Stream of rows of 8 values with ``last``; a job is a whole number of blocks.
    o
        Stream of chunks: the mask and the first row together (8 to 16 bytes), each other row (0 to 8 bytes).

    Latency 9 cycles, a block every 8 cycles without a bubble.
    """

    i: stream.Interface
    o: stream.Interface

    latency = 9

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(Marked())), "o": Out(stream.Signature(Chunk()))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        leaving = stream.Signature(Chunk()).create(path=("leaving",))
        shift, step, _ = exchange_blocks(m, self.i, leaving)

        values = self.i.payload["values"]
        mask = Cat(*(values[lane] != 0 for lane in range(LANES)))
        rows: Any = Signal(data.ArrayLayout(_ROW_BITS, BLOCK_SIDE), reset_less=True)
        masks: Any = Signal(data.ArrayLayout(LANES, BLOCK_SIDE), reset_less=True)
        last = Signal(BLOCK_SIDE, reset_less=True)
        with m.If(shift):
            m.d.sync += [
                rows.eq(Cat(rows.as_value()[_ROW_BITS:], values)),
                masks.eq(Cat(masks.as_value()[LANES:], mask)),
                last.eq(Cat(last[1:], self.i.payload.last)),
            ]

        kept = compact(rows[0], masks[0])
        with m.If(step == 0):
            m.d.comb += [
                leaving.payload["data"].eq(Cat(masks, kept)),
                leaving.payload["count"].eq(MASK_BYTES + popcount(masks[0])),
            ]
        with m.Else():
            m.d.comb += [
                leaving.payload["data"].eq(kept),
                leaving.payload["count"].eq(popcount(masks[0])),
            ]
        m.d.comb += leaving.payload["last"].eq(last[0])

        advance = pipeline(m, leaving, self.o, 1)
        m.d.comb += self.o.payload.eq(registered(m, advance, leaving.payload.as_value(), "chunk"))
        return m


class ZvcDecoder(wiring.Component):
    """The inverse of :class:`ZvcEncoder`, a row of 8 values per step.

    The mask of the next block is taken together with the last row of this one, so that blocks follow without a bubble; only
    the first mask of a job is a step of its own.

    Ports
    -----
    window
        The next 16 bytes of the payload. That suffices for any step, and 16 new bytes per cycle suffice for any content: a
        block has at most 72 bytes in 8 cycles.
    need
        Bytes (0..16) that the next step uses up.
    step
        Use them up. Must be low unless they are in the window.

    Yields
        The next step gives a row, the one in ``values``.
    values
        Row of 8 values, combinationally from the window.
    final
        The next row is the last of the job: no mask follows it.
    start
        High for a cycle before a job begins.
    """

    window: Signal
    need: Signal
    step: Signal
    yields: Signal
    final: Signal
    start: Signal
    values: Any

    def __init__(self) -> None:
        super().__init__(
            {
                "window": In(8 * PACKED_BYTES),
                "need": Out(range(PACKED_BYTES + 1)),
                "step": In(1),
                "yields": Out(1),
                "values": Out(Beat),
                "final": In(1),
                "start": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        masks: Any = Signal(data.ArrayLayout(LANES, BLOCK_SIDE))  # of the rows to come
        row = Signal(range(BLOCK_SIDE))
        count = popcount(masks[0])
        fetches_mask = (row == BLOCK_SIDE - 1) & ~self.final
        m.d.comb += [
            self.need.eq(Mux(self.yields, count + Mux(fetches_mask, MASK_BYTES, 0), MASK_BYTES)),
            *(self.values[lane].eq(value) for lane, value in enumerate(expand(self.window, masks[0]))),
        ]
        with m.If(self.step):
            m.d.sync += [self.yields.eq(1), masks.eq(masks.as_value()[LANES:])]
            with m.If(~self.yields):
                m.d.sync += masks.eq(self.window[:BLOCK_VALUES])
            with m.Else():
                m.d.sync += row.eq(row + 1)
                with m.If(fetches_mask):
                    m.d.sync += masks.eq(self.window.bit_select(count << 3, BLOCK_VALUES))
        with m.If(self.start):
            m.d.sync += [self.yields.eq(0), row.eq(0)]
        return m

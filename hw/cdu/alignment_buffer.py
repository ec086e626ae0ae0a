"""Alignment buffer: changes between rows of 32 columns and blocks of 8 columns (JPEG-ACT, "alignment buffer")."""

from __future__ import annotations

from enum import Enum

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from cdu_spec.geometry import BLOCK_SIDE, LANES, TILE_BLOCKS, VALUE_BITS

from cdu.streams import Beat

#: Width of the count of beats in a row.
ROW_BEATS_BITS = 32


class Direction(Enum):
    """Which way an alignment buffer turns its tiles."""

    TO_BLOCKS = "to_blocks"
    TO_ROWS = "to_rows"


class AlignmentBuffer(wiring.Component):
    """Tiles of 8 rows x up to 32 columns, in row by row and out block by block, or the other way.

    The matrix comes in strips of 8 rows, a strip in tiles of 32 columns from left to right, the last of them as wide as what
    is left of the row. A beat is 8 neighbouring values of one row in either order. The memory has room for two whole tiles
    (64 words of 64 bits, one write and one read port) and is used as a ring: a beat is written where its turn to be read will
    come, so that tiles of any width follow each other without a bubble.

    Parameters
    ----------
    direction
        ``TO_BLOCKS`` (compression): i goes row by row through the tile, o block by block (8 rows each).
        ``TO_ROWS`` (decompression): the other way.

    Ports
    -----
    i, o
        Streams of 8 values, ``signed(8)``.
    row_beats
        Beats per row of the matrix, at least 1, constant during a job. A job is a whole number of strips.

    Latency: a tile and 2 cycles. One transfer per cycle at both ends.
    """

    i: stream.Interface
    o: stream.Interface
    row_beats: Signal

    def __init__(self, direction: Direction) -> None:
        self.direction = direction
        super().__init__(
            {
                "i": In(stream.Signature(Beat)),
                "o": Out(stream.Signature(Beat)),
                "row_beats": In(ROW_BEATS_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = 2 * BLOCK_SIDE * TILE_BLOCKS
        memory: Memory
        m.submodules.memory = memory = Memory(shape=LANES * VALUE_BITS, depth=words, init=[])
        write, read = memory.write_port(), memory.read_port()
        # Positions in the sequence of beats that leave, modulo twice the memory.
        tile_start, read_position = Signal(range(2 * words)), Signal(range(2 * words))

        # Width of the tile that comes in
        earlier_beats, left = Signal(ROW_BEATS_BITS), Signal(ROW_BEATS_BITS)  # of the row: in earlier tiles, from here on
        wide = left > TILE_BLOCKS
        blocks = Signal(range(TILE_BLOCKS + 1))
        m.d.comb += [left.eq(self.row_beats - earlier_beats), blocks.eq(Mux(wide, TILE_BLOCKS, left))]

        # Beats come along the inner index; in the order in which they leave, these are ``stride`` apart.
        to_blocks = self.direction is Direction.TO_BLOCKS
        inner_count, outer_count = (blocks, BLOCK_SIDE) if to_blocks else (BLOCK_SIDE, blocks)
        stride = outer_count
        inner, outer = Signal(range(BLOCK_SIDE)), Signal(range(BLOCK_SIDE))
        offset, position = Signal(range(words // 2)), Signal(range(2 * words))
        m.d.comb += [
            position.eq(tile_start + offset),
            self.i.ready.eq((position - read_position)[: len(position)] < words),
            write.en.eq(self.i.valid & self.i.ready),
            write.addr.eq(position),
            write.data.eq(self.i.payload),
        ]
        with m.If(write.en):
            m.d.sync += [inner.eq(inner + 1), offset.eq(offset + stride)]
            with m.If(inner == inner_count - 1):
                m.d.sync += [inner.eq(0), outer.eq(outer + 1), offset.eq(outer + 1)]
                with m.If(outer == outer_count - 1):
                    m.d.sync += [
                        outer.eq(0),
                        offset.eq(0),
                        tile_start.eq(tile_start + (blocks << 3)),
                        earlier_beats.eq(Mux(wide, earlier_beats + TILE_BLOCKS, 0)),
                    ]

        # Whatever stands before the tile that comes in can leave.
        advance = ~self.o.valid | self.o.ready
        m.d.comb += [
            read.en.eq(advance & (read_position != tile_start)),
            read.addr.eq(read_position),
            self.o.payload.eq(read.data),
        ]
        with m.If(advance):
            m.d.sync += self.o.valid.eq(read.en)
        with m.If(read.en):
            m.d.sync += read_position.eq(read_position + 1)
        return m

"""Alignment buffer: changes between rows of 32 columns and blocks of 8 columns (JPEG-ACT, "alignment buffer")."""

from __future__ import annotations

from enum import Enum

from amaranth.hdl import Cat, Module, Mux, Signal, Value
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

    Two halves of 8 x 32 values: one fills while the other empties. The matrix comes in strips of 8 rows, a strip in tiles
    of 32 columns from left to right, the last of them as wide as what is left of the row. A beat is 8 neighbouring values
    of one row in either order, so both halves are one memory of 64 words of 64 bits with one write and one read port.

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

    Latency: a tile and 2 cycles. One transfer per cycle at both ends, no bubble between tiles.
    """

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
        m.submodules.memory = memory = Memory(shape=LANES * VALUE_BITS, depth=2 * BLOCK_SIDE * TILE_BLOCKS, init=[])
        write, read = memory.write_port(), memory.read_port()
        filled = Signal(2)  # by half: a tile is complete and not yet read
        blocks = [Signal(range(TILE_BLOCKS), name=f"blocks{half}") for half in range(2)]  # its last block's number

        # write
        write_half = Signal()
        written_beats = Signal(ROW_BEATS_BITS)  # of the row, by the tiles before this one
        left = Signal(ROW_BEATS_BITS)
        last_block = Signal(range(TILE_BLOCKS))
        m.d.comb += [
            left.eq(self.row_beats - written_beats),
            last_block.eq(Mux(left > TILE_BLOCKS, TILE_BLOCKS - 1, (left - 1)[:2])),
        ]
        take = self.i.valid & self.i.ready
        address, done = _walk(m, self.direction is Direction.TO_BLOCKS, last_block, take, "write")
        m.d.comb += [
            self.i.ready.eq(~filled.bit_select(write_half, 1)),
            write.en.eq(take),
            write.addr.eq(Cat(address, write_half)),
            write.data.eq(self.i.payload.as_value()),
        ]
        completed = Signal(2)
        with m.If(take & done):
            m.d.comb += completed.bit_select(write_half, 1).eq(1)
            m.d.sync += write_half.eq(~write_half)
            m.d.sync += written_beats.eq(Mux(left > TILE_BLOCKS, written_beats + TILE_BLOCKS, 0))
            for half in range(2):
                with m.If(write_half == half):
                    m.d.sync += blocks[half].eq(last_block)

        # read
        read_half = Signal()
        fetch = Signal()
        address, done = _walk(m, self.direction is Direction.TO_ROWS, Mux(read_half, blocks[1], blocks[0]), fetch, "read")
        advance = ~self.o.valid | self.o.ready
        m.d.comb += [
            fetch.eq(advance & filled.bit_select(read_half, 1)),
            read.en.eq(fetch),
            read.addr.eq(Cat(address, read_half)),
            self.o.payload.eq(read.data),
        ]
        with m.If(advance):
            m.d.sync += self.o.valid.eq(fetch)
        emptied = Signal(2)
        with m.If(fetch & done):
            m.d.comb += emptied.bit_select(read_half, 1).eq(1)
            m.d.sync += read_half.eq(~read_half)
        m.d.sync += filled.eq((filled | completed) & ~emptied)
        return m


def _walk(m: Module, by_rows: bool, last_block: Value, step: Value, name: str) -> tuple[Value, Value]:
    """Address (row and block) of the beats of a tile in turn, and whether this is the last one."""
    row, block = Signal(range(BLOCK_SIDE), name=f"{name}_row"), Signal(range(TILE_BLOCKS), name=f"{name}_block")
    row_ends, block_ends = row == BLOCK_SIDE - 1, block == last_block
    with m.If(step):
        if by_rows:
            m.d.sync += block.eq(Mux(block_ends, 0, block + 1))
            with m.If(block_ends):
                m.d.sync += row.eq(row + 1)
        else:
            m.d.sync += row.eq(row + 1)
            with m.If(row_ends):
                m.d.sync += block.eq(Mux(block_ends, 0, block + 1))
    return Cat(block, row), row_ends & block_ends

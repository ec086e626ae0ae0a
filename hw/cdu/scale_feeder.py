"""Gives every beat of a job the scale of its channel."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from cdu_spec.geometry import BLOCK_SIDE, TILE_BLOCKS

from cdu.alignment_buffer import ROW_BEATS_BITS
from cdu.sfpr import FP32_BITS

#: Width of the count of rows that share a scale.
CHANNEL_ROWS_BITS = 32


class ScaleFeeder(wiring.Component):
    """Turns one scale per channel into one scale per beat, in the order in which the beats of a job pass.

    A scale holds for ``channel_rows`` rows of the matrix. Jobs in tiles visit the rows of a strip once per tile, and a
    strip may touch up to 8 channels: the scales of the 8 rows are kept, taken from ``scales`` in the first tile of the strip.

    Ports
    -----
    scales
        Stream of scales (float32 patterns), one per channel in the order of the rows, channels that begin in the padding
        included; repeated for every sample of the batch.
    o
        Stream of scales, one per beat.
    start
        High for a cycle before a job begins, while nothing is transferred.
    in_tiles
        Beats come in tiles of 8 rows x 32 columns (jpeg-act); otherwise row by row.
    row_beats, channel_rows
        Beats per row and rows per scale, at least 1. All three constant during a job.

    Latency 0. One transfer per cycle, as long as ``scales`` gives one per beat where every beat needs one.
    """

    scales: stream.Interface
    o: stream.Interface
    start: Signal
    in_tiles: Signal
    row_beats: Signal
    channel_rows: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "scales": In(stream.Signature(FP32_BITS)),
                "o": Out(stream.Signature(FP32_BITS)),
                "start": In(1),
                "in_tiles": In(1),
                "row_beats": In(ROW_BEATS_BITS),
                "channel_rows": In(CHANNEL_ROWS_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kept: Memory
        m.submodules.kept = kept = Memory(shape=FP32_BITS, depth=BLOCK_SIDE, init=[])
        write, read = kept.write_port(), kept.read_port(domain="comb")
        current = Signal(FP32_BITS)  # scale of the channel that the last row belonged to

        beat = Signal(ROW_BEATS_BITS)  # in the row, or in the row of the tile
        tile_start = Signal(ROW_BEATS_BITS)  # beats of the row left of this tile
        row = Signal(range(BLOCK_SIDE))  # in the strip
        channel_row = Signal(CHANNEL_ROWS_BITS)
        left = Signal(ROW_BEATS_BITS)
        m.d.comb += left.eq(self.row_beats - tile_start)
        wide = left > TILE_BLOCKS
        span = Mux(self.in_tiles, Mux(wide, TILE_BLOCKS, left), self.row_beats)

        begins_row = beat == 0
        first_tile = ~self.in_tiles | (tile_start == 0)
        needs_new = begins_row & first_tile & (channel_row == 0)
        m.d.comb += [
            read.addr.eq(row),
            write.addr.eq(row),
            write.data.eq(self.o.payload),
            self.o.valid.eq(~needs_new | self.scales.valid),
            self.o.payload.eq(Mux(needs_new, self.scales.payload, Mux(first_tile, current, read.data))),
            self.scales.ready.eq(needs_new & self.o.ready),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [current.eq(self.o.payload), beat.eq(beat + 1)]
            m.d.comb += write.en.eq(first_tile)
            with m.If(beat == span - 1):
                m.d.sync += beat.eq(0)
                with m.If(first_tile):
                    m.d.sync += channel_row.eq(Mux(channel_row == self.channel_rows - 1, 0, channel_row + 1))
                with m.If(self.in_tiles):
                    m.d.sync += row.eq(row + 1)
                    with m.If(row == BLOCK_SIDE - 1):
                        m.d.sync += tile_start.eq(Mux(wide, tile_start + TILE_BLOCKS, 0))
        with m.If(self.start):
            m.d.sync += [beat.eq(0), tile_start.eq(0), row.eq(0), channel_row.eq(0)]
        return m

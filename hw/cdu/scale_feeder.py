"""Gives every beat of a job the scale of its channel."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from cdu_spec.bitstream import Mode
from cdu_spec.geometry import BLOCK_SIDE, TILE_BLOCKS

from cdu.alignment_buffer import ROW_BEATS_BITS
from cdu.sfpr import FP32_BIAS, FP32_BITS, FP32_FRACTION_BITS
from cdu.streams import BEATS_BITS, pipeline, registered

#: Width of the count of rows that share a scale.
CHANNEL_ROWS_BITS = 32


#: The float32 pattern of 1.0.
ONE = FP32_BIAS << FP32_FRACTION_BITS


class ScaleFeeder(wiring.Component):
    """Turns one scale per channel into one scale per beat, in the order in which the beats of a job pass.

    A scale holds for ``channel_rows`` rows of the matrix. Jobs in tiles visit the rows of a strip once per tile, and a strip
    may touch up to 8 channels: the scales of its 8 rows are kept, taken from ``scales`` in the first tile of the strip.

    Ports
    -----
    scales
        Stream of scales (float32 patterns), one per channel in the order of the rows, channels that begin in the padding
        included; repeated for every sample of the batch.
    o
        Stream of scales, exactly ``beats`` per job.
    start
        High for a cycle before a job begins; the following are constant from then on.
    scaled
        The job has scales; otherwise every beat gets 1.0 and nothing is taken from ``scales``.
    in_tiles
        Beats come in tiles of 8 rows x 32 columns (jpeg-act); otherwise row by row.
    beats, row_beats, channel_rows
        Beats of the job, beats per row, rows per scale; at least 1.

    Latency 1 cycle. One transfer per cycle, as long as ``scales`` gives one per beat where every beat needs one.
    """

    scales: stream.Interface
    o: stream.Interface
    start: Signal
    scaled: Signal
    in_tiles: Signal
    beats: Signal
    row_beats: Signal
    channel_rows: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "scales": In(stream.Signature(FP32_BITS)),
                "o": Out(stream.Signature(FP32_BITS)),
                "start": In(1),
                "scaled": In(1),
                "in_tiles": In(1),
                "beats": In(BEATS_BITS),
                "row_beats": In(ROW_BEATS_BITS),
                "channel_rows": In(CHANNEL_ROWS_BITS),
            }
        )

    def describe(self, m: Module, job: Any, begin: Signal) -> None:
        """Connect the description of a job, a :class:`cdu.job.Job` that is new when ``begin`` is high."""
        m.d.comb += [
            self.start.eq(begin),
            self.scaled.eq(job.mode != Mode.BRC),
            self.in_tiles.eq(job.mode == Mode.JPEG_ACT),
            self.beats.eq(job.beats),
            self.row_beats.eq(job.row_beats),
            self.channel_rows.eq(job.channel_rows),
        ]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kept: Memory
        m.submodules.kept = kept = Memory(shape=FP32_BITS, depth=BLOCK_SIDE, init=[])
        write, read = kept.write_port(), kept.read_port(domain="comb")
        current = Signal(FP32_BITS)  # scale of the row that the last beat belonged to
        scale = stream.Signature(FP32_BITS).create(path=("scale",))

        unfed = Signal(BEATS_BITS)
        beat = Signal(ROW_BEATS_BITS)  # in the row, or in the row of the tile
        left = Signal(ROW_BEATS_BITS)  # beats of the row from this tile on
        row = Signal(range(BLOCK_SIDE))  # in the strip
        later_tile = Signal()  # of the strip: its scales are kept
        rows_left = Signal(CHANNEL_ROWS_BITS)  # of the channel, this row not among them; 0 before a channel begins
        wide = left > TILE_BLOCKS
        span = Mux(self.in_tiles, Mux(wide, TILE_BLOCKS, left), self.row_beats)

        needs_new = self.scaled & ~later_tile & (beat == 0) & (rows_left == 0)
        m.d.comb += [
            read.addr.eq(row),
            write.addr.eq(row),
            write.data.eq(scale.payload),
            scale.valid.eq((unfed != 0) & (~needs_new | self.scales.valid)),
            scale.payload.eq(Mux(needs_new, self.scales.payload, Mux(later_tile, read.data, current))),
            self.scales.ready.eq((unfed != 0) & needs_new & scale.ready),
        ]
        with m.If(scale.valid & scale.ready):
            m.d.sync += [current.eq(scale.payload), unfed.eq(unfed - 1), beat.eq(beat + 1)]
            m.d.comb += write.en.eq(~later_tile)
            with m.If(beat == span - 1):
                m.d.sync += beat.eq(0)
                with m.If(~later_tile):
                    m.d.sync += rows_left.eq(Mux(rows_left == 0, self.channel_rows - 1, rows_left - 1))
                with m.If(self.in_tiles):
                    m.d.sync += row.eq(row + 1)
                    with m.If(row == BLOCK_SIDE - 1):
                        m.d.sync += [later_tile.eq(wide), left.eq(Mux(wide, left - TILE_BLOCKS, self.row_beats))]
        with m.If(self.start):
            m.d.sync += [unfed.eq(self.beats), current.eq(ONE), left.eq(self.row_beats)]
            m.d.sync += [count.eq(0) for count in (beat, row, later_tile, rows_left)]

        advance = pipeline(m, scale, self.o, 1)
        m.d.comb += self.o.payload.eq(registered(m, advance, scale.payload, "scale_out"))
        return m

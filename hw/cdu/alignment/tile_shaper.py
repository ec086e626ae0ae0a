"""Cuts jobs into the tiles that pass through the alignment buffer."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, TILE_BLOCKS

from cdu.parts.streams import BEATS_BITS
from cdu.parts.wide_sum import wide_difference
from cdu.words import BlockTag, Job, is_one_of


class TileShape(data.StructLayout):
    """A tile: ``blocks`` (1..4) side by side, ``rows`` (1..8) in them, and the tag of its words.

    ``strip_ends`` marks the last tile of a strip of 8 rows (modes with tiles); only single blocks have fewer than 8 rows.
    """

    def __init__(self) -> None:
        super().__init__(
            {"blocks": range(TILE_BLOCKS + 1), "rows": range(BLOCK_SIDE + 1), "strip_ends": 1, "tag": BlockTag()},
        )


def padded_beats(config: CduConfig, job: Any) -> Value:
    """The beats of a :class:`~cdu.words.Job`, up to whole blocks in modes that have no others whatever the descriptor says."""
    in_blocks = is_one_of(job.mode, [mode for mode in config.built_modes if mode.has_zvc or mode.in_tiles])
    row_bits = (BLOCK_SIDE - 1).bit_length()
    whole = job.beats[row_bits:] + job.beats[:row_bits].any()
    return Mux(in_blocks, Cat(Const(0, row_bits), whole), job.beats)


class TileShaper(wiring.Component):
    """The tiles of one job after the other.

    Modes with tiles have them of 8 rows x 4 blocks, the last one of a strip as wide as what is left of the row. In the other
    modes every 8 beats are a tile of one block, the last one of a job as high as what is left of it.

    Parameters
    ----------
    config
        ``modes`` is used.

    Ports
    -----
    job
        Stream of :class:`~cdu.words.Job`.
    o
        Stream of :class:`TileShape`.
    busy
        A job is under way whose last tile is not in ``o`` yet.

    Latency 2 cycles. A tile per cycle, without an idle cycle between jobs.
    """

    job: stream.Interface
    o: stream.Interface
    busy: Signal

    latency = 2

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__({"job": In(stream.Signature(Job())), "o": Out(stream.Signature(TileShape())), "busy": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        busy = self.busy
        tag: Any = Signal(BlockTag(), reset_less=True)
        beats = Signal(BEATS_BITS + 1, reset_less=True)  # of the job, from this tile on
        shape: Any = Signal(TileShape())
        given: Any = Signal(TileShape(), reset_less=True)
        final = Signal()
        step = Signal()
        m.d.comb += [
            step.eq(busy & (~self.o.valid | self.o.ready)),
            shape.blocks.eq(1),
            final.eq(beats <= BLOCK_SIDE),
            shape.rows.eq(Mux(final, beats, BLOCK_SIDE)),
            shape.tag.eq(tag),
            shape.tag.last.eq(final),
            self.job.ready.eq(~busy | (step & final)),
            self.o.payload.eq(given),
        ]
        with m.If(step):
            m.d.sync += beats.eq(wide_difference(beats, shape.blocks << 3, len(beats)))
        if self.config.has_tiles:
            self._tiles(m, shape, final, step, beats)

        with m.If(self.job.ready):
            m.d.sync += [
                busy.eq(self.job.valid),
                tag.mode.eq(self.job.payload.mode),
                tag.bank.eq(self.job.payload.bank),
                tag.how.eq(self.job.payload.how),
                beats.eq(padded_beats(self.config, self.job.payload)),
            ]
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [self.o.valid.eq(busy), given.eq(shape)]
        return m

    def _tiles(self, m: Module, shape: Any, final: Signal, step: Signal, beats: Signal) -> None:
        """Tiles in place of single blocks."""
        row = Signal(BEATS_BITS, reset_less=True)
        left = Signal(BEATS_BITS, reset_less=True)  # blocks of the row, from this tile on
        # Comparisons of wide counts are made a tile ahead.
        wide = Signal(reset_less=True)  # left > TILE_BLOCKS
        many = Signal(reset_less=True)  # more blocks than `in_job` holds, or only > TILE_BLOCKS
        width = Signal(range(TILE_BLOCKS + 1))
        in_job = Signal(range(TILE_BLOCKS + 1))
        blocks = beats[(BLOCK_SIDE - 1).bit_length() :]
        with m.If(is_one_of(shape.tag.mode, [mode for mode in self.config.built_modes if mode.in_tiles])):
            m.d.comb += [
                width.eq(Mux(wide, TILE_BLOCKS, left)),
                # A job that is no whole number of strips ends where its beats end.
                in_job.eq(Mux(many, TILE_BLOCKS, blocks)),
                shape.blocks.eq(Mux(in_job < width, in_job, width)),
                shape.rows.eq(BLOCK_SIDE),
                shape.strip_ends.eq(~wide | final),
                final.eq(~many & (in_job <= width)),
            ]
        with m.If(step):
            m.d.sync += [
                left.eq(Mux(wide, left - TILE_BLOCKS, row)),
                wide.eq(Mux(wide, left > 2 * TILE_BLOCKS, row > TILE_BLOCKS)),
                many.eq(blocks > 2 * TILE_BLOCKS),
            ]
        with m.If(self.job.ready):
            next_job = self.job.payload
            m.d.sync += [
                row.eq(next_job.row_beats),
                left.eq(next_job.row_beats),
                wide.eq(next_job.row_beats > TILE_BLOCKS),
                many.eq(next_job.beats > BLOCK_SIDE * TILE_BLOCKS),
            ]

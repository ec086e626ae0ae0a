"""Feeder that gives every word of a job its place in the job and the scales of its beats."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.affine import BASE_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, TILE_BLOCKS

from cdu.alignment.tile_shaper import TileShape, TileShaper
from cdu.parts.lookup import lookup
from cdu.parts.stream_fork import StreamFork
from cdu.values.scale_windows import ONE, ScaleWindows
from cdu.values.window_plan import has_scales, is_in_tiles
from cdu.words import SCALE_BITS, BlockTag, Job, Scale, join_jobs


class PlannedWord(data.StructLayout):
    """Plan of a word of P beats, made before its values arrive.

    ``scales`` of its beats, 1.0 in the modes brc and bypass; where a mode with offsets is built in, the ``offsets`` that came
    with the scales; ``count`` of beats (1..P); ``ends`` marks the last word of a tile; ``blocks`` (1..4) in that tile;
    ``tag``, whose ``last`` is set in all words of the last tile of a job; ``last`` marks the last word of the job.
    """

    def __init__(self, config: CduConfig) -> None:
        beats = config.port_beats
        super().__init__(
            {
                "scales": data.ArrayLayout(SCALE_BITS, beats),
                **({"offsets": data.ArrayLayout(signed(BASE_BITS), beats)} if config.has_offsets else {}),
                "count": range(beats + 1),
                "ends": 1,
                "blocks": range(TILE_BLOCKS + 1),
                "tag": BlockTag(),
                "last": 1,
            }
        )


class ScaleFeeder(wiring.Component):
    """Turns jobs, their tiles and one scale per channel into one item per word, in the order in which words pass.

    Words of a job in tiles go through every tile row by row, and all tiles of a strip use the scales of its 8 rows: a window
    of :class:`~cdu.values.scale_windows.ScaleWindows` serves a whole strip while the next one is being filled.

    Parameters
    ----------
    config
        P and ``modes`` are used.

    Ports
    -----
    job
        Stream of :class:`~cdu.words.Job`, from which the windows of scales are planned.
    tiles
        Stream of :class:`~cdu.alignment.tile_shaper.TileShape`: the tiles of the same jobs.
    scales
        Stream of :class:`~cdu.words.Scale`, as in :class:`~cdu.values.scale_windows.ScaleWindows`.
    o
        Stream of :class:`PlannedWord`: ``beats / P`` of them per job, rounded up.
    missing, surplus
        Errors of :class:`~cdu.values.scale_windows.ScaleWindows`.
    idle
        No tile is in progress.

    Latency: 4 cycles from a job, 1 from a tile. One word per cycle, also from job to job, as long as ``scales`` has the scales
    needed and a scale serves at least P beats; a scale that serves fewer takes a cycle of its own.
    """

    job: stream.Interface
    tiles: stream.Interface
    scales: stream.Interface
    o: stream.Interface
    missing: Signal
    surplus: Signal
    idle: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__(
            {
                "job": In(stream.Signature(Job())),
                "tiles": In(stream.Signature(TileShape())),
                "scales": In(stream.Signature(Scale())),
                "o": Out(stream.Signature(PlannedWord(config))),
                "missing": Out(1),
                "surplus": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beats = self.config.port_beats
        m.submodules.windows = windows = ScaleWindows(self.config)
        connect(m, flipped(self.job), windows.job)
        connect(m, flipped(self.scales), windows.scales)
        m.d.comb += [self.missing.eq(windows.missing), self.surplus.eq(windows.surplus)]

        # Number of the last word of the tile: the rows less one and the blocks less one make the number of its last beat.
        tile = self.tiles.payload
        word_bits = (beats - 1).bit_length()
        last_row = Signal(range(BLOCK_SIDE))
        last_block = Signal(range(TILE_BLOCKS))
        last_beat = Cat(last_row, last_block)
        word = Signal(range(BLOCK_SIDE * TILE_BLOCKS // beats))
        ends = Signal()
        take = Signal()
        scaled, in_strips = has_scales(self.config, tile.tag.mode), is_in_tiles(self.config, tile.tag.mode)
        advance = ~self.o.valid | self.o.ready
        planned: Any = Signal(PlannedWord(self.config), reset_less=True)
        m.d.comb += [
            self.o.payload.eq(planned),
            last_row.eq(tile.rows - 1),
            last_block.eq(tile.blocks - 1),
            ends.eq(word == last_beat[word_bits:]),
            take.eq(self.tiles.valid & (windows.o.valid | ~scaled) & advance),
            self.tiles.ready.eq(take & ends),
            windows.o.ready.eq(take & scaled & (~in_strips | (ends & tile.strip_ends))),
        ]
        with m.If(take):
            m.d.sync += word.eq(Mux(ends, 0, word + 1))
        places = [self._place(m, lane, in_strips, tile.blocks, word) for lane in range(beats)]
        with m.If(advance):
            m.d.sync += [
                self.o.valid.eq(take),
                planned["count"].eq(Mux(ends, last_beat[:word_bits] + 1, beats)),
                planned["ends"].eq(ends),
                planned["blocks"].eq(tile.blocks),
                planned["tag"].eq(tile.tag),
                planned["last"].eq(ends & tile.tag.last),
            ]
            for lane, place in enumerate(places):
                scale = windows.o.payload[place]
                m.d.sync += planned["scales"][lane].eq(Mux(scaled, scale[:SCALE_BITS], ONE))
                if self.config.has_offsets:
                    m.d.sync += planned["offsets"][lane].eq(scale[SCALE_BITS:])
        m.d.comb += self.idle.eq(~self.tiles.valid & ~self.o.valid)
        return m

    def _place(self, m: Module, lane: int, in_strips: Value, blocks: Value, word: Value) -> Value | int:
        """Return the place in the window of a beat of a word: the beat's row in a strip, otherwise the lane itself."""
        if not self.config.has_tiles:
            return lane
        beats = self.config.port_beats
        rows = {
            width: [(number * beats + lane) // width for number in range(BLOCK_SIDE * width // beats)]
            for width in range(1, TILE_BLOCKS + 1)
        }
        place = Signal(range(BLOCK_SIDE), name=f"place{lane}")
        m.d.comb += place.eq(Mux(in_strips, lookup(m, rows, blocks, word, f"row{lane}"), lane))
        return place


def shaped_jobs(m: Module, config: CduConfig, jobs: stream.Interface, feeder: ScaleFeeder) -> TileShaper:
    """Hand jobs to a feeder and to a shaper of their tiles, and return the shaper."""
    m.submodules.fork = fork = StreamFork(Job(), 2)
    m.submodules.shaper = shaper = TileShaper(config)
    join_jobs(m, config, jobs, fork.i)
    connect(m, fork.o[0], shaper.job)
    connect(m, fork.o[1], feeder.job)
    return shaper

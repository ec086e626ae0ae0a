"""Back end of a decompressor: int8 and codes back to values of one job after the other (JPEG-ACT, "SFPR")."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig
from cdu_spec.geometry import TILE_BLOCKS

from cdu.alignment.alignment_buffer import SLOTS
from cdu.alignment.range_store import RangeStore
from cdu.alignment.tile_shaper import TileShape, TileShaper
from cdu.lanes.head_check import HeadCheck
from cdu.parts.register_slice import sliced
from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.stream_fork import StreamFork
from cdu.parts.streams import registered
from cdu.values.affine_dequantizer import AffineDequantizer
from cdu.values.inverse_sfpr import InverseSfpr
from cdu.values.scale_feeder import ScaleFeeder, shaped_jobs
from cdu.words import BlockWord, Job, Scale, TileWord, ValueWord


class ValueBack(wiring.Component):
    """Convert blocks of int8 or of codes, by way of the alignment buffer, and reciprocals to words of values.

    Parameters
    ----------
    config
        P, ``value_format``, ``modes``, ``multiplier_stages`` and ``register_slices`` are used.

    Ports
    -----
    job
        Stream of :class:`~cdu.words.Job`, one per tensor, none of mode bypass; up to two are taken ahead.
    scales
        Stream of :class:`~cdu.words.Scale`, as for :class:`~cdu.values.scale_windows.ScaleWindows`: reciprocals.
    i
        Stream of :class:`~cdu.words.BlockWord`: the blocks of the jobs, with ranges where a mode that has them is built in.
    to_alignment
        Stream of :class:`~cdu.words.TileWord`, to an alignment buffer ``TO_ROWS``: ``i`` and the width of the tile,
        combinationally (only with modes in tiles).
    from_alignment
        Stream of :class:`~cdu.words.TileWord`, from the alignment buffer (only with modes in tiles).
    o
        Stream of :class:`~cdu.words.ValueWord`: all beats of the jobs, padding included. Values of brc are 1.0 and 0.0.
    scale_missing, scale_surplus, bad_head
        Events of :class:`~cdu.words.JobEvents`.
    idle
        No job is in progress.

    Latency from ``from_alignment`` (without modes in tiles from ``i``) that of
    :class:`~cdu.values.inverse_sfpr.InverseSfpr`, and 2 cycles with affine modes; 4 from a job to its first word, and
    ``register_slices`` more. One word per cycle, without an idle cycle between jobs when the next job is offered in time.
    """

    job: stream.Interface
    scales: stream.Interface
    i: stream.Interface
    to_alignment: stream.Interface
    from_alignment: stream.Interface
    o: stream.Interface
    scale_missing: Signal
    scale_surplus: Signal
    bad_head: Signal
    idle: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        self.aligned = config.has_tiles
        self.ranged = config.has_ranges
        tiles = stream.Signature(TileWord(config))
        super().__init__(
            {
                "job": In(stream.Signature(Job())),
                "scales": In(stream.Signature(Scale())),
                "i": In(stream.Signature(BlockWord(config, ranged=self.ranged))),
                **({"to_alignment": Out(tiles), "from_alignment": In(tiles)} if self.aligned else {}),
                "o": Out(stream.Signature(ValueWord(config))),
                "scale_missing": Out(1),
                "scale_surplus": Out(1),
                "bad_head": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.feeder = feeder = ScaleFeeder(self.config)
        connect(m, flipped(self.scales), feeder.scales)
        m.d.comb += [self.scale_missing.eq(feeder.missing), self.scale_surplus.eq(feeder.surplus)]
        words: stream.Interface = self.i
        shaper = shaped_jobs(m, self.config, self.job, feeder)
        if self.aligned:
            words = self._through_alignment(m, shaper, feeder)
        else:
            connect(m, shaper.o, feeder.tiles)

        # All units of a kind move together; data that accompany their values move beside them.
        plans = sliced(m, self.config, "plans", feeder.o)
        plan = plans.payload
        units = [InverseSfpr(self.config) for _ in range(self.config.port_beats)]
        for lane, unit in enumerate(units):
            m.submodules[f"inverse_sfpr{lane}"] = unit
        firsts: Sequence[InverseSfpr | AffineDequantizer] = units
        if self.config.has_affine:
            dequantizers = [AffineDequantizer(self.config) for _ in units]
            for lane, (dequantizer, unit) in enumerate(zip(dequantizers, units, strict=True)):
                m.submodules[f"dequantizer{lane}"] = dequantizer
                connect(m, dequantizer.o, unit.i)
            firsts = dequantizers
        enters = Signal()
        m.d.comb += [
            enters.eq(words.valid & plans.valid),
            words.ready.eq(firsts[0].i.ready & plans.valid),
            plans.ready.eq(firsts[0].i.ready & words.valid),
            self.o.valid.eq(units[0].o.valid),
        ]
        for lane, (first, unit) in enumerate(zip(firsts, units, strict=True)):
            m.d.comb += [
                first.i.valid.eq(enters),
                unit.o.ready.eq(self.o.ready),
                first.i.payload.scale.eq(plan.scales[lane]),
                first.i.payload["values"].eq(words.payload["values"][lane]),
            ]
            if self.config.has_affine:
                m.d.comb += [first.i.payload.mode.eq(plan.tag.mode), first.i.payload.quantizer.eq(plan.tag.how.affine)]
            if self.ranged:
                m.d.comb += first.i.payload.range.eq(words.payload["ranges"][lane])
            if self.config.has_offsets:
                m.d.comb += first.i.payload.offset.eq(plan.offsets[lane])
            # Lanes without a beat become zeros, behind the units: their first stage has no time for that.
            there, result = self.o.payload.count > lane, unit.o.payload.as_value()
            m.d.comb += self.o.payload["values"][lane].eq(result & there.replicate(len(result)))

        beside: dict[str, Value] = {name: plan[name] for name in ("count", "last")}
        busy: Value = shaper.busy | shaper.o.valid
        for number, kind in enumerate((firsts, units) if self.config.has_affine else (units,)):
            latency, advance = kind[0].latency, kind[0].i.ready
            for name in beside:
                for stage in range(latency):
                    beside[name] = registered(m, advance, beside[name], f"{name}{number}_{stage + 1}")
            under_way = Signal(latency, name=f"under_way{number}")
            with m.If(advance):
                m.d.sync += under_way.eq(Cat(kind[0].i.valid, under_way)[:latency])
            busy |= under_way.any()
        m.d.comb += [self.o.payload[name].eq(value) for name, value in beside.items()]
        idle = feeder.idle & ~plans.valid if self.config.register_slices else feeder.idle
        m.d.comb += self.idle.eq(idle & ~busy)
        return m

    def _through_alignment(self, m: Module, shaper: TileShaper, feeder: ScaleFeeder) -> stream.Interface:
        """Send all blocks to the alignment buffer; return the words that come back, with their beats' ranges."""
        if not self.ranged:
            self._widths(m, shaper, feeder, self.to_alignment)
            return self.from_alignment
        m.submodules.range_store = ranges = RangeStore(self.config)
        m.submodules.head_check = check = HeadCheck(self.config)
        block = self.i.payload
        m.d.comb += [
            check.passes.eq(self.i.valid & self.i.ready & block["ends"]),
            check.tag.eq(block["tag"]),
            check.range.eq(block["range"]),
            self.bad_head.eq(check.bad_head),
        ]
        self._widths(m, shaper, feeder, ranges.i)
        connect(m, ranges.to_alignment, flipped(self.to_alignment))
        connect(m, flipped(self.from_alignment), ranges.from_alignment)
        return ranges.o

    def _widths(self, m: Module, shaper: TileShaper, feeder: ScaleFeeder, sink: stream.Interface) -> None:
        """Give every block on its way to the alignment buffer the width of its tile, queued for the words that come back.

        The queue has room for as many tiles as the buffer has slots, so that it never stalls the buffer.
        """
        m.submodules.tile_fork = fork = StreamFork(TileShape(), 2)
        m.submodules.tiles = tiles = StreamFifo(TileShape(), SLOTS)
        connect(m, shaper.o, fork.i)
        connect(m, fork.o[1], tiles.i)
        connect(m, tiles.o, feeder.tiles)
        enters = fork.o[0]
        tile, word = enters.payload, sink.payload
        block = Signal(range(TILE_BLOCKS + 1), init=1)  # in the tile, from 1
        passes = Signal()
        m.d.comb += [
            sink.valid.eq(self.i.valid & enters.valid),
            self.i.ready.eq(sink.ready & enters.valid),
            passes.eq(self.i.valid & self.i.ready & self.i.payload.ends),
            enters.ready.eq(passes & (block == tile.blocks)),
            word.blocks.eq(tile.blocks),
        ]
        m.d.comb += [word[name].eq(self.i.payload[name]) for name, _ in self.i.payload.shape()]
        with m.If(passes):
            m.d.sync += block.eq(block + 1)
            with m.If(enters.ready):
                m.d.sync += block.eq(1)

"""The back end of a decompressor: int8 back to values of one job after the other (JPEG-ACT, "SFPR")."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig
from cdu_spec.geometry import TILE_BLOCKS

from cdu.inverse_sfpr import InverseSfpr
from cdu.scale_feeder import ScaleFeeder
from cdu.stream_fork import StreamFork
from cdu.streams import registered
from cdu.tile_shaper import TileShaper
from cdu.words import BlockWord, Job, Scale, TileWord, ValueWord


class ValueBack(wiring.Component):
    """Blocks of int8, by way of the alignment buffer, and reciprocals to words of values.

    Parameters
    ----------
    config
        P, ``value_format`` and ``modes`` are used.

    Ports
    -----
    job
        Stream of :class:`~cdu.words.Job`, one per tensor, none of mode bypass; two are taken ahead.
    scales
        Stream of :class:`~cdu.words.Scale`, see :class:`~cdu.scale_windows.ScaleWindows`: reciprocals.
    i
        Stream of :class:`~cdu.words.BlockWord`: the blocks of the jobs.
    to_alignment
        Stream of :class:`~cdu.words.TileWord`, to an alignment buffer ``TO_ROWS``: ``i`` and the width of the tile,
        combinationally (only with mode jpeg-act).
    from_alignment
        Stream of :class:`~cdu.words.TileWord`, from the alignment buffer (only with jpeg-act).
    o
        Stream of :class:`~cdu.words.ValueWord`: all beats of the jobs, padding included. Values of brc are 1.0 and 0.0.
    scale_missing, scale_surplus
        See :class:`~cdu.words.JobEvents`.
    idle
        No job is here.

    Latency 3 cycles from ``from_alignment`` (without jpeg-act from ``i``); 6 from a job to its first word. One word per
    cycle, without an idle cycle between jobs when the next job is offered in time.
    """

    job: stream.Interface
    scales: stream.Interface
    i: stream.Interface
    to_alignment: stream.Interface
    from_alignment: stream.Interface
    o: stream.Interface
    scale_missing: Signal
    scale_surplus: Signal
    idle: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        self.aligned = Mode.JPEG_ACT in config.built_modes
        tiles = stream.Signature(TileWord(config))
        super().__init__(
            {
                "job": In(stream.Signature(Job())),
                "scales": In(stream.Signature(Scale())),
                "i": In(stream.Signature(BlockWord(config))),
                **({"to_alignment": Out(tiles), "from_alignment": In(tiles)} if self.aligned else {}),
                "o": Out(stream.Signature(ValueWord(config))),
                "scale_missing": Out(1),
                "scale_surplus": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.feeder = feeder = ScaleFeeder(self.config)
        connect(m, flipped(self.scales), feeder.scales)
        m.d.comb += [self.scale_missing.eq(feeder.missing), self.scale_surplus.eq(feeder.surplus)]
        if self.aligned:
            self._widths(m, feeder)
            words = self.from_alignment
        else:
            connect(m, flipped(self.job), feeder.job)
            words = self.i

        # All inverse SFPR units move together; what goes with their values moves beside them.
        plan = feeder.o.payload
        m.submodules += (units := [InverseSfpr(self.config) for _ in range(self.config.port_beats)])
        advance = units[0].i.ready
        enters = Signal()
        m.d.comb += [
            enters.eq(words.valid & feeder.o.valid),
            words.ready.eq(advance & feeder.o.valid),
            feeder.o.ready.eq(advance & words.valid),
            self.o.valid.eq(units[0].o.valid),
        ]
        for lane, unit in enumerate(units):
            there = plan["count"] > lane
            m.d.comb += [unit.i.valid.eq(enters), unit.o.ready.eq(self.o.ready), unit.i.payload.scale.eq(plan.scales[lane])]
            for place, value in enumerate(words.payload["values"][lane]):
                m.d.comb += unit.i.payload["values"][place].eq(value & there.replicate(len(value)))
            m.d.comb += self.o.payload["values"][lane].eq(unit.o.payload)
        for name in ("count", "last"):
            value = plan[name]
            for stage in range(InverseSfpr.latency):
                value = registered(m, advance, value, f"{name}{stage + 1}")
            m.d.comb += self.o.payload[name].eq(value)

        under_way = Signal(InverseSfpr.latency)
        with m.If(advance):
            m.d.sync += under_way.eq(Cat(enters, under_way)[: InverseSfpr.latency])
        m.d.comb += self.idle.eq(feeder.idle & ~under_way.any())
        return m

    def _widths(self, m: Module, feeder: ScaleFeeder) -> None:
        """Give every block on its way to the alignment buffer the width of its tile."""
        m.submodules.fork = fork = StreamFork(Job(), 2)
        m.submodules.shaper = shaper = TileShaper(self.config)
        connect(m, flipped(self.job), fork.i)
        connect(m, fork.o[0], shaper.job)
        connect(m, fork.o[1], feeder.job)
        tile, word = shaper.o.payload, self.to_alignment.payload
        block = Signal(range(TILE_BLOCKS + 1), init=1)  # in the tile, from 1
        passes = Signal()
        m.d.comb += [
            self.to_alignment.valid.eq(self.i.valid & shaper.o.valid),
            self.i.ready.eq(self.to_alignment.ready & shaper.o.valid),
            passes.eq(self.i.valid & self.i.ready & self.i.payload.ends),
            shaper.o.ready.eq(passes & (block == tile.blocks)),
            word.blocks.eq(tile.blocks),
        ]
        m.d.comb += [word[name].eq(self.i.payload[name]) for name, _ in self.i.payload.shape()]
        with m.If(passes):
            m.d.sync += block.eq(block + 1)
            with m.If(shaper.o.ready):
                m.d.sync += block.eq(1)

"""Front end of a compressor: values of one job after the other, scaled to integers (JPEG-ACT, "SFPR")."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.affine import BASE_BITS
from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode

from cdu.parts.register_slice import sliced
from cdu.parts.streams import registered
from cdu.values.scale_feeder import ScaleFeeder, shaped_jobs
from cdu.values.sfpr import Sfpr
from cdu.values.value_intake import ValueIntake
from cdu.words import BlockWord, Job, JobEvents, MxWord, Scale, TileWord, ValueWord, is_one_of


class ValueFront(wiring.Component):
    """Scale words of values to words of integers for the alignment buffer.

    Parameters
    ----------
    config
        All parameters but those of the transform are used.

    Ports
    -----
    job
        Stream of :class:`~cdu.words.Job`, one per tensor; up to two are taken ahead.
    scales
        Stream of :class:`~cdu.words.Scale`, as for :class:`~cdu.values.scale_windows.ScaleWindows`: multipliers.
    i
        Stream of :class:`~cdu.words.ValueWord`. A job takes as many words as its beats fill, whatever ``count`` says;
        :class:`~cdu.values.value_intake.ValueIntake` describes input that is too short or too long.
    to_alignment
        Stream of :class:`~cdu.words.TileWord` of ``config.value_bits``, in modes that are not affine int8; zeros behind
        ``count`` beats. Without modes in tiles there is no alignment buffer: every tile is a block, and this is a stream of
        :class:`~cdu.words.BlockWord`.
    raw
        Stream of :class:`~cdu.words.ValueWord`: the values of jobs of mode bypass, cut and padded likewise, combinationally
        from ``i`` (only with that mode).
    mx
        Stream of :class:`~cdu.words.MxWord`: the values of jobs of mode mx, cut and padded likewise (only with that mode).
    events
        :class:`~cdu.words.JobEvents`.
    job_begins
        High for a cycle when the first word of a job passes.
    idle
        No job is in progress. The rest of an input that was too long may still be dropped.

    Latency that of :class:`~cdu.values.sfpr.Sfpr`; 4 cycles from a job to its first word, with ``register_slices`` 5. One word
    per cycle, without an idle cycle between jobs when the next job is offered as many cycles before its turn; jobs of a single
    word take 4 cycles for three.
    """

    job: stream.Interface
    scales: stream.Interface
    i: stream.Interface
    to_alignment: stream.Interface
    raw: stream.Interface
    mx: stream.Interface
    events: Any
    job_begins: Signal
    idle: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        word = (TileWord if config.has_tiles else BlockWord)(config, config.value_bits)
        raw = {"raw": Out(stream.Signature(ValueWord(config)))} if config.has_bypass else {}
        mx = {"mx": Out(stream.Signature(MxWord(config)))} if config.has_mx else {}
        super().__init__(
            {
                "job": In(stream.Signature(Job())),
                "scales": In(stream.Signature(Scale())),
                "i": In(stream.Signature(ValueWord(config))),
                "to_alignment": Out(stream.Signature(word)),
                **raw,
                **mx,
                "events": Out(JobEvents()),
                "job_begins": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.feeder = feeder = ScaleFeeder(self.config)
        m.submodules.intake = intake = ValueIntake(self.config)
        shaper = shaped_jobs(m, self.config, self.job, feeder)
        connect(m, shaper.o, feeder.tiles)
        connect(m, flipped(self.scales), feeder.scales)
        plans = sliced(m, self.config, "plans", feeder.o)
        connect(m, plans, intake.plan)
        connect(m, flipped(self.i), intake.i)
        word: Any = intake.o.payload
        plan = word["plan"]

        # All SFPR units move together; data that accompany their values move beside them.
        units = [Sfpr(self.config) for _ in range(self.config.port_beats)]
        advance, latency = units[0].i.ready, units[0].latency
        enters = Signal()
        self._join_units(m, word, units, enters)
        m.d.comb += [
            enters.eq(intake.o.valid),
            intake.o.ready.eq(advance),
            self.to_alignment.valid.eq(units[0].o.valid),
        ]
        for name, _ in self.to_alignment.payload.shape():
            if name != "values":
                value = plan[name]
                for stage in range(latency):
                    value = registered(m, advance, value, f"{name}{stage + 1}")
                m.d.comb += self.to_alignment.payload[name].eq(value)
        self._past_units(m, intake, enters, advance)

        nonfinite = Cat(unit.o.payload.nonfinite for unit in units).any()
        begins = Signal(init=1)
        with m.If(intake.o.valid & intake.o.ready):
            m.d.sync += begins.eq(plan["last"])
        under_way = Signal(latency)
        with m.If(advance):
            m.d.sync += under_way.eq(Cat(enters, under_way)[:latency])
        idle = feeder.idle & ~shaper.busy
        if self.config.register_slices:
            idle &= ~plans.valid
        m.d.comb += [
            self.events.early_last.eq(intake.early_last),
            self.events.late_last.eq(intake.late_last),
            self.events.nonfinite.eq(self.to_alignment.valid & self.to_alignment.ready & nonfinite),
            self.events.scale_missing.eq(feeder.missing),
            self.events.scale_surplus.eq(feeder.surplus),
            self.job_begins.eq(intake.o.valid & intake.o.ready & begins),
            self.idle.eq(idle & ~under_way.any()),
        ]
        return m

    def _join_units(self, m: Module, word: Any, units: list[Sfpr], enters: Value) -> None:
        """Join the SFPR units to the values of ``word``, which go in while ``enters`` is high, and to the alignment buffer."""
        plan = word["plan"]
        for lane, unit in enumerate(units):
            m.submodules[f"sfpr{lane}"] = unit
        for lane, unit in enumerate(units):
            m.d.comb += [
                unit.i.valid.eq(enters),
                unit.i.payload["values"].eq(word["came"][lane]),
                unit.i.payload.absent.eq(word["absent"][lane]),
                unit.i.payload.scale.eq(plan.scales[lane]),
                unit.i.payload.binary.eq(plan.tag.mode == Mode.BRC),
                unit.o.ready.eq(self.to_alignment.ready),
                self.to_alignment.payload["values"][lane].eq(unit.o.payload["values"]),
            ]
            if self.config.has_affine:
                affine = [mode for mode in self.config.built_modes if mode.is_affine]
                m.d.comb += unit.i.payload.narrow.eq(~is_one_of(plan.tag.mode, affine))
            if self.config.has_offsets:
                lower = plan.tag.mode == Mode.BLPA
                subtracts = lower & (plan["count"] > lane)
                offset = plan.offsets[lane] & subtracts.replicate(BASE_BITS)
                m.d.comb += [unit.i.payload.lower.eq(lower), unit.i.payload.offset.eq(offset)]

    def _past_units(self, m: Module, intake: ValueIntake, enters: Signal, advance: Value) -> None:
        """Hand the values of the modes bypass and mx out past the SFPR units, which they do not enter."""
        word: Any = intake.o.payload
        plan = word["plan"]
        if self.config.has_bypass:
            bypasses = plan.tag.mode == Mode.BYPASS
            m.d.comb += [
                self.raw.valid.eq(intake.o.valid & bypasses),
                self.raw.payload["values"].eq(word["values"]),
                self.raw.payload["count"].eq(plan["count"]),
                self.raw.payload["last"].eq(plan["last"]),
                enters.eq(intake.o.valid & ~bypasses),
                intake.o.ready.eq(Mux(bypasses, self.raw.ready, advance)),
            ]
        if self.config.has_mx:
            with m.If(plan.tag.mode == Mode.MX):
                m.d.comb += [self.mx.valid.eq(intake.o.valid), enters.eq(0), intake.o.ready.eq(self.mx.ready)]
            m.d.comb += [
                self.mx.payload["values"].eq(word["values"]),
                self.mx.payload["count"].eq(plan["count"]),
                self.mx.payload["last"].eq(plan["last"]),
                self.mx.payload["scaling"].eq(plan.tag.how.mx),
            ]

"""Bypass of values as payload and back, unchanged, between ports of different width."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig

from cdu.parts.byte_packer import BytePacker
from cdu.parts.streams import BEATS_BITS
from cdu.parts.width_converter import WidthConverter
from cdu.values.value_intake import ValueIntake
from cdu.words import Job, PackedWord, ValueWord, beats_of_bytes, bytes_of_beats, value_bytes


class BypassPacker(wiring.Component):
    """Convert words of P beats to words of M bytes.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.ValueWord`, full except for the last one of a job.
    o
        Stream of :class:`~cdu.words.PackedWord`, full except for the last one of a job.

    No latency; one transfer per cycle on the narrower side.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__({"i": In(stream.Signature(ValueWord(config))), "o": Out(stream.Signature(PackedWord(config)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.converter = converter = WidthConverter(value_bytes(self.config), self.config.packed_bytes)
        m.d.comb += [
            converter.i.valid.eq(self.i.valid),
            self.i.ready.eq(converter.i.ready),
            converter.i.payload["data"].eq(self.i.payload["values"]),
            converter.i.payload["count"].eq(bytes_of_beats(self.config, self.i.payload["count"])),
            converter.i.payload["last"].eq(self.i.payload["last"]),
        ]
        connect(m, converter.o, flipped(self.o))
        return m


class BypassUnpacker(wiring.Component):
    """Convert words of M bytes to words of P beats, as many as each job has.

    Ports
    -----
    job
        Stream of :class:`~cdu.words.Job`, of mode bypass.
    i
        Stream of :class:`~cdu.words.PackedWord` of any count.
    o
        Stream of :class:`~cdu.words.ValueWord`.
    early_last
        High for a cycle if a payload is too short: zeros replace the missing bytes.
    late_last
        High for a cycle if a payload is too long; the rest is dropped.

    Latency 1 cycle from a job, none from a word; one transfer per cycle on the narrower side.
    """

    job: stream.Interface
    i: stream.Interface
    o: stream.Interface
    early_last: Signal
    late_last: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__(
            {
                "job": In(stream.Signature(Job())),
                "i": In(stream.Signature(PackedWord(config))),
                "o": Out(stream.Signature(ValueWord(config))),
                "early_last": Out(1),
                "late_last": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beats, packed_bytes = self.config.port_beats, self.config.packed_bytes
        m.submodules.converter = converter = WidthConverter(packed_bytes, value_bytes(self.config))
        m.submodules.intake = intake = ValueIntake(self.config)
        m.submodules.packer = packer = BytePacker(packed_bytes)
        connect(m, flipped(self.i), packer.i)
        connect(m, packer.o, converter.i)

        # The words of the jobs
        left = Signal(BEATS_BITS)  # beats from this word on
        plan = intake.plan
        last = Signal()
        m.d.comb += [
            plan.valid.eq(left != 0),
            last.eq(left <= beats),
            plan.payload.count.eq(Mux(last, left, beats)),
            plan.payload["last"].eq(last),
            self.job.ready.eq((left == 0) | (plan.ready & last)),
        ]
        with m.If(self.job.ready):
            m.d.sync += left.eq(Mux(self.job.valid, self.job.payload.beats, 0))
        with m.Elif(plan.ready):
            m.d.sync += left.eq(left - beats)

        # Received words, fitted to port words; an incomplete beat counts as one
        m.d.comb += [
            intake.i.valid.eq(converter.o.valid),
            converter.o.ready.eq(intake.i.ready),
            intake.i.payload["values"].eq(converter.o.payload["data"]),
            intake.i.payload["count"].eq(beats_of_bytes(self.config, converter.o.payload["count"])),
            intake.i.payload["last"].eq(converter.o.payload["last"]),
            self.o.valid.eq(intake.o.valid),
            intake.o.ready.eq(self.o.ready),
            self.o.payload["values"].eq(intake.o.payload["values"]),
            self.o.payload["count"].eq(intake.o.payload.plan.count),
            self.o.payload["last"].eq(intake.o.payload.plan["last"]),
            self.early_last.eq(intake.early_last),
            self.late_last.eq(intake.late_last),
        ]
        return m

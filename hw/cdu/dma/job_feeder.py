"""Reads of a job that begin before the job's turn."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig
from cdu_spec.register_types import Channel

from cdu.dma.records import KINDS, Planned, ScalesJob, TensorJob, kinds, payload_segment, runs, scales_job, tensor_job
from cdu.dma.segments import Segment
from cdu.parts.stream_fifo import StreamFifo

#: Number of jobs whose reads may have begun without having all ended.
_READ_AHEAD = 2


class JobFeeder(wiring.Component):
    """Begin the reads of a job once all reads of the job before have begun, and pass the job on.

    Data that were read wait in front of the unit until the job has its START.

    Parameters
    ----------
    config
        Modes of the unit.
    channel
        The direction.

    Ports
    -----
    i, o
        Streams of :class:`~cdu.dma.records.Planned`. A job leaves once its reads have begun; it is taken from ``i`` with the
        transfer at ``o``.
    data, scales
        Streams of reads to do: for the tensor a :class:`~cdu.dma.records.TensorJob` or for the payload a
        :class:`~cdu.dma.segments.Segment`; for the scales a :class:`~cdu.dma.records.ScalesJob`.
    read, scales_read
        Streams, one transfer per read that has ended: whether it failed.
    result
        Stream with one transfer per job that can be run, once all its reads have ended: whether any of them failed.
    """

    i: stream.Interface
    o: stream.Interface
    data: stream.Interface
    scales: stream.Interface
    read: stream.Interface
    scales_read: stream.Interface
    result: stream.Interface

    def __init__(self, config: CduConfig, channel: Channel) -> None:
        self.config, self.channel = config, channel
        jobs = stream.Signature(Planned())
        super().__init__(
            {
                "i": In(jobs),
                "o": Out(jobs),
                "data": Out(stream.Signature(TensorJob() if channel is Channel.COMPRESS else Segment())),
                "scales": Out(stream.Signature(ScalesJob())),
                "read": In(stream.Signature(1)),
                "scales_read": In(stream.Signature(1)),
                "result": Out(stream.Signature(1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        job: Any = Signal(Planned(), reset_less=True)
        kind = {name: Signal(name=name, reset_less=True) for name in KINDS}
        of_tensor = self.channel is Channel.COMPRESS
        m.d.comb += tensor_job(self.data.payload, job, kind) if of_tensor else payload_segment(self.data.payload, job)
        m.d.comb += scales_job(self.scales.payload, job, kind)

        # Reads that have not begun yet
        takes = Signal()
        begun = Signal()
        waits = [Signal(name=f"{name}_waits") for name in ("data", "scales")]
        found = kinds(self.config, self.i.payload["fetched"]["descriptor"]["mode"])
        m.submodules.reads = reads = StreamFifo(1, _READ_AHEAD)  # of jobs whose reads have begun: whether they have scales
        starts = takes & runs(self.i.payload)
        m.d.comb += [
            takes.eq(self.i.valid & ~begun & ~Cat(waits).any() & reads.i.ready),
            self.o.payload.eq(self.i.payload),
            self.o.valid.eq(begun),
            self.i.ready.eq(begun & self.o.ready),
            reads.i.valid.eq(starts),
            reads.i.payload.eq(found["has_scales"]),
        ]
        for target, still in zip((self.data, self.scales), waits, strict=True):
            m.d.comb += target.valid.eq(still)
            with m.If(target.ready):
                m.d.sync += still.eq(0)
        with m.If(takes):
            m.d.sync += [begun.eq(1), job.eq(self.i.payload), *(kind[name].eq(found[name]) for name in KINDS)]
            m.d.sync += [waits[0].eq(starts), waits[1].eq(starts & found["has_scales"])]
        with m.Elif(begun & self.o.ready):
            m.d.sync += begun.eq(0)

        # Reads of the oldest job that have ended
        over, failed = ([Signal(name=f"{name}_{what}") for name in ("data", "scales")] for what in ("over", "failed"))
        expected = (Const(1), reads.o.payload)
        for source, ended, wrong, has in zip((self.read, self.scales_read), over, failed, expected, strict=True):
            m.d.comb += source.ready.eq(reads.o.valid & has & ~ended)
            with m.If(reads.o.ready):
                m.d.sync += [ended.eq(0), wrong.eq(0)]
            with m.Elif(source.valid & source.ready):
                m.d.sync += [ended.eq(1), wrong.eq(source.payload)]
        m.d.comb += [
            self.result.valid.eq(reads.o.valid & (Cat(over) == Cat(expected))),
            self.result.payload.eq(Cat(failed).any()),
            reads.o.ready.eq(self.result.valid & self.result.ready),
        ]
        return m

"""The order in which a unit takes scales, as segments of memory."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2
from cdu_spec.bitstream import RECIPROCAL_BYTES
from cdu_spec.config import CduConfig
from cdu_spec.ports import scale_port_bytes
from cdu_spec.register_types import COUNT_BITS

from cdu.dma.records import ScalesJob
from cdu.dma.segments import Segment


class ScaleWalk(wiring.Component):
    """The scales of all channels for every sample, and those of groups that begin in the padding.

    These are the scales of the first channels; that of the last one for each of them where padding ``repeats`` values.

    Parameters
    ----------
    config
        Which modes there are.

    Ports
    -----
    job
        Stream of :class:`~cdu.dma.records.ScalesJob`, which is taken with its last segment.
    o
        Stream of :class:`~cdu.dma.segments.Segment`.

    No segment is empty where the job has a channel. A segment per cycle, and a cycle between jobs.
    """

    job: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__({"job": In(stream.Signature(ScalesJob())), "o": Out(stream.Signature(Segment()))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        job, segment = self.job.payload, self.o.payload
        left = Signal(COUNT_BITS)
        last = Signal()
        place = exact_log2(RECIPROCAL_BYTES)
        channels = Signal.like(job["channels"])
        first = Signal.like(job["address"])
        m.d.comb += [channels.eq(job["channels"]), first.eq(job["address"])]
        if self.config.has_ranges:
            with m.If(job["repeats"] & (left <= job["extra"])):
                m.d.comb += [channels.eq(1), first.eq(job["address"] + ((job["channels"] - 1) << place))]
        size: Value = Mux(last, left, channels) << place
        if self.config.has_offsets:
            size = Mux(job["wide"], size << exact_log2(scale_port_bytes(offsets=True) // RECIPROCAL_BYTES), size)
        m.d.comb += [
            last.eq(left <= channels),
            self.o.valid.eq(left != 0),
            segment["address"].eq(first),
            segment["bytes"].eq(size),
            segment["last"].eq(last),
            self.job.ready.eq(self.o.valid & self.o.ready & last),
        ]
        with m.If(left == 0):
            m.d.sync += left.eq(Mux(self.job.valid, job["groups"], 0))
        with m.Elif(self.o.ready):
            m.d.sync += left.eq(Mux(last, 0, left - channels))
        return m

"""The order in which a unit takes scales, as segments of memory."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2
from cdu_spec.bitstream import RECIPROCAL_BYTES
from cdu_spec.registers import COUNT_BITS

from cdu.dma.records import ScalesJob
from cdu.dma.segments import Segment


class ScaleWalk(wiring.Component):
    """The scales of all channels for every sample, and from the first one on for groups that begin in the padding.

    Ports
    -----
    job
        Stream of :class:`~cdu.dma.records.ScalesJob`, which is taken with its last segment.
    o
        Stream of :class:`~cdu.dma.segments.Segment`.

    A segment per cycle, and a cycle between jobs.
    """

    job: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__({"job": In(stream.Signature(ScalesJob())), "o": Out(stream.Signature(Segment()))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        job, segment = self.job.payload, self.o.payload
        left, last = Signal(COUNT_BITS), Signal()
        m.d.comb += [
            last.eq(left <= job["channels"]),
            self.o.valid.eq(left != 0),
            segment["address"].eq(job["address"]),
            segment["bytes"].eq(Mux(last, left, job["channels"]) << exact_log2(RECIPROCAL_BYTES)),
            segment["last"].eq(last),
            self.job.ready.eq(self.o.valid & self.o.ready & last),
        ]
        with m.If(left == 0):
            m.d.sync += left.eq(Mux(self.job.valid, job["groups"], 0))
        with m.Elif(self.o.ready):
            m.d.sync += left.eq(Mux(last, 0, left - job["channels"]))
        return m

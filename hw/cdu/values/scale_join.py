"""Join of scales from registers and from a port, which gives them to jobs in their order."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.affine import scale_exponents
from cdu_spec.register_types import Channel, ScaleSource

from cdu.parts.stream_fifo import StreamFifo
from cdu.values.scale_windows import ONE
from cdu.values.sfpr import FP32_BIAS, FP32_FRACTION_BITS
from cdu.words import Scale


class ScaleOrder(data.StructLayout):
    """Properties of a job's scales, known at its start: their ``source``, and whether the mode is ``affine``."""

    def __init__(self) -> None:
        super().__init__({"source": ScaleSource, "affine": 1})


class ScaleJoin(wiring.Component):
    """Give each job that has scales one packet of them, in the order of the jobs, each from one source.

    Parameters
    ----------
    channel
        Multipliers or reciprocals: their ranges differ (docs/reference/bitstream.md, "Reciprocals" and "Encoding").
    bits
        Significand bits of a scale that the unit multiplies with, hidden bit included.

    Ports
    -----
    job
        Stream of :class:`ScaleOrder`, one for every job that has scales; ready while there is room for one more.
    written, streamed
        Streams of :class:`~cdu.words.Scale`: from registers, and from the port.
    o
        Stream of :class:`~cdu.words.Scale`. A job that names its source gets the next packet of it; any other job gets the
        packet that comes first, registers before the port. Scales out of range, or with more significand bits than ``bits``,
        are replaced by 1.0.
    bad_scale
        High for a cycle when a scale is replaced.
    scale_source
        High for a cycle when it is unknown which packet belongs to which of two jobs: the second job was started before the
        packet of the first one had passed, and one of them names its source and the other does not, or neither does and the
        packets come from different sources.

    Latency: 1 cycle from a job, none from a scale. One scale per cycle.
    """

    job: stream.Interface
    written: stream.Interface
    streamed: stream.Interface
    o: stream.Interface
    bad_scale: Signal
    scale_source: Signal

    #: Number of jobs that can wait for the end of their packet.
    depth = 8

    def __init__(self, channel: Channel, bits: int) -> None:
        self.channel, self.bits = channel, bits
        scales = stream.Signature(Scale())
        super().__init__(
            {
                "job": In(stream.Signature(ScaleOrder())),
                "written": In(scales),
                "streamed": In(scales),
                "o": Out(scales),
                "bad_scale": Out(1),
                "scale_source": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.jobs = jobs = StreamFifo(ScaleOrder(), self.depth)
        connect(m, flipped(self.job), jobs.i)
        order: Any = jobs.o.payload

        # The whole packet comes from the source of its first scale.
        inside = Signal()
        source = Signal()  # 1: registers
        chosen = Signal()  # 1: registers
        either = Signal()
        transfer = Signal()
        ends = Signal()
        m.d.comb += [
            either.eq(order.source == ScaleSource.EITHER),
            chosen.eq(Mux(inside, source, Mux(either, self.written.valid, order.source == ScaleSource.REGISTERS))),
            self.o.valid.eq(jobs.o.valid & Mux(chosen, self.written.valid, self.streamed.valid)),
            self.o.payload.eq(Mux(chosen, self.written.payload.as_value(), self.streamed.payload.as_value())),
            self.written.ready.eq(jobs.o.valid & chosen & self.o.ready),
            self.streamed.ready.eq(jobs.o.valid & ~chosen & self.o.ready),
            transfer.eq(self.o.valid & self.o.ready),
            ends.eq(transfer & self.o.payload["last"]),
            jobs.o.ready.eq(ends),
        ]
        with m.If(transfer):
            m.d.sync += [inside.eq(~self.o.payload["last"]), source.eq(chosen)]

        bad = Signal()
        given = Mux(chosen, self.written.payload.value, self.streamed.payload.value)
        m.d.comb += [bad.eq(~self._in_range(given, order.affine)), self.bad_scale.eq(transfer & bad)]
        with m.If(bad):
            m.d.comb += self.o.payload["value"].eq(ONE)

        # A job that is at the head in the cycle after a packet's end was started before the packet had passed.
        passed = Signal()
        overlapped = Signal()
        overlaps = Signal()
        starts = self.job.valid & self.job.ready
        names = Signal()
        named = Signal()
        m.d.comb += [
            names.eq(self.job.payload.source != ScaleSource.EITHER),
            overlaps.eq(Mux(passed, jobs.o.valid, overlapped)),
            self.scale_source.eq(
                (starts & jobs.o.valid & (names != named)) | (transfer & ~inside & either & overlaps & (chosen != source))
            ),
        ]
        m.d.sync += [passed.eq(ends), overlapped.eq(overlaps)]
        with m.If(starts):
            m.d.sync += named.eq(names)
        return m

    def _in_range(self, value: Value, affine: Value) -> Value:
        """Return whether a float32 pattern is allowed for a job of this channel and is multiplied without losing bits.

        Both limits of the range are powers of two.
        """
        sign, exponent, fraction = value[-1], value[FP32_FRACTION_BITS:-1], value[:FP32_FRACTION_BITS]

        def within(of_affine: bool) -> Value:
            limits = scale_exponents(multiplier=self.channel is Channel.COMPRESS, affine=of_affine)
            least, most = (FP32_BIAS + limit for limit in limits)
            return (exponent >= least) & ((exponent < most) | ((exponent == most) & ~fraction.any()))

        lost = FP32_FRACTION_BITS + 1 - self.bits
        beyond = fraction[:lost].any() if lost else Const(0)
        return ~sign & ~beyond & Mux(affine, within(True), within(False))

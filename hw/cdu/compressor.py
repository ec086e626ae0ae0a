"""The compressing half of a CDU (JPEG-ACT, "CDU")."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig

from cdu.alignment_buffer import AlignmentBuffer, Direction
from cdu.bytes import Word
from cdu.dct import Dct
from cdu.job import Job, take_jobs
from cdu.payload_encoder import PayloadEncoder
from cdu.scale_feeder import ScaleFeeder
from cdu.sfpr import FP32_BITS, Sfpr
from cdu.shift_quantizer import ShiftQuantizer
from cdu.streams import BEATS_BITS, float_beat


class Compressor(wiring.Component):
    """SFPR, alignment buffer, DCT, shift quantiser and coder: a tensor's values in, its payload out.

    Parameters
    ----------
    config
        All parameters are used.

    Ports
    -----
    job
        Stream of job descriptors (:class:`cdu.job.Job`), one per tensor; taken when the job before has left the unit.
    scales
        Stream of multipliers k (float32 patterns), one per channel in the order of the rows, repeated for every sample of the
        batch, channels that begin in the padding included. Not used in mode brc.
    i
        Stream of rows of 8 values as bit patterns: ``beats`` per job, padding (zeros) included, in the order of
        ``docs/bitstream.md``.
    o
        Stream of words of 16 bytes: the payload, ``last`` with the final word of a job.
    nonfinite
        An infinite value or NaN came in this job; cleared when the next one begins.

    Rate: 8 values per cycle in every mode, for any content, with no bubble between blocks.
    """

    job: stream.Interface
    scales: stream.Interface
    i: stream.Interface
    o: stream.Interface
    nonfinite: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__(
            {
                "job": In(stream.Signature(Job())),
                "scales": In(stream.Signature(FP32_BITS)),
                "i": In(stream.Signature(float_beat(config.dtype))),
                "o": Out(stream.Signature(Word())),
                "nonfinite": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        modes = self.config.built_modes
        m.submodules.feeder = feeder = ScaleFeeder()
        m.submodules.sfpr = sfpr = Sfpr(self.config)
        m.submodules.encoder = encoder = PayloadEncoder(self.config)

        # One job at a time: from its descriptor to its last word.
        job, begin = take_jobs(m, self.job, self.o.valid & self.o.ready & self.o.payload["last"])

        # Values and their scales, which also count the beats of the job, to int8
        connect(m, flipped(self.scales), feeder.scales)
        feeder.describe(m, job, begin)
        m.d.comb += [
            sfpr.i.valid.eq(self.i.valid & feeder.o.valid),
            self.i.ready.eq(sfpr.i.ready & feeder.o.valid),
            feeder.o.ready.eq(sfpr.i.ready & self.i.valid),
            sfpr.i.payload["values"].eq(self.i.payload),
            sfpr.i.payload.scale.eq(feeder.o.payload),
            sfpr.i.payload.binary.eq(job.mode == Mode.BRC),
        ]
        with m.If(sfpr.o.valid & sfpr.o.ready & sfpr.o.payload.nonfinite):
            m.d.sync += self.nonfinite.eq(1)

        # Directly, or through the transform, to the coder
        uncoded = Signal(BEATS_BITS)
        m.d.comb += [encoder.mode.eq(job.mode), encoder.i.payload["last"].eq(uncoded == 1)]
        with m.Switch(job.mode):
            if Mode.JPEG_ACT in modes:
                m.submodules.alignment = alignment = AlignmentBuffer(Direction.TO_BLOCKS)
                m.submodules.dct = dct = Dct(self.config)
                m.submodules.quantizer = quantizer = ShiftQuantizer(self.config)
                connect(m, alignment.o, dct.i)
                connect(m, dct.o, quantizer.i)
                m.d.comb += [
                    alignment.i.payload.eq(sfpr.o.payload["values"]),
                    alignment.row_beats.eq(job.row_beats),
                    quantizer.shifts.eq(job.shifts),
                ]
                with m.Case(Mode.JPEG_ACT):
                    m.d.comb += [
                        alignment.i.valid.eq(sfpr.o.valid),
                        sfpr.o.ready.eq(alignment.i.ready),
                        encoder.i.valid.eq(quantizer.o.valid),
                        quantizer.o.ready.eq(encoder.i.ready),
                        encoder.i.payload["values"].eq(quantizer.o.payload),
                    ]
            with m.Default():
                m.d.comb += [
                    encoder.i.valid.eq(sfpr.o.valid),
                    sfpr.o.ready.eq(encoder.i.ready),
                    encoder.i.payload["values"].eq(sfpr.o.payload["values"]),
                ]
        with m.If(encoder.i.valid & encoder.i.ready):
            m.d.sync += uncoded.eq(uncoded - 1)
        connect(m, encoder.o, flipped(self.o))

        with m.If(begin):
            m.d.sync += [uncoded.eq(job.beats), self.nonfinite.eq(0)]
        return m

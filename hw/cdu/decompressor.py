"""The decompressing half of a CDU (JPEG-ACT, "CDU")."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig

from cdu.alignment_buffer import AlignmentBuffer, Direction
from cdu.bytes import Word
from cdu.idct import Idct
from cdu.inverse_sfpr import InverseSfpr
from cdu.job import Job, take_jobs
from cdu.payload_decoder import PayloadDecoder
from cdu.scale_feeder import ScaleFeeder
from cdu.sfpr import FP32_BITS
from cdu.shift_quantizer import InverseShiftQuantizer
from cdu.streams import BEATS_BITS, float_beat


class Decompressor(wiring.Component):
    """Decoder, inverse shift quantiser, inverse DCT, alignment buffer and inverse SFPR: a payload in, the values out.

    Parameters
    ----------
    config
        All parameters but ``scale_bits`` and ``rounding`` are used.

    Ports
    -----
    job
        Stream of job descriptors (:class:`cdu.job.Job`), one per tensor; taken when the job before has left the unit.
    scales
        Stream of reciprocals r (float32 patterns), one per channel as in :class:`cdu.compressor.Compressor`. Not used in mode
        brc, whose values are 1.0 and 0.0.
    i
        Stream of words of 16 bytes, the payload, ``last`` with the final word of a job.
    o
        Stream of rows of 8 values as bit patterns, ``beats`` per job, padding included, in the order of ``docs/bitstream.md``.
    truncated
        The payload of this job ended too early; zeros took the place of the missing bytes. Cleared by the next job.
    surplus
        The payload of this job was too long; the rest was thrown away. Cleared by the next job.

    Rate: 8 values per cycle in every mode, for any content, with no bubble between blocks; the packed side needs 8 + nnz bytes
    per block, at most 9 of the 16 bytes per cycle that its port carries.
    """

    job: stream.Interface
    scales: stream.Interface
    i: stream.Interface
    o: stream.Interface
    truncated: Signal
    surplus: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__(
            {
                "job": In(stream.Signature(Job())),
                "scales": In(stream.Signature(FP32_BITS)),
                "i": In(stream.Signature(Word())),
                "o": Out(stream.Signature(float_beat(config.dtype))),
                "truncated": Out(1),
                "surplus": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        modes = self.config.built_modes
        m.submodules.decoder = decoder = PayloadDecoder(self.config)
        m.submodules.feeder = feeder = ScaleFeeder()
        m.submodules.inverse_sfpr = inverse_sfpr = InverseSfpr(self.config)

        # One job at a time: from its descriptor until its last row has left and its last word has come.
        undelivered = Signal(BEATS_BITS)
        job, begin = take_jobs(m, self.job, (undelivered == 0) & decoder.idle)

        connect(m, flipped(self.i), decoder.i)
        m.d.comb += [
            decoder.start.eq(begin),
            decoder.mode.eq(job.mode),
            decoder.beats.eq(job.beats),
            self.truncated.eq(decoder.truncated),
            self.surplus.eq(decoder.surplus),
        ]

        # Directly, or through the inverse transform
        values = stream.Signature(inverse_sfpr.i.payload["values"].shape()).create(path=("values",))
        with m.Switch(job.mode):
            if Mode.JPEG_ACT in modes:
                m.submodules.quantizer = quantizer = InverseShiftQuantizer(self.config)
                m.submodules.idct = idct = Idct(self.config)
                m.submodules.alignment = alignment = AlignmentBuffer(Direction.TO_ROWS)
                connect(m, quantizer.o, idct.i)
                connect(m, idct.o, alignment.i)
                m.d.comb += [
                    quantizer.i.payload.eq(decoder.o.payload),
                    quantizer.shifts.eq(job.shifts),
                    alignment.row_beats.eq(job.row_beats),
                ]
                with m.Case(Mode.JPEG_ACT):
                    m.d.comb += [
                        quantizer.i.valid.eq(decoder.o.valid),
                        decoder.o.ready.eq(quantizer.i.ready),
                        values.valid.eq(alignment.o.valid),
                        alignment.o.ready.eq(values.ready),
                        values.payload.eq(alignment.o.payload),
                    ]
            with m.Default():
                m.d.comb += [
                    values.valid.eq(decoder.o.valid),
                    decoder.o.ready.eq(values.ready),
                    values.payload.eq(decoder.o.payload),
                ]

        # Values and their reciprocals, to floating point
        connect(m, flipped(self.scales), feeder.scales)
        feeder.describe(m, job, begin)
        m.d.comb += [
            inverse_sfpr.i.valid.eq(values.valid & feeder.o.valid),
            values.ready.eq(inverse_sfpr.i.ready & feeder.o.valid),
            feeder.o.ready.eq(inverse_sfpr.i.ready & values.valid),
            inverse_sfpr.i.payload["values"].eq(values.payload),
            inverse_sfpr.i.payload.scale.eq(feeder.o.payload),
        ]
        connect(m, inverse_sfpr.o, flipped(self.o))
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += undelivered.eq(undelivered - 1)
        with m.If(begin):
            m.d.sync += undelivered.eq(job.beats)
        return m

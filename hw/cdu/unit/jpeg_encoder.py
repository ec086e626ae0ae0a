"""Encoder of a grayscale scan of baseline JPEG: DCT, division and entropy coder (ITU-T T.81, F.1)."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig

from cdu.coding.entropy_encoder import EntropyEncoder
from cdu.coding.jpeg_words import WORD_BYTES, SampleRow
from cdu.parts.join import join_through
from cdu.parts.register_slice import sliced
from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.width_converter import Bytes
from cdu.quantizers.div_quantizer import DivisorTable, DivQuantizer
from cdu.transform.dct import Dct

#: Number of rows whose marks are kept while their values are in quantiser and transform: all that fit, with every register for
#: a short clock period, and one more.
ROWS_IN_TRANSFORM = 19


class JpegEncoder(wiring.Component):
    """Encode samples to the entropy-coded segments of JPEG-BASE, the part of a JPEG file between its headers and its end.

    Parameters
    ----------
    config
        ``const_bits``, ``pass1_bits`` and ``rounding``, which JPEG wants to be ``precision=ieee1180`` and ``half_away``,
        ``dct_stages``, and ``register_slices``, which ends the path of ``ready`` between quantiser and coder. ``sample_bits``
        is 8.

    Ports
    -----
    i
        Stream of :class:`~cdu.coding.jpeg_words.SampleRow`, top row of a block first, counted from reset: 8 are a block.
    o
        Stream of :class:`~cdu.parts.width_converter.Bytes`: the entropy-coded segment of each scan, full words except for its
        last one.
    divisors
        The table, constant while a scan passes, in the order of :data:`~cdu.quantizers.div_quantizer.DivisorTable`.

    A row per cycle as long as blocks have up to 8 symbols; of longer ones a block takes as many cycles as symbols, the end of
    a scan two more.
    """

    i: stream.Interface
    o: stream.Interface
    divisors: Any

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(SampleRow())),
                "o": Out(stream.Signature(Bytes(WORD_BYTES))),
                "divisors": In(DivisorTable),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dct = dct = Dct(self.config)
        m.submodules.quantizer = quantizer = DivQuantizer(self.config)
        m.submodules.coder = coder = EntropyEncoder(self.config)
        m.submodules.marks = marks = StreamFifo(data.StructLayout({"last": 1}), ROWS_IN_TRANSFORM)
        connect(m, dct.o, quantizer.i)
        m.d.comb += quantizer.divisors.eq(self.divisors)
        quantized = sliced(m, self.config, "quantized", quantizer.o)
        join_through(m, self.i, (dct.i, quantized), marks, coder.i)
        connect(m, coder.o, flipped(self.o))
        return m

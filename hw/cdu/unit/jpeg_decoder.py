"""Decoder of a grayscale scan of baseline JPEG to samples: entropy decoder, multiplication, inverse DCT (ITU-T T.81, F.2)."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig

from cdu.coding.entropy_decoder import EntropyDecoder
from cdu.coding.jpeg_words import WORD_BYTES, DecodedRow
from cdu.parts.join import join_through
from cdu.parts.register_slice import sliced
from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.width_converter import Bytes
from cdu.quantizers.div_quantizer import DivisorTable, InverseDivQuantizer
from cdu.transform.idct import Idct
from cdu.unit.jpeg_encoder import ROWS_IN_TRANSFORM


class JpegDecoder(wiring.Component):
    """Decode the segments of :class:`~cdu.unit.jpeg_encoder.JpegEncoder`, and any other bytes.

    Invalid segments are treated as by :class:`~cdu.coding.entropy_decoder.EntropyDecoder`: they give their blocks up to the
    error, then one with ``error``, whose samples are undefined.

    Parameters
    ----------
    config
        ``const_bits`` and ``pass1_bits``, which JPEG wants to be ``precision=ieee1180``, ``dct_stages``, and
        ``register_slices``, which ends the path of ``ready`` between decoder and multiplication. ``sample_bits`` is 8.

    Ports
    -----
    i
        Stream of :class:`~cdu.parts.width_converter.Bytes`: segments, full words except for the last one of a scan.
    o
        Stream of :class:`~cdu.coding.jpeg_words.DecodedRow`, 8 for a block, top row first.
    divisors
        The table, constant while a scan passes, in the order of :data:`~cdu.quantizers.div_quantizer.DivisorTable`.

    A row per cycle as long as blocks have up to 8 symbols. Of longer ones a block takes as many cycles as symbols, and up to 4
    more where it has few of them, for the inverse DCT lets a block go alone when its successor is late. A block leaves when
    the first symbol behind it has been decoded, or its scan has ended.
    """

    i: stream.Interface
    o: stream.Interface
    divisors: Any

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(Bytes(WORD_BYTES))),
                "o": Out(stream.Signature(DecodedRow())),
                "divisors": In(DivisorTable),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.decoder = decoder = EntropyDecoder(self.config)
        m.submodules.quantizer = quantizer = InverseDivQuantizer(self.config)
        m.submodules.idct = idct = Idct(self.config)
        m.submodules.marks = marks = StreamFifo(data.StructLayout({"last": 1, "error": 1}), ROWS_IN_TRANSFORM)
        connect(m, flipped(self.i), decoder.i)
        m.d.comb += quantizer.divisors.eq(self.divisors)
        connect(m, quantizer.o, idct.i)
        decoded = sliced(m, self.config, "decoded", decoder.o)
        join_through(m, decoded, (quantizer.i, idct.o), marks, self.o)
        return m

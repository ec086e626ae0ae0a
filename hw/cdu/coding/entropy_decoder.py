"""Decoder of a grayscale scan of baseline JPEG to columns of quantised coefficients (ITU-T T.81, F.2.2)."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig

from cdu.coding.byte_unstuffer import ByteUnstuffer
from cdu.coding.huffman_decoder import HuffmanDecoder
from cdu.coding.jpeg_words import PIECE_BYTES, WORD_BYTES, DecodedColumn
from cdu.coding.run_length_decoder import RunLengthDecoder
from cdu.parts.width_converter import Bytes, WidthConverter


class EntropyDecoder(wiring.Component):
    """Decode the segments of :class:`~cdu.coding.entropy_encoder.EntropyEncoder`, and any other bytes.

    An invalid segment gives its blocks up to the error, then a block with ``error``, which is the last one; the bytes up to
    the end of the segment are dropped. Errors are: a pattern that is no code, a run that leaves its block, ZRL before the end
    of a block, a DC coefficient out of range, a marker, an end within a block or with other bits than ones, and a segment
    without bytes.

    Ports
    -----
    i
        Stream of :class:`~cdu.parts.width_converter.Bytes`, full words except for the last one of a scan.
    o
        Stream of :class:`~cdu.coding.jpeg_words.DecodedColumn`, 8 for a block.

    A symbol per cycle as long as words have the bits that it takes, 26 at most of the 32 that come in a cycle where no byte is
    stuffed; so a block takes 8 cycles or as many as it has symbols, a scan a few more. A block leaves when the first symbol
    behind it has been decoded, or its scan has ended.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        super().__init__({"i": In(stream.Signature(Bytes(WORD_BYTES))), "o": Out(stream.Signature(DecodedColumn()))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.cutter = cutter = WidthConverter(WORD_BYTES, PIECE_BYTES)
        m.submodules.unstuffer = unstuffer = ByteUnstuffer(PIECE_BYTES)
        m.submodules.huffman = huffman = HuffmanDecoder()
        m.submodules.run_length = run_length = RunLengthDecoder()
        wiring.connect(m, wiring.flipped(self.i), cutter.i)
        wiring.connect(m, cutter.o, unstuffer.i)
        wiring.connect(m, unstuffer.o, huffman.i)
        wiring.connect(m, huffman.o, run_length.i)
        wiring.connect(m, run_length.o, wiring.flipped(self.o))
        return m

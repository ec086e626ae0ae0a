"""Columns of quantised coefficients to the entropy-coded segment of a grayscale scan of baseline JPEG (ITU-T T.81, F.1.2)."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig

from cdu.coding.byte_stuffer import ByteStuffer
from cdu.coding.huffman_encoder import HuffmanEncoder
from cdu.coding.jpeg_words import PIECE_BYTES, WORD_BYTES, CoefficientColumn
from cdu.coding.run_length_encoder import RunLengthEncoder
from cdu.parts.byte_packer import BytePacker
from cdu.parts.width_converter import Bytes


class EntropyEncoder(wiring.Component):
    """The coder of JPEG-BASE: zig-zag order, run lengths, Huffman codes of the standard tables (Annex K.3), byte stuffing.

    The difference of a DC coefficient is that to the block before in the scan, 0 before the first; a scan ends in a whole
    byte, filled with ones. There are no restart intervals.

    Ports
    -----
    i
        Stream of :class:`~cdu.coding.jpeg_words.CoefficientColumn`, counted from reset: 8 are a block. An AC coefficient is
        within 1023.
    o
        Stream of :class:`~cdu.parts.width_converter.Bytes`, full words except for the last one of a scan.

    A symbol per cycle, so that a block takes 8 cycles or as many as it has symbols, the end of a scan two more.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        super().__init__({"i": In(stream.Signature(CoefficientColumn())), "o": Out(stream.Signature(Bytes(WORD_BYTES)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.run_length = run_length = RunLengthEncoder()
        m.submodules.huffman = huffman = HuffmanEncoder()
        m.submodules.stuffer = stuffer = ByteStuffer(PIECE_BYTES)
        m.submodules.packer = packer = BytePacker(WORD_BYTES)
        wiring.connect(m, wiring.flipped(self.i), run_length.i)
        wiring.connect(m, run_length.o, huffman.i)
        wiring.connect(m, huffman.o, stuffer.i)
        wiring.connect(m, stuffer.o, packer.i)
        wiring.connect(m, packer.o, wiring.flipped(self.o))
        return m

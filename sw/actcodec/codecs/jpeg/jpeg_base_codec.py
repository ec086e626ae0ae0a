"""Codec of JPEG-BASE, the variant of JPEG-ACT before shift quantiser and ZVC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from cdu_spec import dqt as tables
from cdu_spec.config import CduConfig
from cdu_spec.dct import IEEE1180
from cdu_spec.geometry import LANES
from cdu_spec.jpeg import ZIGZAG
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import JPEG_BASE, Mode
from cdu_spec.rounding import Rounding
from cdu_spec.sfpr import PUBLISHED_S
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.job import Job, compression_job
from actcodec.backends.named import backend
from actcodec.codecs.codec import Codec, check_input, check_s, finite_maxima
from actcodec.codecs.compressed import Packed
from actcodec.codecs.jpeg.block_codec import BlockCodec
from actcodec.codecs.jpeg.jpeg_base_compressed import JpegBaseCompressed, sfpr_maps, sfpr_view
from actcodec.golden import blocks, entropy_encoder, jpeg_base
from actcodec.golden.entropy_encoder import HUFFMAN_KINDS, STANDARD_TABLES
from actcodec.golden.jpeg_base_stream import JpegBaseHeader
from actcodec.golden.sfpr import check_nonfinite_policy, scales_of


@dataclass
class JpegBaseCodec(BlockCodec, Codec):
    """Codec ``jpeg-base``: SFPR, 8x8 DCT, quantiser with divisors, run lengths and Huffman codes as in a JPEG.

    Takes (N, C, H, W); policies use it for the same tensors as jpeg-act. A CDU does its SFPR, and the blocks ``jpeg_encoder``
    and ``jpeg_decoder`` do the rest.

    Parameters
    ----------
    S, scale_bits, nonfinite
        As for :class:`~actcodec.codecs.codec.SfprCodec`.
    dqt
        As for :class:`~actcodec.codecs.codec.JpegActCodec`; the divisors themselves are used, not their powers of two.
    const_bits, pass1_bits
        Precision of the DCT, by default that of JPEG (:data:`~cdu_spec.dct.IEEE1180`).
    rounding
        Rounding of the quotients: ``half_away`` as in JPEG, or ``trunc`` as in the published code.
    huffman
        ``standard`` tables (ITU-T T.81, Annex K.3), or ``optimal`` ones for each tensor, which the stream then carries.
    backend
        Backend of SFPR and the entropy coder: ``torch``, ``native``, or an object derived from Backend.
    """

    S: float = PUBLISHED_S
    scale_bits: int = CduConfig.scale_bits
    nonfinite: str = "raise"
    backend: str | Backend = "torch"
    dqt: str | Sequence[int] = "optL"
    const_bits: int = IEEE1180.const_bits
    pass1_bits: int = IEEE1180.pass1_bits
    rounding: str = Rounding.HALF_AWAY.value
    huffman: str = STANDARD_TABLES

    name = JPEG_BASE
    centred = True

    def __post_init__(self) -> None:
        self._check_table()
        check_s(self.S)
        check_nonfinite_policy(self.nonfinite)
        if self.huffman not in HUFFMAN_KINDS:
            raise UserError(f"huffman = {self.huffman!r} is not allowed: use {' or '.join(HUFFMAN_KINDS)}")
        # CduConfig checks the limits of a unit, which are those of its golden model.
        precision = CduConfig(
            scale_bits=self.scale_bits, const_bits=self.const_bits, pass1_bits=self.pass1_bits, rounding=self.rounding
        )
        self._rounding = precision.rounding_mode
        self._backend = backend(self.backend)

    def compress(self, x: Tensor) -> JpegBaseCompressed:
        """Implement :class:`Codec`."""
        form = check_input(x)
        self._check_shape(x.shape)
        maps, view = sfpr_maps(x.detach().contiguous()), sfpr_view(x.shape)
        largest = finite_maxima(x, blocks.by_channel(maps, view), self.nonfinite, self._backend)
        k, r = self._backend.run(scales_of, largest, self.S, self.scale_bits, x.dtype)
        named = tables.divisors(self.table)
        divisors = tuple(named[index] for index in ZIGZAG)
        coefficients = self._coefficients(maps, view, compression_job(view, form, k), x.shape, divisors)
        huffman, segment = self._backend.run(entropy_encoder.encode, coefficients, self.huffman)
        precision = (self.const_bits, self.pass1_bits)
        header = JpegBaseHeader(form, tuple(x.shape), segment.numel(), *precision, divisors, huffman)
        return JpegBaseCompressed(header, r, segment)

    def _coefficients(self, maps: Tensor, view: MatrixView, job: Job, shape: Sequence[int], divisors: Sequence[int]) -> Tensor:
        """Return the quantised coefficients, int16 (blocks, 64), of a tensor of this shape that SFPR sees as maps."""
        quantized = self._backend.compress_tensor(maps, view, job)
        samples = quantized.view(torch.int8).view(view.rows, view.row_beats * LANES)[:, : shape[2] * shape[3]]
        matrix = blocks.padded(samples, MatrixView.of(shape, Mode.JPEG_ACT))
        return jpeg_base.forward(matrix, divisors, self.const_bits, self.pass1_bits, self._rounding)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress(self._backend)

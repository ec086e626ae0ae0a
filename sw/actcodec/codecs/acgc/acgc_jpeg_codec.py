"""AC-GC's AutoJPEG: finds for every tensor the coarsest JPEG that keeps a given error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from cdu_tools.errors import UserError
from cdu_tools.texts import extents
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.acgc.cusz_codec import CuszCodec
from actcodec.codecs.acgc.error_bounded import ErrorBoundedCodec, along_channels, checked_error
from actcodec.codecs.acgc.level_map import load_level_map, roughness
from actcodec.codecs.codec import Codec, JpegActCodec, check_input
from actcodec.codecs.compressed import Packed
from actcodec.codecs.jpeg.jpeg_base_codec import JpegBaseCodec
from actcodec.golden.block_shapes import has_blocks
from actcodec.golden.blocks import by_channel
from actcodec.golden.entropy_encoder import HUFFMAN_KINDS, OPTIMAL_TABLES
from actcodec.golden.sfpr import scales
from actcodec.golden.shapes import channel_boxes

#: Codecs that may follow SFPR and the DCT.
CODERS = (JpegBaseCodec.name, JpegActCodec.name)

#: Largest magnitude of the option ``deviations``.
_MOST_DEVIATIONS = 100


@dataclass
class AcgcJpegCodec(ErrorBoundedCodec):
    """Codec ``acgc-jpeg``: jpeg-base or jpeg-act with the coarsest image table that keeps an error (AC-GC: AutoJPEG).

    Takes (N, C, H, W) with H and W of 8 and more. The error of each table is predicted from the roughness of the channels
    (:mod:`actcodec.codecs.acgc.level_map`); if even the finest table's is too large, the finest is used. Since a tensor has one
    table, an error per channel must be kept in all channels with the same one.

    Parameters
    ----------
    coder
        ``jpeg-base`` (divisors, run lengths, Huffman codes), or ``jpeg-act`` (shifts, ZVC), whose finest table divides by 8:
        coefficients would saturate with smaller divisors.
    huffman
        Tables of jpeg-base: ``optimal`` ones for each tensor, or ``standard`` ones.
    deviations
        Standard deviations of the relation that are added to a predicted error. With 0, up to half the tensors may exceed the
        allowed error; with 1, one in six.
    verify
        Decode, and use finer tables until the error is certainly kept; codec ``cusz`` takes tensors for which no table keeps
        it.
    levels
        Path of a file that ``cdu fit-levels`` wrote. None: the shipped one.
    backend
        ``torch``, ``native``, or an object derived from Backend; for jpeg-base it computes SFPR and the entropy coder.
    """

    coder: str = JpegBaseCodec.name
    huffman: str = OPTIMAL_TABLES
    deviations: float = 1.0
    verify: bool = False
    levels: str | None = None
    backend: str | Backend = "torch"

    name = "acgc-jpeg"

    def __post_init__(self) -> None:
        if self.coder not in CODERS:
            raise UserError(f"coder = {self.coder!r} is not allowed: use {' or '.join(CODERS)}")
        if self.huffman not in HUFFMAN_KINDS:
            raise UserError(f"huffman = {self.huffman!r} is not allowed: use {' or '.join(HUFFMAN_KINDS)}")
        if not isinstance(self.deviations, (int, float)) or not abs(self.deviations) <= _MOST_DEVIATIONS:
            allowed = f"use a number from {-_MOST_DEVIATIONS} to {_MOST_DEVIATIONS}"
            raise UserError(f"deviations = {self.deviations!r} is not allowed: {allowed}")
        if not isinstance(self.verify, bool):
            raise UserError(f"verify = {self.verify!r} is not allowed: use True or False")
        self._map = load_level_map(self.coder, self.levels)
        self._coders = [self._coder(quality) for quality in self._map.qualities]

    def _coder(self, quality: int) -> Codec:
        table = f"image{quality}"
        if self.coder == JpegActCodec.name:
            return JpegActCodec(S=self._map.S, dqt=table, backend=self.backend)
        return JpegBaseCodec(S=self._map.S, dqt=table, huffman=self.huffman, backend=self.backend)

    def takes(self, shape: Sequence[int]) -> bool:
        """Return whether ``shape`` is (N, C, H, W) with H and W of 8 and more."""
        return takes(shape)

    def compress_within(self, x: Tensor, error: Tensor) -> Packed:
        """Implement :class:`ErrorBoundedCodec`. Without ``verify`` the error is a prediction."""
        check_input(x)
        if not takes(x.shape):
            raise UserError(f"{self.name} does not take shape {extents(x.shape)}: use sfpr, or (N, C, H, W) with H and W >= 8")
        error = checked_error(x, error)
        place = self._coarsest(self.predicted(x), error)
        if not self.verify:
            return self._coders[place].compress(x)
        for coder in self._coders[place:]:
            packed = coder.compress(x)
            if bool((rms_error(x, packed.decompress(), len(error)) <= error).all()):
                return packed
        return CuszCodec().compress_within(x, error)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`~actcodec.codecs.codec.Codec`."""
        return compressed.decompress(self.backend)

    def predicted(self, x: Tensor) -> Tensor:
        """Return the predicted RMS error of each channel at each level, coarsest first, float64 (levels, channels).

        The prediction includes ``deviations``. Raises UserError for NaN and infinity.
        """
        view = MatrixView.of(x.shape, Mode.JPEG_ACT)
        k, r = scales(by_channel(x.detach(), view), self._map.S, CduConfig.scale_bits)
        features, present = [], []
        for _, channels, _ in channel_boxes(tuple(x.shape), x.device):
            samples = x.detach()[:, channels].to(torch.float32) * along_channels(k[channels], x.ndim)
            features.append(roughness(samples))
            present.append(samples.abs().amax((0, 2, 3)) > 0)
        return self._map.predicted(torch.cat(features, 1), self.deviations) * (r * torch.cat(present))

    def _coarsest(self, predicted: Tensor, error: Tensor) -> int:
        """Return the number of the first level that keeps the error, or of the last one."""
        if len(error) == 1:
            predicted = predicted.square().mean(1, keepdim=True).sqrt()
        kept = (predicted <= error).all(1).tolist()
        return kept.index(True) if True in kept else len(kept) - 1


def takes(shape: Sequence[int]) -> bool:
    """Return whether the relation covers ``shape``: (N, C, H, W) with H and W of 8 and more."""
    return has_blocks(shape) and shape[2] >= BLOCK_SIDE


def rms_error(x: Tensor, restored: Tensor, count: int) -> Tensor:
    """Return the RMS error over (N, C, H, W), or over each of ``count`` channels, float64 (count,)."""
    axes = (0, 1, 2, 3) if count == 1 else (0, 2, 3)
    return (restored.to(torch.float64) - x.detach().to(torch.float64)).square_().mean(axes).sqrt_().view(-1)

"""Tensors compressed by JPEG-BASE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from cdu_spec.bitstream import Header
from cdu_spec.geometry import LANES
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import JPEG_BASE, Mode
from torch import Tensor
from torch.nn.functional import pad

from actcodec.backends.backend import Backend
from actcodec.backends.job import decompression_job
from actcodec.backends.named import backend as backend_of
from actcodec.golden import blocks, entropy_decoder, jpeg_base, jpeg_base_stream
from actcodec.golden.jpeg_base_stream import JpegBaseHeader


@dataclass(frozen=True, eq=False)
class JpegBaseCompressed:
    """Compressed tensor in memory; reciprocals and payload stay on the tensor's device."""

    header: JpegBaseHeader
    reciprocals: Tensor  #: float32 (channels,)
    payload: Tensor  #: uint8 (header.payload_bytes,): the entropy-coded segment

    @property
    def codec(self) -> str:
        """Return the name of the codec that made the tensor."""
        return JPEG_BASE

    @property
    def nbytes(self) -> int:
        """Return the length of the serialised stream: header, tables, scales, payload, checksum."""
        return self.header.stream_bytes

    def to_bytes(self) -> bytes:
        """Return the serialised stream (docs/reference/bitstream.md, section 8)."""
        return b"".join(self.parts())

    def parts(self) -> Iterator[memoryview]:
        """Yield the serialised stream in pieces."""
        return jpeg_base_stream.serialise(self.header, self.reciprocals, self.payload)

    def coefficients(self, backend: str | Backend = "torch") -> Tensor:
        """Return the quantised blocks, int16 (blocks, 64) in zig-zag order; raise BitstreamError for a corrupted payload."""
        return backend_of(backend).run(entropy_decoder.decode, self.payload, self.header.view.blocks, self.header.tables)

    def samples(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed values of SFPR, int8 (N*C*H, W); raise BitstreamError for a corrupted payload."""
        header = self.header
        restored = jpeg_base.inverse(self.coefficients(backend), header.divisors, header.const_bits, header.pass1_bits)
        return blocks.untiled(restored, header.view)[: header.view.rows, : header.view.columns]

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed tensor, from nothing but this stream; ``backend`` decodes the segment and inverts SFPR.

        Raises BitstreamError when the payload is corrupted.
        """
        shape = self.header.shape
        view = sfpr_view(shape)
        values = blocks.padded(sfpr_maps(self.samples(backend).view(shape)), view).reshape(-1).view(torch.uint8)
        header = Header(Mode.SFPR, self.header.dtype, (*shape[:2], view.columns), values.numel())
        job = decompression_job(header, (), self.reciprocals)
        maps = backend_of(backend).decompress_tensor(values, view, job, header.shape)
        return maps[..., : shape[2] * shape[3]].reshape(shape)


def sfpr_view(shape: Sequence[int]) -> MatrixView:
    """Return the view in which SFPR sees :func:`sfpr_maps` of a tensor (N, C, H, W): one scale per channel."""
    n, c, h, w = shape
    return MatrixView.of((n, c, max(h * w, LANES)), Mode.SFPR)


def sfpr_maps(x: Tensor) -> Tensor:
    """Return (N, C, H, W) as (N, C, values), maps padded with zeros to 8 values, so that channels do not share a scale."""
    maps = x.flatten(2)
    return maps if maps.shape[2] >= LANES else pad(maps, (0, LANES - maps.shape[2]))

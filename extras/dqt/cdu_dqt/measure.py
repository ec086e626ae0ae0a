"""Measure the rate and the error of tables over the full path of a codec.

Bytes and reconstruction are those of codecs jpeg-act, jpeg-gmc and jpeg-base, to the last bit; SFPR and the
transform, which no table changes, are computed once for many tables, and codes are not decoded again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from actcodec.backends.job import DTYPES
from actcodec.golden import blocks
from actcodec.golden.dct import idct
from actcodec.golden.entropy_encoder import encode
from actcodec.golden.jpeg_base_stream import JpegBaseHeader
from actcodec.golden.sfpr import inverse_sfpr, reciprocals
from cdu_spec.bitstream import Header
from cdu_spec.coding import ShiftCoding
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.jpeg import ZIGZAG
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import MASK_BYTES, Coder, Dtype, Mode
from cdu_spec.sfpr import SFPR_RECIPROCAL_BITS
from torch import Tensor

from cdu_dqt.coefficients import coefficients, quantized_matrix
from cdu_dqt.gmc_search import gmc_lengths
from cdu_dqt.quantizer import SHIFT, TableQuantizer

_FORMATS = {dtype: form for form, dtype in DTYPES.items()}


@dataclass(frozen=True)
class RatePoint:
    """One table on some activations."""

    bytes_per_value: float  #: stream bytes, headers and scales included
    relative_error: float  #: ||x - x'|| / ||x||, mean over the tensors (1 for a tensor of zeros that is not restored)
    squared_error: float  #: mean of (v - v')**2 of SFPR's integers v, padding included

    def to_dict(self) -> dict[str, float]:
        """Plain values."""
        return {
            "bytes_per_value": self.bytes_per_value,
            "relative_error": self.relative_error,
            "squared_error": self.squared_error,
        }


@dataclass(frozen=True, eq=False)
class _Transformed:
    x: Tensor
    view: MatrixView
    form: Dtype
    integers: Tensor  #: int8 (8 * strips, 8 * n)
    reciprocals: Tensor  #: float32 (C,)
    coefficients: Tensor  #: int16 (blocks, 64)


class RateBench:
    """Activations on which any number of tables is measured, after the DCT of the default unit, for any quantiser.

    Parameters
    ----------
    tensors
        As in :func:`cdu_dqt.coefficients.coefficients`.
    S
        Scale of SFPR.
    """

    def __init__(self, tensors: Sequence[Tensor], S: float) -> None:  # noqa: N803
        self._all = [_transformed(x, S) for x in tensors]

    def __call__(self, quantizer: TableQuantizer, table: str | Sequence[int]) -> RatePoint:
        """Measure a table given by name or 64 divisors; kind ``shift`` uses its powers of two. ValueError if it is invalid."""
        steps = quantizer.steps_of(table)
        rungs = quantizer.rungs(steps)
        size, error, squared, padded = 0, 0.0, 0.0, 0
        for tensor in self._all:
            codes, restored = quantizer.quantize(tensor.coefficients, rungs)
            size += _stream_bytes(tensor, quantizer, steps, codes)
            integers = _inverse(restored, tensor.view)
            squared += float((integers.double() - tensor.integers.double()).square().sum())
            padded += integers.numel()
            error += _relative_error(tensor, integers)
        values = sum(tensor.x.numel() for tensor in self._all)
        return RatePoint(size / values, error / len(self._all), squared / padded)


def _transformed(x: Tensor, S: float) -> _Transformed:  # noqa: N803
    integers, k = quantized_matrix(x, S)
    view = MatrixView.of(x.shape, Mode.JPEG_ACT)
    return _Transformed(x, view, _FORMATS[x.dtype], integers, reciprocals(k, SFPR_RECIPROCAL_BITS), coefficients([x], S))


def _stream_bytes(tensor: _Transformed, quantizer: TableQuantizer, steps: Sequence[int], codes: Tensor) -> int:
    config = CduConfig()
    precision = (config.const_bits, config.pass1_bits)
    shape = tuple(tensor.x.shape)
    if quantizer.kind == SHIFT:
        if quantizer.coder is Coder.GMC:
            payload = int(gmc_lengths(codes).sum())
        else:
            payload = MASK_BYTES * len(codes) + int(codes.count_nonzero())
        coded = Header(
            Mode.JPEG_ACT, tensor.form, shape, payload, *precision, how=ShiftCoding(quantizer.coder, quantizer.point)
        )
        return coded.stream_bytes
    tables, segment = encode(codes[:, list(ZIGZAG)])
    in_order = tuple(steps[place] for place in ZIGZAG)
    return JpegBaseHeader(tensor.form, shape, segment.numel(), *precision, in_order, tables).stream_bytes


def _inverse(restored: Tensor, view: MatrixView) -> Tensor:
    """Return the padded matrix of SFPR's integers, int8."""
    config = CduConfig()
    samples = idct(restored.view(-1, BLOCK_SIDE, BLOCK_SIDE), config.const_bits, config.pass1_bits)
    return blocks.untiled(samples.view(-1, BLOCK_VALUES), view)


def _relative_error(tensor: _Transformed, integers: Tensor) -> float:
    values = blocks.by_channel(blocks.unpadded(integers, tensor.view, tensor.x.numel()), tensor.view)
    found = inverse_sfpr(values, tensor.reciprocals[:, None]).to(tensor.x.dtype)
    exact = blocks.by_channel(tensor.x.contiguous(), tensor.view).double()
    norm, error = (float(torch.linalg.vector_norm(part)) for part in (exact, exact - found.double()))
    return error / norm if norm else float(error > 0)

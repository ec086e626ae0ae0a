"""SFPR: 8 bits with a scale for each channel, axis 1, as :mod:`actcodec.golden.sfpr` defines it, with S = 1."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, frexp, ldexp, log2
from typing import ClassVar

import torch
from cdu_spec.config import CduConfig
from cdu_spec.sfpr import SCALE_EXPONENT_LIMIT, SCALE_UNIT, SFPR_RECIPROCAL_BITS, VALUE_MAX, VALUE_MIN
from torch import Tensor

from actcodec.graph.format import FLOATS, Format
from actcodec.graph.layout import Layout, Size, is_dense, layout_of

_CHANNELS = 1
_SINGLE_BITS, _DOUBLE_BITS = 24, 53


@dataclass(frozen=True)
class Sfpr(Format):
    """``sfpr``: float32, bfloat16 or float16, dense, of rank 2 or more. A channel with NaN or infinity comes back as NaN.

    Multipliers have the significant bits that the codec of this name gives them. Products are exact, in float64 where they have
    to be: only so is the golden model's code found near half a step.
    """

    name: ClassVar[str] = "sfpr"  # type: ignore[misc]

    def fits(self, value: Tensor) -> bool:
        """Implement :class:`Format`."""
        return value.dtype in FLOATS and value.dim() > _CHANNELS and is_dense(value)

    def pack(self, x: Tensor) -> tuple[Tensor, ...]:
        """Codes, int8 in memory order; reciprocals of multipliers, float32, of the same rank, of size 1 on all axes but one."""
        layout = layout_of(x)
        values = layout.split(x, 0, ())
        shared = [place for place, axis in enumerate(layout.order) if axis != _CHANNELS]
        greatest = values.to(torch.float32).abs().amax(shared, keepdim=True)
        multipliers, reciprocals = _scales(greatest, x.dtype)
        exact = torch.float64 if _significant_bits(x.dtype) + CduConfig.scale_bits > _SINGLE_BITS else torch.float32
        codes = (values.to(exact) * multipliers.to(exact)).round().clamp(VALUE_MIN, VALUE_MAX)
        return codes.to(torch.int8), torch.where(greatest.isfinite(), reciprocals, torch.nan)

    def unpack(self, parts: tuple[Tensor, ...], value: Layout) -> Tensor:
        """Implement :class:`Format`."""
        codes, reciprocals = parts
        return value.join((codes.to(torch.float32) * reciprocals).to(value.dtype), 0, 0)

    def nbytes(self, value: Tensor) -> Size:
        """Implement :class:`Format`."""
        return value.numel() + value.shape[_CHANNELS] * torch.float32.itemsize


def _scales(greatest: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Multipliers and reciprocals of greatest magnitudes, float32, as :func:`actcodec.golden.sfpr.scales_of` has them."""
    exact = torch.where(greatest > 0, SCALE_UNIT / greatest.to(torch.float64), float(SCALE_UNIT))
    multipliers = _rounded(exact.clamp(2.0**-SCALE_EXPONENT_LIMIT, 2.0**SCALE_EXPONENT_LIMIT), CduConfig.scale_bits)
    reciprocals = _rounded(multipliers.reciprocal(), SFPR_RECIPROCAL_BITS)
    # Rounding may bring the code of the largest finite number beyond it.
    limit = torch.finfo(dtype).max / SCALE_UNIT
    beyond = ((greatest * multipliers).round() >= VALUE_MAX) & (reciprocals > limit)
    return multipliers.to(torch.float32), torch.where(beyond, _cut(limit), reciprocals).to(torch.float32)


def _significant_bits(dtype: torch.dtype) -> int:
    return 1 - int(log2(torch.finfo(dtype).eps))


def _rounded(exact: Tensor, bits: int) -> Tensor:
    """Positive float64 numbers with so many significant bits, ties to even."""
    dropped = _DOUBLE_BITS - bits
    patterns = exact.view(torch.int64)
    return (patterns + (patterns >> dropped & 1) + ((1 << (dropped - 1)) - 1) >> dropped << dropped).view(torch.float64)


def _cut(limit: float) -> float:
    """Return a number with the significant bits of reciprocals, toward zero, and no more than their greatest one."""
    mantissa, exponent = frexp(min(limit, 2.0**SCALE_EXPONENT_LIMIT))
    return ldexp(floor(ldexp(mantissa, SFPR_RECIPROCAL_BITS)), exponent - SFPR_RECIPROCAL_BITS)

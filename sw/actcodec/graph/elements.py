"""Elements of MX and NVFP4, as :mod:`actcodec.golden.mx` has them, in operations of 32-bit patterns that can be fused."""

from __future__ import annotations

import torch
from cdu_spec.mx import BlockFormat
from torch import Tensor

FRACTION, BIAS, INFINITY, MAGNITUDE = 23, 127, 0x7F800000, 0x7FFFFFFF
_SMALLEST_NORMAL = torch.finfo(torch.float32).smallest_normal


def power_of_two(exponents: Tensor) -> Tensor:
    """float32 of int32 -127 to 127; the smallest one is subnormal."""
    return (
        torch.where(exponents < 1 - BIAS, 1 << (FRACTION - 1), (exponents + BIAS) << FRACTION)
        .to(torch.int32)
        .view(torch.float32)
    )


def flushed(values: Tensor) -> Tensor:
    """float32 with zeros of the same sign for subnormal numbers; NaN stays NaN."""
    return values * (values.abs() >= _SMALLEST_NORMAL)


def element_codes(scaled: Tensor, kind: BlockFormat) -> Tensor:
    """Return codes of scaled float32 values, int32: to nearest, ties to even, saturated. Those of NaN are any number."""
    if kind.is_integer:
        return (scaled * 2.0**kind.fraction_bits).round().clamp(-kind.greatest, kind.greatest).to(torch.int32)
    patterns = scaled.view(torch.int32)
    magnitudes = patterns & MAGNITUDE
    dropped = FRACTION - kind.fraction_bits
    # Half a step less one, and one more where the code below is odd; a carry runs into the exponent as it must.
    normal = (magnitudes >> dropped & 1) + magnitudes + ((1 << (dropped - 1)) - 1) >> dropped
    normal = (normal - (BIAS - _bias(kind) << kind.fraction_bits)).clamp_max(kind.greatest)
    # Equal steps are the greater code up to the smallest normal number, at which they stop.
    steps = (scaled.abs() * (1 / _step(kind))).clamp_max(1 << kind.fraction_bits).round().to(torch.int32)
    sign = 1 << (kind.bits - 1)
    return torch.maximum(normal, steps) | (patterns >> (32 - kind.bits) & sign)


def element_values(codes: Tensor, kind: BlockFormat) -> Tensor:
    """Return the numbers of int32 codes, float32; integers have signs, other codes only as many bits as they need."""
    if kind.is_integer:
        return codes.to(torch.float32) * 2.0**-kind.fraction_bits
    sign = 1 << (kind.bits - 1)
    magnitudes = codes & (sign - 1)
    normal = (magnitudes << (FRACTION - kind.fraction_bits)) + (BIAS - _bias(kind) << FRACTION)
    subnormal = magnitudes.to(torch.float32) * _step(kind)
    values = torch.where(magnitudes < 1 << kind.fraction_bits, subnormal, normal.view(torch.float32))
    return (values.view(torch.int32) | (codes & sign) << (32 - kind.bits)).view(torch.float32)


def greatest_number(kind: BlockFormat) -> float:
    """Return the greatest number of elements that are no integers."""
    return 2.0**kind.emax * (1 + kind.greatest_fraction / (1 << kind.fraction_bits))


def _bias(kind: BlockFormat) -> int:
    return 1 - kind.emin


def _step(kind: BlockFormat) -> float:
    """Return the smallest positive number."""
    return 2.0 ** (kind.emin - kind.fraction_bits)

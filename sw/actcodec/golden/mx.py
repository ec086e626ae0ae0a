"""MX: blocks of 32 values with a power of two as their scale (OCP Microscaling Formats v1.0, sections 5 and 6.3).

The specification leaves NaN and infinity open. Here a NaN makes its block NaN, with all codes zero; infinity becomes the
greatest number, with the scale of its exponent field (with ``rceil`` the greatest scale). Integers are symmetric: -128 is
decoded, and never made. Subnormal numbers of float32, below 1.2e-38, count as zero and are decoded as zero, so that hardware
needs no shifters for them.
"""

from __future__ import annotations

from functools import cache

import torch
from cdu_spec.bitstream import BitstreamError
from cdu_spec.mx import SCALE_BIAS, SCALE_BYTES, SCALE_MOST, SCALE_NAN, BlockFormat, ScaleRule
from torch import Tensor

from actcodec.golden.checks import require
from actcodec.golden.codes import pack_codes, unpack_codes
from actcodec.golden.minifloat import Minifloat

_FRACTION, _INFINITY = 23, 0x7F800000


def encode(values: Tensor, kind: BlockFormat, rule: ScaleRule) -> Tensor:
    """Encode float32 (blocks, 32) to blocks as bytes, uint8 (blocks, kind.block_bytes)."""
    require("values", values, (torch.float32,), (kind.values,))
    values = _flushed(values)
    scales = scale_bytes((values.view(torch.int32) & 0x7FFFFFFF).amax(1), kind, rule)
    codes = element_codes(values * power_of_two(SCALE_BIAS - scales)[:, None], kind)
    codes.masked_fill_((scales == SCALE_NAN)[:, None], 0)
    return with_scales(scales.to(torch.uint8), codes, kind)


def decode(blocks: Tensor, kind: BlockFormat) -> Tensor:
    """Decode uint8 (blocks, kind.block_bytes) to float32 (blocks, 32), as exact products.

    Products beyond float32 become infinite, subnormal ones zero; every NaN is 0x7FC00000.
    """
    scales, codes = without_scales(blocks, kind)
    exponents = scales.to(torch.int32) - SCALE_BIAS
    factors = power_of_two(exponents).masked_fill_(scales == SCALE_NAN, torch.nan)
    return canonical_(_flushed(numbers_of(codes, kind) * factors[:, None]))


def _flushed(values: Tensor) -> Tensor:
    """Replace subnormal float32 numbers by zeros of the same sign; NaN stays NaN."""
    return values * (values.abs() >= torch.finfo(torch.float32).smallest_normal)


def scale_bytes(greatest: Tensor, kind: BlockFormat, rule: ScaleRule) -> Tensor:
    """Return E8M0 bytes, int32, of the bit patterns of the greatest magnitudes, int32; patterns of NaN are the greatest."""
    exponents = greatest >> _FRACTION
    scales = exponents - kind.emax
    if rule is ScaleRule.RCEIL:
        limit = kind.greatest_fraction << (_FRACTION - kind.fraction_bits)
        scales += greatest & ((1 << _FRACTION) - 1) > limit
        scales.masked_fill_(greatest == _INFINITY, SCALE_MOST)
    return scales.clamp_(0, SCALE_MOST).masked_fill_(greatest > _INFINITY, SCALE_NAN)


def power_of_two(exponents: Tensor) -> Tensor:
    """Return powers of two, float32, of int32 exponents -127 to 127; the smallest power is subnormal."""
    patterns = torch.where(exponents < 1 - SCALE_BIAS, 1 << (_FRACTION - 1), (exponents + SCALE_BIAS) << _FRACTION)
    return patterns.to(torch.int32).view(torch.float32)


def element_codes(scaled: Tensor, kind: BlockFormat) -> Tensor:
    """Return codes of scaled values, float32 (blocks, values) to uint8: rounded to nearest, ties to even, saturated."""
    if kind.is_integer:
        steps = (scaled * 2.0**kind.fraction_bits).nan_to_num_(0.0).round_().clamp_(-kind.greatest, kind.greatest)
        return steps.to(torch.int8).view(torch.uint8)
    return minifloat(kind).encode(scaled).to(torch.uint8)


def numbers_of(codes: Tensor, kind: BlockFormat) -> Tensor:
    """Return the numbers of codes, uint8 (...) to float32 (...)."""
    return numbers(kind).to(codes.device).index_select(0, codes.reshape(-1).to(torch.int32)).view(codes.shape)


@cache
def numbers(kind: BlockFormat) -> Tensor:
    """Return the number of each code, float32 (2**bits,), infinity and NaN included."""
    codes = torch.arange(1 << kind.bits, dtype=torch.int32)
    if kind.is_integer:
        return codes.to(torch.int8).to(torch.float32) * 2.0**-kind.fraction_bits
    element = minifloat(kind)
    magnitudes = codes & (element.magnitudes - 1)
    table = element.decode(codes)
    table[magnitudes > kind.greatest] = torch.nan
    if kind.has_infinity:
        table[magnitudes == kind.greatest + 1] = torch.inf
        table[element.magnitudes + kind.greatest + 1] = -torch.inf
    return table


def minifloat(kind: BlockFormat) -> Minifloat:
    """Return the arithmetic of elements that are not integers."""
    return Minifloat(kind.exponent_bits, kind.fraction_bits, kind.greatest)


def with_scales(scales: Tensor, codes: Tensor, kind: BlockFormat) -> Tensor:
    """Join scales, uint8 (blocks,), and codes, uint8 (blocks, values), to uint8 (blocks, kind.block_bytes)."""
    bodies = pack_codes(codes.view(-1, 8), kind.bits).view(len(scales), -1)
    return torch.cat((scales[:, None], bodies), 1)


def without_scales(blocks: Tensor, kind: BlockFormat) -> tuple[Tensor, Tensor]:
    """Return scales and codes of blocks; inverse of :func:`with_scales`."""
    require("blocks", blocks, (torch.uint8,), (kind.block_bytes,))
    bodies = blocks[:, SCALE_BYTES:].reshape(-1, kind.bits)
    return blocks[:, 0], unpack_codes(bodies, kind.bits).view(len(blocks), kind.values)


def blocks_of(payload: Tensor, count: int, kind: BlockFormat) -> Tensor:
    """Return the payload, uint8 (n,), of ``count`` values as uint8 (blocks, kind.block_bytes); check its length."""
    blocks = -(-count // kind.values)
    if payload.numel() != blocks * kind.block_bytes:
        raise BitstreamError(f"corrupted stream: {payload.numel()} payload bytes are not {blocks} blocks of {kind.block_bytes}")
    return payload.view(blocks, kind.block_bytes)


def canonical_(values: Tensor) -> Tensor:
    """Make every NaN of floats the quiet one without a sign and with zeros behind, in place."""
    return values.masked_fill_(values.isnan(), torch.nan)

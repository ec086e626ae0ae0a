"""Number formats and SFPR, value by value, inside kernels."""

from __future__ import annotations

import triton
import triton.language as tl

#: Summand that leaves no bits for fractions: adding it rounds a double to a whole number, ties to even.
_SHIFTER = tl.constexpr(1.5 * 2.0**52)


@triton.jit
def number(x: tl.tensor) -> tl.tensor:
    """Return values as float32; int16 are the bits of bfloat16."""
    if x.dtype == tl.int16:
        return (x.to(tl.int32) << 16).to(tl.float32, bitcast=True)
    else:
        return x.to(tl.float32)


@triton.jit
def rounded(values: tl.tensor, dtype: tl.constexpr) -> tl.tensor:
    """Round float32 values, no NaN, to a format, to nearest with ties to even; int16 are the bits of bfloat16."""
    if dtype == tl.int16:
        bits = values.to(tl.int32, bitcast=True)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).to(tl.int16)
    else:
        return values.to(dtype)


@triton.jit
def product(x: tl.tensor, k: tl.tensor) -> tl.tensor:
    """Return ``x * k`` of float32 numbers in float64, exact: two significands of 24 bits fit 53. NaN becomes 0."""
    exact = x.to(tl.float64) * k.to(tl.float64)
    return tl.where(exact == exact, exact, 0.0)


@triton.jit
def whole(x: tl.tensor) -> tl.tensor:
    """Round float64 numbers below 2**51 half to even."""
    return (x + _SHIFTER) - _SHIFTER


@triton.jit
def saturated(x: tl.tensor, least: tl.constexpr, most: tl.constexpr) -> tl.tensor:
    """Limit float64 numbers, infinite ones too, to two bounds and round half to even, int32."""
    return whole(tl.minimum(tl.maximum(x, least), most)).to(tl.int32)


@triton.jit
def clamped(x: tl.tensor, least: tl.constexpr, most: tl.constexpr) -> tl.tensor:
    """Limit integers to two bounds."""
    return tl.minimum(tl.maximum(x, least), most)


@triton.jit
def magnitude_bits(values: tl.tensor) -> tl.tensor:
    """Return the bits of float32 numbers without the sign, int32, ordered as magnitudes, infinity and NaN above all."""
    return values.to(tl.int32, bitcast=True) & 0x7FFFFFFF

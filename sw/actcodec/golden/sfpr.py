"""SFPR: scaled fix-point precision reduction to 8 bits (JPEG-ACT, equation for SFPR) or 16, and its inverse.

A channel's multiplier is ``k = 128 * S / max|x|``, rounded to ``scale_bits`` significand bits; ``q`` is the exact product
``x * k`` rounded half to even and saturated. Decoding multiplies by r, which is 1 / k rounded to 12 significand bits and part
of the stream.
"""

from __future__ import annotations

from math import inf, isfinite

import torch
from cdu_spec.affine import BASE_BITS
from cdu_spec.sfpr import (
    RECIPROCAL_BITS,
    SCALE_BITS,
    SCALE_EXPONENT_LIMIT,
    SCALE_UNIT,
    SFPR_RECIPROCAL_BITS,
    VALUE_MAX,
    VALUE_MIN,
)
from cdu_tools.errors import UserError
from cdu_tools.numbers import is_whole
from torch import Tensor

from actcodec.golden.checks import require

FLOATS = (torch.float32, torch.bfloat16, torch.float16)
#: Treatments of NaN and infinity in the input.
NONFINITE_POLICIES = ("raise", "saturate")
_WIDE_MIN, _WIDE_MAX = -(1 << (BASE_BITS - 1)), (1 << (BASE_BITS - 1)) - 1


class UnfitValuesError(UserError, ValueError):
    """Raised if a codec cannot hold the values of a tensor, whatever its shape."""


class NonFiniteError(UnfitValuesError):
    """Raised if the input has NaN or infinite values and the policy is ``raise``."""


def check_nonfinite_policy(policy: str) -> None:
    """Raise UserError for the name of an unknown policy."""
    if policy not in NONFINITE_POLICIES:
        raise UserError(f"nonfinite = {policy!r} is not allowed: use {' or '.join(NONFINITE_POLICIES)}")


def channel_maxima(channels: Tensor, nonfinite: str = "raise") -> Tensor:
    """Return the largest finite magnitude of each channel, float64 (channels,).

    Parameters
    ----------
    channels
        Float tensor (outer, channels, inner).
    nonfinite
        ``raise``: NonFiniteError names the first channel with NaN or infinity and the counts; ``saturate``: such values are
        ignored.
    """
    require("channels", channels, FLOATS)
    check_nonfinite_policy(nonfinite)
    axis = 2 if channels.shape[2] > 1 else 0  # the first reduction then leaves a small tensor
    largest = torch.maximum(channels.amax(axis, keepdim=True), -channels.amin(axis, keepdim=True)).amax((0, 2))
    if not bool(largest.isfinite().all()):
        finite = channels.isfinite()
        if nonfinite == "raise":
            raise nonfinite_error((~finite).sum((0, 2)), channels.numel())
        largest = torch.where(finite, channels, channels.new_zeros(())).abs().amax((0, 2))
    return largest.to(torch.float64).abs()  # the maximum of both zeros may be the negative one


def nonfinite_error(bad: Tensor, count: int) -> NonFiniteError:
    """Return the error of ``count`` values that are not all finite; ``bad``, int64 (channels,), counts those that are not."""
    first = int(bad.ne(0).nonzero()[0])
    return NonFiniteError(
        f"{int(bad.sum())} of {count} values are NaN or infinite (channel {first} has {int(bad[first])}): "
        "correct the values, or use nonfinite = saturate with a codec that has this option"
    )


def scales(channels: Tensor, S: float, scale_bits: int, nonfinite: str = "raise") -> tuple[Tensor, Tensor]:  # noqa: N803
    """Return multiplier and reciprocal of each channel.

    Parameters
    ----------
    channels
        Float tensor (outer, channels, inner); a scale spans axes 0 and 2.
    S
        Target of the largest magnitude, in units of full scale (paper: S); positive and finite.
    scale_bits
        Significand bits of the multiplier, hidden bit included: 24, 11 or 8.
    nonfinite
        Treatment of NaN and infinity, as for :func:`channel_maxima`.

    Returns
    -------
    k, r
        float32 (channels,) each, in [2**-120, 2**120]; ``r`` is 1/k rounded to 12 significand bits, less where the code -128
        would become infinite in the format of the channels. A channel of zeros has k = 128.
    """
    return scales_of(channel_maxima(channels, nonfinite), S, scale_bits, channels.dtype)


def scales_of(largest: Tensor, S: float, scale_bits: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:  # noqa: N803
    """Return multipliers and reciprocals as :func:`scales` does, from the largest magnitudes of :func:`channel_maxima`."""
    check_scales(S, scale_bits)
    exact = torch.where(largest > 0, SCALE_UNIT * float(S) / largest, float(SCALE_UNIT))
    k = rounded_scales(exact, scale_bits)
    r = reciprocals(k, SFPR_RECIPROCAL_BITS)
    limit, most = reciprocal_limits(dtype)
    # Rounding may move the code of the largest finite number beyond it.
    beyond = ((largest * k).round() >= VALUE_MAX) & (r > limit)
    return k, torch.where(beyond, most, r)


def check_scales(S: float, scale_bits: int) -> None:  # noqa: N803
    """Raise UserError for a target that is no positive finite number, and for a width that the hardware cannot have."""
    if not (isfinite(S) and S > 0):
        raise UserError(f"S = {S!r} is not allowed: use a positive finite number")
    check_scale_bits(scale_bits)


def reciprocal_limits(dtype: torch.dtype) -> tuple[float, float]:
    """Return the reciprocal beyond which full scale is infinite in a format, and the greatest reciprocal below that."""
    return torch.finfo(dtype).max / SCALE_UNIT, _GREATEST_RECIPROCALS[dtype]  # the first is a number of each of these formats


def rounded_scales(exact: Tensor, scale_bits: int, *, down: bool = False, exponent_limit: int = SCALE_EXPONENT_LIMIT) -> Tensor:
    """Return multipliers in the hardware's format, float32.

    Parameters
    ----------
    exact
        float64, positive.
    scale_bits
        Significand bits, hidden bit included.
    down
        Round toward zero instead of half to even.
    exponent_limit
        Bounds of the result: 2**-exponent_limit and 2**120.
    """
    least, most = 2.0**-exponent_limit, 2.0**SCALE_EXPONENT_LIMIT
    mantissa, exponent = torch.frexp(exact.clamp(least, most))
    scaled = mantissa * 2.0**scale_bits
    rounded = torch.ldexp(scaled.floor() if down else scaled.round(), exponent - scale_bits)
    return rounded.clamp(least, most).to(torch.float32)


#: The greatest reciprocal with which full scale is finite, by dtype.
_GREATEST_RECIPROCALS = {
    dtype: float(
        rounded_scales(
            torch.tensor(torch.finfo(dtype).max / SCALE_UNIT, dtype=torch.float64, device="cpu"),
            SFPR_RECIPROCAL_BITS,
            down=True,
        )
    )
    for dtype in FLOATS
}


def reciprocals(k: Tensor, bits: int = max(RECIPROCAL_BITS)) -> Tensor:
    """Return 1 / k of float32 multipliers, the double quotient rounded half to even to ``bits`` significand bits; float32."""
    return rounded_scales(1 / k.to(torch.float64), bits)


def check_scale_bits(scale_bits: int) -> None:
    """Raise UserError for a width that the hardware cannot be built for."""
    if not is_whole(scale_bits) or scale_bits not in SCALE_BITS:
        raise UserError(f"scale_bits = {scale_bits!r} is not allowed: use {', '.join(map(str, SCALE_BITS))}")


def sfpr(values: Tensor, k: Tensor) -> Tensor:
    """Return int8 ``sat8(round_half_even(values * k))`` of the exact product.

    Parameters
    ----------
    values
        float32, bfloat16 or float16, any shape. Infinities saturate, NaN becomes 0.
    k
        float32 multipliers, broadcastable to ``values``.
    """
    require("values", values, FLOATS)
    require("k", k, (torch.float32,))
    return _product(values, k).round_().clamp_(VALUE_MIN, VALUE_MAX).to(torch.int8)


def sfpr16(values: Tensor, k: Tensor, offsets: Tensor | None = None) -> Tensor:
    """Return int16 ``sat16(round_half_even(values * k))`` of the exact product, for the affine modes.

    Parameters
    ----------
    values, k
        As for :func:`sfpr`.
    offsets
        Mode blpa only: int16, broadcastable to ``values``; the result is ``sat16(floor(values * k) - offsets)``.
    """
    require("values", values, FLOATS)
    require("k", k, (torch.float32,))
    product = _product(values, k)
    if offsets is None:
        product.round_()
    else:
        require("offsets", offsets, (torch.int16,))
        product.floor_().sub_(offsets)
    return product.clamp_(_WIDE_MIN, _WIDE_MAX).to(torch.int16)


def _product(values: Tensor, k: Tensor) -> Tensor:
    """Return ``values * k`` in float64, exact: a product of two 24-bit significands fits 53 bits. NaN becomes 0."""
    return values.to(torch.float64).mul_(k.to(torch.float64)).nan_to_num_(0.0, inf, -inf)


def inverse_sfpr(q: Tensor, r: Tensor) -> Tensor:
    """Return float32 ``q * r``, rounded once (half to even).

    Parameters
    ----------
    q
        int8, or int32 of at most 24 bits and sign, any shape.
    r
        float32 reciprocals in [2**-120, 2**120], broadcastable to ``q``.
    """
    require("q", q, (torch.int8, torch.int32))
    require("r", r, (torch.float32,))
    return q.to(torch.float32).mul_(r)

"""Shift quantiser (JPEG-ACT, "SH"): every coefficient divided by its own power of two, and its inverse."""

from __future__ import annotations

import torch
from cdu_spec.geometry import COEFFICIENT_BITS
from cdu_spec.reconstruction import POINT_BITS
from cdu_spec.rounding import DEFAULT_ROUNDING, Rounding
from cdu_spec.sfpr import VALUE_MAX, VALUE_MIN
from torch import Tensor

from actcodec.golden.checks import require

_COEFFICIENTS = (torch.int16, torch.int32)
_SHIFTS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
#: Range of a coefficient.
COEFFICIENT_MIN, COEFFICIENT_MAX = -(1 << (COEFFICIENT_BITS - 1)), (1 << (COEFFICIENT_BITS - 1)) - 1


def quantize(coefficients: Tensor, shifts: Tensor, rounding: Rounding = DEFAULT_ROUNDING) -> Tensor:
    """Return int8 ``sat8(round(c / 2**shift))``.

    Parameters
    ----------
    coefficients
        int16 or int32 in -2048..2047, any shape.
    shifts
        Integers 0..7, broadcastable to ``coefficients`` and in the same order.
    rounding
        Toward zero, or to nearest with ties away from zero.
    """
    require("coefficients", coefficients, _COEFFICIENTS)
    require("shifts", shifts, _SHIFTS)
    c, sh = coefficients.to(torch.int32), shifts.to(torch.int32)
    half = (1 << sh) >> 1 if rounding is Rounding.HALF_AWAY else torch.zeros_like(sh)
    return (c.sign() * (c.abs() + half >> sh)).clamp_(VALUE_MIN, VALUE_MAX).to(torch.int8)


def inverse(q: Tensor, shifts: Tensor, point: int = 0) -> Tensor:
    """Return int16 ``q * 2**shift``, moved from 0 by a reconstruction point where q is not 0, saturated to 12 bits signed.

    Takes int8 ``q`` of any shape, integer ``shifts`` 0..7 broadcastable to it, and ``point``, 0..4 eighths of a step, whose
    integer part is added (:func:`cdu_spec.reconstruction.offsets`).
    """
    require("q", q, (torch.int8,))
    require("shifts", shifts, _SHIFTS)
    q, sh = q.to(torch.int32), shifts.to(torch.int32)
    return ((q << sh) + q.sign() * ((point << sh) >> POINT_BITS)).clamp_(COEFFICIENT_MIN, COEFFICIENT_MAX).to(torch.int16)

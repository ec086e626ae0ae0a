"""Quantiser with divisors (JPEG-BASE, "DIV"): every coefficient divided by its own table entry, and its inverse.

The published code truncates; JPEG rounds to nearest (ITU-T T.81, A.3.4). Here the rule is an argument.
"""

from __future__ import annotations

import torch
from cdu_spec.rounding import Rounding
from torch import Tensor

from actcodec.golden.checks import require
from actcodec.golden.shift_quantizer import COEFFICIENT_MAX, COEFFICIENT_MIN

_COEFFICIENTS = (torch.int16, torch.int32)
_DIVISORS = (torch.uint8, torch.int16, torch.int32, torch.int64)


def quantize(coefficients: Tensor, divisors: Tensor, rounding: Rounding = Rounding.HALF_AWAY) -> Tensor:
    """Return int16 ``round(c / d)``, exactly; the result never saturates, because it is no larger than ``c``.

    Parameters
    ----------
    coefficients
        int16 or int32 in -2048..2047, any shape.
    divisors
        Integers 1..255, broadcastable to ``coefficients`` and in the same order.
    rounding
        Toward zero, or to nearest with ties away from zero.
    """
    require("coefficients", coefficients, _COEFFICIENTS)
    require("divisors", divisors, _DIVISORS)
    c, d = coefficients.to(torch.int32), divisors.to(torch.int32)
    half = d >> 1 if rounding is Rounding.HALF_AWAY else torch.zeros_like(d)
    return (c.sign() * torch.div(c.abs() + half, d, rounding_mode="floor")).to(torch.int16)


def inverse(q: Tensor, divisors: Tensor) -> Tensor:
    """Return int16 ``q * d``, saturated to 12 bits signed.

    Takes int16 ``q`` of any shape and integer ``divisors`` 1..255 broadcastable to it.
    """
    require("q", q, (torch.int16,))
    require("divisors", divisors, _DIVISORS)
    product = q.to(torch.int32) * divisors.to(torch.int32)
    return product.clamp_(COEFFICIENT_MIN, COEFFICIENT_MAX).to(torch.int16)

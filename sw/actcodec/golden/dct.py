"""Two-dimensional 8x8 DCT in integers, forward and inverse.

:mod:`cdu_spec.dct` defines the integer matrix and the shifts. Products are computed in float64, where every intermediate (below
2**34) is exact, so the results are integers by construction.
"""

from __future__ import annotations

import torch
from cdu_spec.dct import IEEE1180, POINTS, basis, pass_shifts
from torch import Tensor

from actcodec.golden.checks import require

_INTEGERS = (torch.int8, torch.int16, torch.int32)


def matrix(const_bits: int, device: torch.device | None = None) -> Tensor:
    """Return the integer matrix of one forward pass, float64 (8, 8) [frequency][sample]."""
    return torch.tensor(basis(const_bits), dtype=torch.float64, device=device)


def shift_half_up(value: Tensor, shift: int) -> Tensor:
    """Compute ``floor(value / 2**shift + 1/2)`` of float64 integers, in place."""
    return value.mul_(2.0**-shift).add_(0.5).floor_()


def dct(blocks: Tensor, const_bits: int = IEEE1180.const_bits, pass1_bits: int = IEEE1180.pass1_bits) -> Tensor:
    """Compute the forward transform, rows first, then columns.

    Parameters
    ----------
    blocks
        int8 (or int16 with 9-bit samples), (B, 8, 8) [row][column].
    const_bits, pass1_bits
        Precision, as in :mod:`cdu_spec.dct`.

    Returns
    -------
    int16 (B, 8, 8) [vertical frequency][horizontal frequency], orthonormal coefficients rounded to integers; 12 bits
    signed for 8-bit samples.
    """
    require("blocks", blocks, _INTEGERS, (POINTS, POINTS))
    first, second = pass_shifts(const_bits, pass1_bits)
    forward = matrix(const_bits, blocks.device)
    rows = shift_half_up(blocks.to(torch.float64) @ forward.T, first)
    return shift_half_up(forward @ rows, second).to(torch.int16)


def idct(
    coefficients: Tensor,
    const_bits: int = IEEE1180.const_bits,
    pass1_bits: int = IEEE1180.pass1_bits,
    sample_bits: int = 8,
) -> Tensor:
    """Compute the inverse transform, columns first, then rows, saturated to ``sample_bits`` bits signed.

    Parameters
    ----------
    coefficients
        int16 or int32 in -2048..2047, (B, 8, 8) [vertical frequency][horizontal frequency].
    const_bits, pass1_bits
        Precision, as in :mod:`cdu_spec.dct`.
    sample_bits
        8 (result int8) or 9 (result int16).

    Returns
    -------
    (B, 8, 8) [row][column].
    """
    require("coefficients", coefficients, _INTEGERS, (POINTS, POINTS))
    if sample_bits not in (8, 9):
        raise ValueError(f"sample_bits = {sample_bits} is not allowed: use 8 or 9")
    first, second = pass_shifts(const_bits, pass1_bits)
    forward = matrix(const_bits, coefficients.device)
    columns = shift_half_up(forward.T @ coefficients.to(torch.float64), first)
    samples = shift_half_up(columns @ forward, second)
    limit = 1 << (sample_bits - 1)
    return samples.clamp_(-limit, limit - 1).to(torch.int8 if sample_bits == 8 else torch.int16)

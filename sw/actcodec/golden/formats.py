"""Number formats of tensors."""

from __future__ import annotations

import torch
from torch import Tensor


def quotient(values: Tensor, divisor: float) -> Tensor:
    """Floats over a number, rounded once. On a GPU, torch's ``values / number`` is the product with a rounded reciprocal."""
    return values / torch.full((), divisor, dtype=values.dtype, device=values.device)


def as_dtype(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Float values, which are overwritten, in a format; those that rounding put beyond its range become its extremes."""
    return values.clamp_(torch.finfo(dtype).min, torch.finfo(dtype).max).to(dtype)

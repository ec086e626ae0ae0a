"""Number formats of tensors."""

from __future__ import annotations

import torch
from torch import Tensor


def as_dtype(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Float values, which are overwritten, in a format; those that rounding put beyond its range become its extremes."""
    return values.clamp_(torch.finfo(dtype).min, torch.finfo(dtype).max).to(dtype)

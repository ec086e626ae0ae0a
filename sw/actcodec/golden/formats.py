"""Number formats of tensors."""

from __future__ import annotations

import torch
from torch import Tensor


def quotient(values: Tensor, divisor: float) -> Tensor:
    """Divide floats by a number, rounded once. On a GPU, torch's ``values / number`` multiplies by a rounded reciprocal."""
    return values / torch.full((), divisor, dtype=values.dtype, device=values.device)


def as_dtype(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert float values to a dtype, limited to its range; ``values`` is overwritten."""
    return values.clamp_(torch.finfo(dtype).min, torch.finfo(dtype).max).to(dtype)

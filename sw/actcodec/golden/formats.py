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


def rounded_to_half(values: Tensor, half: torch.dtype, *, up: bool) -> Tensor:
    """Round float32 to a 16-bit format: up to the least number that is no less, or down to the greatest that is no greater."""
    near = values.to(half)
    back = near.to(torch.float32)
    wrong = back < values if up else back > values
    end = torch.tensor(torch.inf if up else -torch.inf, dtype=half, device=values.device)
    return torch.where(wrong, torch.nextafter(near, end), near)

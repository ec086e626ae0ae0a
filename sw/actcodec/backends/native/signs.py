"""Arithmetic of exact signs by compiled kernels, bit for bit equal to the golden model."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from actcodec.backends.job import FORMATS
from actcodec.backends.native.host import host
from actcodec.backends.native.kernels import NOTHING, kernels
from actcodec.backends.native.steps import ends_of
from actcodec.golden.floating.signs import LEAST_STEPS, MOST_STEPS, Signs, best_limit
from actcodec.golden.floating.steps import Line


def compare(decoded: Tensor, unit: Tensor, original: Tensor, pack: Callable[[Tensor], Tensor]) -> Signs:
    """Compute :func:`actcodec.golden.floating.signs.compare`; the kernel packs bits itself."""
    unit, original = unit.contiguous(), host(original)
    counts = torch.empty(2, MOST_STEPS - LEAST_STEPS + 1, dtype=torch.int64)
    kernels()("sign_counts", host(decoded), *_layout(decoded), unit, original, counts)
    limit = best_limit(counts)
    bits = torch.empty(-(-decoded.numel() // 8), dtype=torch.uint8)
    kernels()("sign_differences", decoded, *_layout(decoded), unit, original, limit, bits)
    return Signs(limit, bits)


def correct(
    decoded: Tensor,
    unit: Tensor,
    signs: Signs | None,
    line: Line | None,
    unpack: Callable[[Tensor, Tensor], Tensor],
    *,
    rectified: bool,
) -> None:
    """Compute :func:`actcodec.golden.floating.signs.correct`; the kernel reads packed bits."""
    details = torch.finfo(decoded.dtype)
    least = details.smallest_normal * details.eps
    limit, wrong = (0, NOTHING) if signs is None else (signs.limit, host(signs.wrong))
    ends = (limit, wrong, rectified, least, *ends_of(line), details.max)
    kernels()("signed_values", decoded, *_layout(decoded), unit.contiguous(), *ends)


def _layout(decoded: Tensor) -> tuple[int, ...]:
    return (FORMATS[decoded.dtype], decoded.numel(), *decoded.shape[1:])

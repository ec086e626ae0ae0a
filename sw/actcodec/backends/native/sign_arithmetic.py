"""Arithmetic of exact signs by compiled kernels, bit for bit equal to the torch version."""

from __future__ import annotations

import torch
from torch import Tensor

from actcodec.backends.job import FORMATS
from actcodec.backends.native.host import host
from actcodec.backends.native.kernels import NOTHING, kernels
from actcodec.backends.native.step_quantizer import ends_of
from actcodec.backends.sign_arithmetic import LEAST_STEPS, MOST_STEPS, SignArithmetic, Signs, best_limit
from actcodec.backends.step_quantizer import Line


class NativeSignArithmetic(SignArithmetic):
    """Arithmetic of exact signs on the CPU."""

    def signs(self, decoded: Tensor, unit: Tensor, original: Tensor) -> Signs:
        """Implement :class:`SignArithmetic`."""
        unit, original = unit.contiguous(), host(original)
        counts = torch.empty(2, MOST_STEPS - LEAST_STEPS + 1, dtype=torch.int64)
        kernels()("sign_counts", host(decoded), *_layout(decoded), unit, original, counts)
        limit = best_limit(counts)
        bits = torch.empty(-(-decoded.numel() // 8), dtype=torch.uint8)
        kernels()("sign_differences", decoded, *_layout(decoded), unit, original, limit, bits)
        return Signs(limit, bits)

    def finish(self, decoded: Tensor, unit: Tensor, signs: Signs | None, line: Line | None, *, rectified: bool) -> None:
        """Implement :class:`SignArithmetic`."""
        details = torch.finfo(decoded.dtype)
        least = details.smallest_normal * details.eps
        limit, wrong = (0, NOTHING) if signs is None else (signs.limit, host(signs.wrong))
        ends = (limit, wrong, rectified, least, *ends_of(line), details.max)
        kernels()("signed_values", decoded, *_layout(decoded), unit.contiguous(), *ends)


def _layout(decoded: Tensor) -> tuple[int, ...]:
    return (FORMATS[decoded.dtype], decoded.numel(), *decoded.shape[1:])

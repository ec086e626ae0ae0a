"""Arithmetic of ``acgc-quant`` by compiled kernels, bit for bit equal to the golden model."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from cdu_spec.geometry import LANES
from torch import Tensor

from actcodec.backends.job import FORMATS
from actcodec.backends.native.host import host
from actcodec.backends.native.kernels import NOTHING, kernels
from actcodec.golden.floating.rows import RowSteps

#: Number of values of a row that are processed together, as in fixed_point.cpp.
_SEGMENT = 1 << 12
#: Greatest number of bits.
_MOST_BITS = 16


def codes(x: Tensor, steps: RowSteps, seed: int, *, drop_zeros: bool) -> tuple[Tensor, Tensor]:
    """Compute :func:`actcodec.golden.floating.rows.codes`."""
    x = host(x)
    count = len(steps.steps)
    job = (x, FORMATS[x.dtype], *_layout(x.shape, count), steps.steps, *steps.ends, seed)
    kept: Tensor | int = NOTHING
    mask: Tensor | int = NOTHING
    counts = torch.full((count,), x.numel() // count)
    if drop_zeros:
        kept = torch.empty(count, -(-(x.numel() // count) // _SEGMENT), dtype=torch.int64)
        kernels()("fixed_point_kept", *job, kept)
        counts = kept.sum(1)
        mask = torch.zeros(-(-x.numel() // LANES), dtype=torch.uint8)
    places, length = steps.places(counts)
    codes = torch.zeros(length, dtype=torch.uint8)
    kernels()("fixed_point_codes", *job, steps.bits, kept, *_first_bytes(places), mask, codes)
    return (mask if isinstance(mask, Tensor) else steps.bits[:0]), codes


def values(codes: Tensor, mask: Tensor, steps: RowSteps, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Compute :func:`actcodec.golden.floating.rows.values`."""
    y, count = torch.empty(tuple(shape), dtype=dtype), len(steps.steps)
    counts = torch.full((count,), prod(y.shape) // count)
    present: Tensor | int = NOTHING
    if mask.numel():
        kernels()("fixed_point_present", mask, y.numel(), count, counts)
        present = mask
    places, _ = steps.places(counts)
    grid = (steps.steps, steps.bits, steps.signed, *_first_bytes(places), torch.finfo(dtype).max)
    layout = _layout(y.shape, count)
    kernels()("fixed_point_values", host(codes), codes.numel(), present, FORMATS[dtype], *layout, *grid, y)
    return y


def _layout(shape: Sequence[int], count: int) -> tuple[int, int, int]:
    """Return the extents of :func:`~actcodec.backends.row_quantizer.by_row`."""
    return (shape[0], count, prod(shape[2:])) if count > 1 else (1, 1, prod(shape))


def _first_bytes(places: dict[int, tuple[int, int]]) -> tuple[Tensor, Tensor]:
    """Return where the two parts of the codes of each width begin, int64 (17,) each."""
    first = torch.zeros(2, _MOST_BITS + 1, dtype=torch.int64)
    for width, parts in places.items():
        first[:, width] = torch.tensor(parts)
    return first[0], first[1]

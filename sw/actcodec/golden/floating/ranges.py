"""Arithmetic of ``division-float`` and ``actnn-float``: codes with a step per range.

Operations are float32, one by one in the order written here, and sums float64 in the order of memory. A range is
``range_values`` consecutive values; the last one may have fewer. With ``means``, whose ranges are one map each, all functions
apply to the values less their means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import torch
from torch import Tensor

from actcodec.golden.codes import pack_tight, unpack_tight
from actcodec.golden.extremes import extremes
from actcodec.golden.formats import as_dtype
from actcodec.golden.pieces import piece_values
from actcodec.golden.pooling import Means, Pooling, cell_means
from actcodec.golden.random_bits import random_numbers


def means(x: Tensor, pooling: Pooling) -> Tensor:
    """Return the mean of each cell of finite x, float32 (cells,)."""
    flat = x.flatten()
    parts = range_pieces(x.numel(), pooling.height * pooling.width, x.device)
    return torch.cat([cell_means(flat[part], pooling.part(part)) for part in parts])


def edges(x: Tensor, range_values: int, means: Means | None = None) -> tuple[Tensor, Tensor]:
    """Return the least and greatest value of each range, float32 (ranges,), never -0.0."""
    parts = range_pieces(x.numel(), range_values, x.device)
    edges = [_least_and_greatest(_values(x, part, means), range_values) for part in parts]
    least, greatest = (torch.cat(one) for one in zip(*edges, strict=True))
    # Adding zero turns -0.0, which is neither less nor greater than 0.0, into 0.0.
    return least + 0.0, greatest + 0.0


def codes(
    x: Tensor, range_values: int, low: Tensor, step: Tensor, bits: int, seed: int | None, means: Means | None = None
) -> Tensor:
    """Return ``floor((x - low) / step + rho)``, limited to 0 .. 2**bits - 1, uint8 (ceil(values * bits / 8),).

    rho is 1/2 without a seed; with one it is a random multiple of 2**-16 below 1. ``low`` and ``step`` are 16-bit floats
    (ranges,).
    """
    codes = torch.empty(x.numel(), dtype=torch.uint8, device=x.device)
    for part in range_pieces(x.numel(), range_values, x.device):
        floor, width = (_spread(one, range_values, part) for one in (low, step))
        steps = (_values(x, part, means) - floor).div_(width)
        steps += 0.5 if seed is None else random_numbers(seed, part.start, len(steps), x.device) * 2.0**-16
        codes[part] = steps.floor_().clamp_(0, (1 << bits) - 1)
    return pack_tight(codes, bits)


def values(
    codes: Tensor,
    range_values: int,
    low: Tensor,
    step: Tensor,
    bits: int,
    shape: Sequence[int],
    dtype: torch.dtype,
    means: Means | None = None,
) -> Tensor:
    """Return ``low + step * code`` plus the means, in ``shape`` and ``dtype``, limited to the dtype's range."""
    count = prod(shape)
    unpacked = unpack_tight(codes, bits, count)
    rebuilt = torch.empty(count, dtype=dtype, device=codes.device)
    for part in range_pieces(count, range_values, codes.device):
        values = unpacked[part].to(torch.float32)
        values.mul_(_spread(step, range_values, part)).add_(_spread(low, range_values, part))
        if means is not None:
            values += means.at(part)
        rebuilt[part] = as_dtype(values, dtype)
    return rebuilt.view(tuple(shape))


def upsampled(means: Tensor, pooling: Pooling, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Return the means (cells,) alone, in ``shape`` and ``dtype``, limited to the dtype's range."""
    of_cells = Means(pooling, means)
    rebuilt = torch.empty(prod(shape), dtype=dtype, device=means.device)
    for part in range_pieces(rebuilt.numel(), pooling.height * pooling.width, rebuilt.device):
        rebuilt[part] = as_dtype(of_cells.at(part), dtype)
    return rebuilt.view(tuple(shape))


def range_pieces(count: int, range_values: int, device: torch.device) -> Iterator[slice]:
    """Yield slices of ``count`` values, each of whole ranges."""
    step = max(piece_values(count, device) // range_values, 1) * range_values
    return (slice(first, min(first + step, count)) for first in range(0, count, step))


def _values(x: Tensor, part: slice, means: Means | None) -> Tensor:
    """Return the values of a piece, less means, float32 (n,)."""
    values = x.reshape(-1)[part].to(torch.float32)
    return values if means is None else values - means.at(part)


def _least_and_greatest(values: Tensor, range_values: int) -> tuple[Tensor, Tensor]:
    """Return the least and greatest value of each range, float32 (ranges,)."""
    full = values
    if values.numel() % range_values:
        full = values[-1:].expand(-(-values.numel() // range_values) * range_values).clone()
        full[: values.numel()] = values
    return extremes(full.view(-1, range_values), 1)


def _spread(per_range: Tensor, range_values: int, part: slice) -> Tensor:
    """Return 16-bit floats (ranges,) repeated for the values of a piece of whole ranges, float32 (n,)."""
    here = per_range[part.start // range_values : -(-part.stop // range_values)]
    return here.to(torch.float32).repeat_interleave(range_values)[: part.stop - part.start]

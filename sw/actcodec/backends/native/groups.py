"""Arithmetic of ``actnn-sample`` by compiled kernels, bit for bit equal to the golden model."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

import torch
from torch import Tensor

from actcodec.backends.job import FORMATS
from actcodec.backends.native.host import host
from actcodec.backends.native.kernels import kernels
from actcodec.golden.floating.groups import coded_by, greatest_codes, ranges_between, sample_count, sample_size


def ranges(x: Tensor, group: int) -> tuple[Tensor, Tensor, Tensor]:
    """Compute :func:`actcodec.golden.floating.groups.ranges`."""
    samples, size = sample_count(x.shape), sample_size(x.shape)
    least, greatest = torch.empty(2, samples, -(-size // group), dtype=torch.float32)
    kernels()("group_edges", host(x), FORMATS[x.dtype], samples, size, group, least, greatest)
    return ranges_between(least, greatest)


def codes(x: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, seed: int | None) -> Tensor:
    """Compute :func:`actcodec.golden.floating.groups.codes`."""
    codes = torch.empty(sample_count(x.shape), sample_size(x.shape), dtype=torch.uint8)
    ranges = (low.to(torch.float32), extent.to(torch.float32), greatest_codes(bits))
    random = (seed is not None, seed or 0)
    kernels()("group_codes", host(x), FORMATS[x.dtype], *codes.shape, group, *ranges, *random, codes)
    return codes


def values(
    codes: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, shape: Sequence[int], dtype: torch.dtype
) -> Tensor:
    """Compute :func:`actcodec.golden.floating.groups.values`."""
    y = torch.empty(tuple(shape), dtype=dtype)
    ranges = (low.to(torch.float32), extent.to(torch.float32), greatest_codes(bits))
    limit = inf if dtype == torch.float32 else torch.finfo(dtype).max
    kernels()("group_values", codes, FORMATS[dtype], *codes.shape, group, *ranges, limit, y)
    return y


def coded(x: Tensor, group: int, width: int, seed: int | None) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Compute :func:`actcodec.golden.floating.groups.coded`."""
    return coded_by(ranges, packed_codes, x, group, width, seed)


def pack(codes: Tensor, bits: int) -> Tensor:
    """Compute :func:`actcodec.golden.codes.pack_tight`."""
    packed = torch.empty(-(-codes.numel() * bits // 8), dtype=torch.uint8)
    kernels()("codes_pack", codes, codes.numel(), bits, packed)
    return packed


def unpack(packed: Tensor, bits: int, count: int) -> Tensor:
    """Compute :func:`actcodec.golden.codes.unpack_tight`."""
    codes = torch.empty(count, dtype=torch.uint8)
    kernels()("codes_unpack", packed, count, bits, codes)
    return codes


def packed_codes(x: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, seed: int | None, width: int) -> Tensor:
    """Compute :func:`actcodec.golden.floating.groups.packed_codes`."""
    return pack(codes(x, group, low, extent, bits, seed), width)


def values_of_packed(
    packed: Tensor,
    width: int,
    group: int,
    low: Tensor,
    extent: Tensor,
    bits: Tensor,
    shape: Sequence[int],
    dtype: torch.dtype,
) -> Tensor:
    """Compute :func:`actcodec.golden.floating.groups.values_of_packed`."""
    codes = unpack(packed, width, prod(shape)).view(sample_count(shape), -1)
    return values(codes, group, low, extent, bits, shape, dtype)

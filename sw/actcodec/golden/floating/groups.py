"""Arithmetic of ``actnn-sample``: groups of values that lie within a sample.

Tensors are (N, ...) with N samples of D values, in groups of ``group`` values; the last group of each sample has the remainder.
Z and R of groups are bfloat16 (N, groups); a code is at most B = 2**b - 1, where ``bits``, uint8 (N,), holds b of each sample.
Operations are float32, one by one in the order written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

import torch
from torch import Tensor

from actcodec.golden.codes import pack_tight, unpack_tight
from actcodec.golden.extremes import extremes
from actcodec.golden.formats import rounded_to_half
from actcodec.golden.pieces import piece_values
from actcodec.golden.random_bits import stochastically_rounded_


def ranges(x: Tensor, group: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return Z and R of each group, and () or (1,) that is not zero if a value is not finite or a range exceeds bfloat16.

    Z is at most the group's least value, and Z + R at least its greatest one.
    """
    return ranges_between(*edges(x, group))


def ranges_between(least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return :func:`ranges` of groups with these least and greatest values; infinite and NaN ones are not finite."""
    low = rounded_to_half(least, torch.bfloat16, up=False)
    # R follows from the rounded Z, so that the codes reach the greatest value.
    extent = rounded_to_half(greatest - low.to(torch.float32), torch.bfloat16, up=True)
    extent = extent.clamp_min(torch.finfo(torch.bfloat16).smallest_normal)
    return low, extent, ~(low.isfinite() & extent.isfinite()).all()


def edges(x: Tensor, group: int) -> tuple[Tensor, Tensor]:
    """Return the least and greatest value of each group, float32 (N, groups), never -0.0."""
    found = [extremes(part, 2) for part, _ in _parts(_by_sample(x), group)]
    least, greatest = (torch.cat(edges, 1).to(torch.float32) for edges in zip(*found, strict=True))
    # Adding zero turns -0.0, which is neither less nor greater than 0.0, into 0.0.
    return least + 0.0, greatest + 0.0


def codes(x: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, seed: int | None) -> Tensor:
    """Return ``floor(B * (x - Z) / R + rho)``, limited to 0..B, uint8 (N, D).

    rho is 1/2 without a seed; with one it is random, so that a fraction is rounded up with the probability of the fraction,
    to 2**-17.
    """
    values = _by_sample(x)
    codes = torch.empty(values.shape, dtype=torch.uint8, device=x.device)
    for piece in _pieces(values, group):
        steps, levels = values[piece].to(torch.float32, copy=True), greatest_codes(bits[piece[0]])
        for part, Z, R in _with_ranges(steps, piece, group, low, extent):  # noqa: N806
            part.sub_(Z).div_(R)
        steps.mul_(levels)
        first = piece[0].start * values.shape[1] + piece[1].start
        whole = steps.add_(0.5).floor_() if seed is None else stochastically_rounded_(steps, seed, first)
        codes[piece] = whole.clamp_min_(0).minimum(levels)
    return codes


def packed_codes(x: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, seed: int | None, width: int) -> Tensor:
    """Return :func:`codes` of samples that all have ``width`` bits, packed by :func:`actcodec.golden.codes.pack_tight`."""
    return pack_tight(codes(x, group, low, extent, bits, seed).flatten(), width)


def coded(x: Tensor, group: int, width: int, seed: int | None) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the results of :func:`ranges`, the bits of each sample, which are ``width``, and :func:`packed_codes`."""
    return coded_by(ranges, packed_codes, x, group, width, seed)


def coded_by(
    ranges: Callable[..., tuple[Tensor, Tensor, Tensor]],
    packed_codes: Callable[..., Tensor],
    x: Tensor,
    group: int,
    width: int,
    seed: int | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return :func:`coded`, computed by a backend's versions of two functions."""
    low, extent, unfit = ranges(x, group)
    bits = torch.full((sample_count(x.shape),), width, dtype=torch.uint8, device=x.device)
    return low, extent, unfit, bits, packed_codes(x, group, low, extent, bits, seed, width)


def values(
    codes: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, shape: Sequence[int], dtype: torch.dtype
) -> Tensor:
    """Return ``Z + R * code / B``, computed in float32, in ``dtype`` and ``shape``, limited to the dtype's range.

    Values may exceed the range because R is rounded up.
    """
    rebuilt = torch.empty(codes.shape, dtype=dtype, device=codes.device)
    for piece in _pieces(codes, group):
        values = codes[piece].to(torch.float32).div_(greatest_codes(bits[piece[0]]))
        for part, Z, R in _with_ranges(values, piece, group, low, extent):  # noqa: N806
            part.mul_(R).add_(Z)
        if dtype != torch.float32:
            values.clamp_(torch.finfo(dtype).min, torch.finfo(dtype).max)
        rebuilt[piece] = values
    return rebuilt.view(tuple(shape))


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
    """Return :func:`values` of :func:`packed_codes`."""
    codes = unpack_tight(packed, width, prod(shape)).view(sample_count(shape), -1)
    return values(codes, group, low, extent, bits, shape, dtype)


def sample_count(shape: Sequence[int]) -> int:
    """Return the number of samples of a tensor."""
    return shape[0] if len(shape) > 1 else 1


def sample_size(shape: Sequence[int]) -> int:
    """Return the number of values per sample."""
    return prod(shape) // sample_count(shape)


def greatest_codes(bits: Tensor) -> Tensor:
    """Return the greatest code of each sample, B = 2**b - 1, float32 (N, 1)."""
    return torch.exp2(bits.to(torch.float32))[:, None] - 1


def _by_sample(x: Tensor) -> Tensor:
    return x.reshape(sample_count(x.shape), -1)


def _parts(values: Tensor, group: int) -> list[tuple[Tensor, slice]]:
    """Return views of (N, D) as (N, groups, values), with the numbers of those groups: whole groups, and the remainder."""
    whole = values.shape[1] // group
    parts = [(values[:, : whole * group].view(len(values), whole, group), slice(0, whole))] if whole else []
    if values.shape[1] % group:
        parts.append((values[:, None, whole * group :], slice(whole, whole + 1)))
    return parts


def _pieces(values: Tensor, group: int) -> Iterator[tuple[slice, slice]]:
    """Yield pieces of (N, D) of whole samples, or of whole groups of one sample, in the order of memory."""
    samples, size = values.shape
    most = piece_values(values.numel(), values.device)
    together, step = max(most // size, 1), size if size <= most else max(most // group, 1) * group
    for sample in range(0, samples, together):
        for first in range(0, size, step):
            yield slice(sample, min(sample + together, samples)), slice(first, min(first + step, size))


def _with_ranges(
    values: Tensor, piece: tuple[slice, slice], group: int, low: Tensor, extent: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield views of the values of a piece as (n, groups, values), and Z and R of those groups, float32 (n, groups, 1)."""
    before = piece[1].start // group
    for part, groups in _parts(values, group):
        here = slice(before + groups.start, before + groups.stop)
        Z, R = (of_groups[piece[0], here, None].to(torch.float32) for of_groups in (low, extent))  # noqa: N806
        yield part, Z, R

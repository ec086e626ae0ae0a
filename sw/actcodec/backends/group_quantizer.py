"""The arithmetic of ``actnn-sample`` on all values of a tensor, by torch: groups that lie within a sample.

This is the specification of every other way to compute it: float32 operations one by one, in the order in which they stand
here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from actcodec.golden.codes import pack_tight, unpack_tight
from actcodec.golden.random_bits import stochastically_rounded_


class GroupQuantizer:
    """Least and greatest values, codes, and what codes stand for.

    Tensors are (N, ...) with N samples of D values, in groups of ``group`` values, the last of each sample having what is left.
    Z and R of groups are bfloat16 (N, groups); a code is at most B = 2**b - 1, with ``bits`` b, uint8 (N,), a sample's own.
    """

    def edges(self, x: Tensor, group: int) -> tuple[Tensor, Tensor]:
        """Least and greatest value of each group, float32 (N, groups), never -0.0."""
        values = _by_sample(x).to(torch.float32)
        found = [part.aminmax(dim=2) for part, _ in _parts(values, group)]
        # Adding zero turns -0.0, which is neither less nor greater than 0.0, into 0.0.
        return torch.cat([edge.min for edge in found], 1) + 0.0, torch.cat([edge.max for edge in found], 1) + 0.0

    def codes(self, x: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, seed: int | None) -> Tensor:
        """``floor(B * (x - Z) / R + rho)``, limited to 0..B, uint8 (N, D).

        rho is 1/2 without a seed; with one it is random, so that a fraction is rounded up with the probability of the
        fraction, to 2**-17.
        """
        values = _by_sample(x).to(torch.float32, copy=True)
        for part, groups in _parts(values, group):
            part.sub_(low[:, groups, None].to(torch.float32)).div_(extent[:, groups, None].to(torch.float32))
        levels = greatest_codes(bits)
        steps = values.mul_(levels)
        whole = steps.add_(0.5).floor_() if seed is None else stochastically_rounded_(steps, seed)
        return whole.clamp_min_(0).minimum(levels).to(torch.uint8)

    def values(
        self, codes: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, shape: Sequence[int], dtype: torch.dtype
    ) -> Tensor:
        """``Z + R * code / B`` in float32, limited to the range of ``dtype`` (R is rounded up), in ``dtype`` and ``shape``."""
        values = codes.to(torch.float32)
        values /= greatest_codes(bits)
        for part, groups in _parts(values, group):
            part.mul_(extent[:, groups, None].to(torch.float32)).add_(low[:, groups, None].to(torch.float32))
        if dtype != torch.float32:
            values.clamp_(torch.finfo(dtype).min, torch.finfo(dtype).max)
        return values.to(dtype).view(tuple(shape))

    def pack(self, codes: Tensor, bits: int) -> Tensor:
        """See :func:`actcodec.golden.codes.pack_tight`."""
        return pack_tight(codes, bits)

    def unpack(self, packed: Tensor, bits: int, count: int) -> Tensor:
        """See :func:`actcodec.golden.codes.unpack_tight`."""
        return unpack_tight(packed, bits, count)


def sample_count(shape: Sequence[int]) -> int:
    """Number of samples of a tensor."""
    return shape[0] if len(shape) > 1 else 1


def sample_size(shape: Sequence[int]) -> int:
    """Values per sample."""
    return prod(shape) // sample_count(shape)


def greatest_codes(bits: Tensor) -> Tensor:
    """The greatest code of each sample, B = 2**b - 1, float32 (N, 1)."""
    return torch.exp2(bits.to(torch.float32))[:, None] - 1


def _by_sample(x: Tensor) -> Tensor:
    return x.reshape(sample_count(x.shape), -1)


def _parts(values: Tensor, group: int) -> list[tuple[Tensor, slice]]:
    """Views of (N, D) as (N, groups, values), and the numbers of those groups: the whole groups, and what is left."""
    whole = values.shape[1] // group
    parts = [(values[:, : whole * group].view(len(values), whole, group), slice(0, whole))] if whole else []
    if values.shape[1] % group:
        parts.append((values[:, None, whole * group :], slice(whole, whole + 1)))
    return parts

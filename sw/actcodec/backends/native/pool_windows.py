"""Conversion of max-pool indices to positions in their windows, and back, by compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from actcodec.backends.native.kernels import kernels
from actcodec.golden.wide_codes import wide_bytes

#: Most bits of a position.
MOST_BITS = 8


@dataclass(frozen=True)
class WindowAxis:
    """Windows along one axis, and the layout of a pool's outputs in memory along it."""

    extent: int  #: values of the input along this axis
    positions: int  #: positions of a window
    dilation: int  #: distance in the input between adjacent positions
    starts: Sequence[int]  #: start of the window of each output
    step: int  #: distance in memory between outputs along this axis


def packed_positions(indices: Tensor, axes: Sequence[WindowAxis], bits: int) -> Tensor | None:
    """Return positions in windows, uint8 packed by :func:`~actcodec.golden.wide_codes.pack_wide`; None for outside indices.

    Parameters
    ----------
    indices
        int64 (n,), on the CPU, in the order of memory.
    axes
        At most three axes, the last one first; positions in them count in this order.
    bits
        Bits of a position, at most 8.
    """
    positions = torch.empty(indices.numel(), dtype=torch.uint8)
    if not kernels()("window_positions", indices, indices.numel(), *_numbers(axes), positions):
        return None
    packed = torch.empty(wide_bytes(indices.numel(), bits), dtype=torch.uint8)
    kernels()("codes_pack", positions, indices.numel(), bits, packed)
    return packed


def indices_of(packed: Tensor, axes: Sequence[WindowAxis], bits: int, count: int) -> Tensor:
    """Return the indices for packed positions, int64 (count,); inverse of :func:`packed_positions`."""
    positions, indices = torch.zeros(count, dtype=torch.uint8), torch.empty(count, dtype=torch.int64)
    if bits:
        kernels()("codes_unpack", packed, count, bits, positions)
    kernels()("window_indices", positions, count, *_numbers(axes), indices)
    return indices


def _numbers(axes: Sequence[WindowAxis]) -> tuple[int, Tensor, Tensor]:
    numbers = [[axis.extent, axis.positions, axis.dilation, len(axis.starts), axis.step] for axis in axes]
    return len(axes), torch.tensor(numbers), torch.tensor([start for axis in axes for start in axis.starts])

"""Indices of max pooling in as few bits as a window has positions.

For every output of a max pool autograd keeps the index of the input value that won, in 64 bits. It lies in the output's window,
which is known; its position there takes ``ceil(log2(positions))`` bits: 2 for a window of 2x2, 4 for 3x3. Padding never wins.
Indices come back exactly. The windows of a fractional max pool are drawn at random: its windows here are the whole input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor

from actcodec.golden.wide_codes import pack_wide, unpack_wide
from actcodec.training.layout import Layout
from actcodec.training.operations import Operation

_SUFFIXES = ("", "_with_indices")
_FIXED = {f"max_pool{rank}d{suffix}": rank for rank in (1, 2, 3) for suffix in _SUFFIXES}
_ADAPTIVE = {f"adaptive_max_pool{rank}d{suffix}": rank for rank in (1, 2, 3) for suffix in _SUFFIXES}
_FRACTIONAL = {f"fractional_max_pool{rank}d{suffix}": rank for rank in (2, 3) for suffix in _SUFFIXES}
_PARAMETERS = ("input", "kernel_size", "stride", "padding", "dilation")


@dataclass(frozen=True)
class _Axis:
    """The windows along one axis of the input."""

    extent: int
    starts: tuple[int, ...]  #: first position of each window, below 0 in the padding
    positions: int  #: of the longest window
    dilation: int = 1


class WindowPositions:
    """The indices of one max pool as positions in windows: a :class:`~actcodec.training.forms.Form`.

    Parameters
    ----------
    indices
        int64, as the pool computes them.
    axes
        The last axes, those that were pooled.
    positions
        In the windows, row by row: int64, shape of ``indices``.
    """

    def __init__(self, indices: Tensor, axes: Sequence[_Axis], positions: Tensor) -> None:
        self._layout = Layout.of(indices)
        self._axes = tuple(axes)
        self._packed = pack_wide(self._layout.distinct_values(positions).flatten(), self._bits)

    @classmethod
    def of(cls, indices: Tensor, operation: Operation) -> WindowPositions | None:
        """The packed form of indices that ``operation`` computes, or None.

        None when the operation is no max pool, or the indices do not lie in its windows.
        """
        axes = _axes(indices, operation)
        if not axes or indices.numel() == 0 or Layout.of(indices).overlaps:
            return None
        extents = [axis.extent for axis in axes]
        stray = (indices < 0) | (indices >= prod(extents))
        positions = torch.zeros_like(indices)
        for place, found in enumerate(torch.unravel_index(indices, extents), -len(axes)):
            axis = axes[place]
            distances = found - _along(axis.starts, place, found)
            steps = distances.div(axis.dilation, rounding_mode="floor")
            stray |= (steps < 0) | (steps >= axis.positions) | (steps * axis.dilation != distances)
            positions = positions * axis.positions + steps
        return None if bool(stray.any()) else cls(indices, axes, positions)

    @property
    def _bits(self) -> int:
        """Bits of a position."""
        return (prod(axis.positions for axis in self._axes) - 1).bit_length()

    @property
    def nbytes(self) -> int:
        """Bytes of the positions (shapes of input and windows are not counted)."""
        return self._packed.numel()

    def tensor(self) -> Tensor:
        """The indices."""
        size = self._layout.distinct_size
        positions = unpack_wide(self._packed, self._bits, prod(size), torch.int64).view(size)
        indices = torch.zeros_like(positions)
        windows = [axis.positions for axis in self._axes]
        for place, steps in enumerate(torch.unravel_index(positions, windows), -len(windows)):
            axis = self._axes[place]
            indices = indices * axis.extent + steps * axis.dilation + _along(axis.starts, place, steps)
        return self._layout.restore(indices, "the index packer")


def _axes(indices: Tensor, operation: Operation) -> list[_Axis]:
    """The windows of a max pool, one entry for each pooled axis; none for other operations."""
    given = dict(zip(_PARAMETERS, operation.args, strict=False)) | operation.kwargs
    source = given.get("input")
    rank = (_FIXED | _ADAPTIVE | _FRACTIONAL).get(operation.function, 0)
    if not rank or not isinstance(source, Tensor) or min(source.ndim, indices.ndim) < rank:
        return []
    pairs = zip(source.shape[-rank:], indices.shape[-rank:], strict=True)
    if operation.function in _ADAPTIVE:
        return [_adaptive_axis(extent, outputs) for extent, outputs in pairs]
    if operation.function in _FRACTIONAL:
        return [_Axis(extent, (0,) * outputs, extent) for extent, outputs in pairs]
    kernel = _each(given["kernel_size"], rank)
    stride = _each(given.get("stride") or kernel, rank)
    padding, dilation = _each(given.get("padding", 0), rank), _each(given.get("dilation", 1), rank)
    return [
        _Axis(extent, tuple(output * stride[i] - padding[i] for output in range(outputs)), kernel[i], dilation[i])
        for i, (extent, outputs) in enumerate(pairs)
    ]


def _adaptive_axis(extent: int, outputs: int) -> _Axis:
    """Windows from ``floor(o * extent / outputs)`` to before ``ceil((o + 1) * extent / outputs)``."""
    starts = tuple(output * extent // outputs for output in range(outputs))
    ends = (-(-(output + 1) * extent // outputs) for output in range(outputs))
    return _Axis(extent, starts, max((end - start for start, end in zip(starts, ends, strict=True)), default=1))


def _each(value: Any, rank: int) -> tuple[int, ...]:
    """A parameter for each axis."""
    values = tuple(value) if isinstance(value, Sequence) else (value,)
    return values * rank if len(values) == 1 else values


def _along(starts: Sequence[int], axis: int, like: Tensor) -> Tensor:
    """Starts as a tensor along a (negative) axis."""
    return torch.tensor(starts, device=like.device).view(-1, *(1 for _ in range(-1 - axis)))

"""Pack indices of max pooling in as few bits as a window has positions.

For every output of a max pool autograd keeps the index of the input value that won, in 64 bits. It lies in the output's window,
which is known; its position there takes ``ceil(log2(positions))`` bits: 2 for a window of 2x2, 4 for 3x3. Padding never wins.
Indices come back exactly. The windows of a fractional max pool are drawn at random: its windows here are the whole input.

Where a backend has loaded the native kernels, they compute positions of up to 8 bits on the CPU; the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor

from actcodec.backends.native.kernels import loaded
from actcodec.backends.native.pool_windows import MOST_BITS, WindowAxis, indices_of, packed_positions
from actcodec.golden.wide_codes import put_wide, take_wide, wide_bytes
from actcodec.saved.layout import Layout, parts
from actcodec.saved.operations import Operation

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
    positions: int  #: size of the longest window
    dilation: int = 1


class WindowPositions:
    """The indices of one max pool as positions in windows, row by row: a :class:`~actcodec.saved.forms.Form`.

    Parameters
    ----------
    indices
        int64, as the pool computes them. An index outside its window is lost, see :meth:`of`.
    axes
        Windows along the last axes, those that were pooled.
    """

    def __init__(self, indices: Tensor, axes: Sequence[_Axis]) -> None:
        self._layout = Layout.of(indices)
        self._axes = tuple(axes)
        flat = self._layout.in_memory_order(indices)
        self._count = flat.numel()
        if self._has_kernels(flat):
            packed = packed_positions(flat.contiguous(), self._window_axes, self._bits)
            self._packed, self._is_exact = flat.new_empty(0) if packed is None else packed, packed is not None
            return
        self._packed = torch.empty(wide_bytes(self._count, self._bits), dtype=torch.uint8, device=flat.device)
        stray = torch.zeros((), dtype=torch.bool, device=flat.device)
        for part in parts(self._count):
            positions = self._positions(flat[part], part, stray)
            put_wide(self._packed, positions, self._bits, self._count, part.start)
        self._is_exact = not bool(stray)

    @classmethod
    def of(cls, indices: Tensor, operation: Operation) -> WindowPositions | None:
        """Return the packed form of indices that ``operation`` computes, or None.

        The result is None if the operation is no max pool, or if the indices do not lie in its windows.
        """
        axes = _axes(indices, operation)
        if not axes or indices.numel() == 0 or Layout.of(indices).overlaps:
            return None
        packed = cls(indices, axes)
        return packed if packed._is_exact else None

    @property
    def _bits(self) -> int:
        """Bits of a position."""
        return (prod(axis.positions for axis in self._axes) - 1).bit_length()

    @property
    def _dtype(self) -> torch.dtype:
        """Format of indices and positions while they are computed."""
        inputs, window = prod(axis.extent for axis in self._axes), prod(axis.positions for axis in self._axes)
        largest = max(self._count, inputs, window)
        return torch.int32 if largest <= torch.iinfo(torch.int32).max else torch.int64

    @property
    def nbytes(self) -> int:
        """Bytes of the positions (shapes of input and windows are not counted)."""
        return self._packed.numel()

    def tensor(self) -> Tensor:
        """Return the indices."""
        if self._has_kernels(self._packed):
            return self._layout.from_memory_order(indices_of(self._packed, self._window_axes, self._bits, self._count))
        flat = torch.empty(self._count, dtype=torch.int64, device=self._packed.device)
        for part in parts(self._count):
            flat[part] = self._indices(take_wide(self._packed, self._bits, self._count, part, self._dtype), part)
        return self._layout.from_memory_order(flat)

    def _has_kernels(self, x: Tensor) -> bool:
        return x.device.type == "cpu" and self._bits <= MOST_BITS and loaded()

    @property
    def _window_axes(self) -> list[WindowAxis]:
        size, steps = self._layout.distinct_size, self._layout.strides_in_memory
        return [
            WindowAxis(axis.extent, axis.positions, axis.dilation, axis.starts[: size[-place]], steps[-place])
            for place, axis in enumerate(reversed(self._axes), 1)
        ]

    def _positions(self, indices: Tensor, part: slice, stray: Tensor) -> Tensor:
        """Compute the positions for a part of the indices; ``stray`` becomes true if one of them is outside its window."""
        stray |= ((indices < 0) | (indices >= prod(axis.extent for axis in self._axes))).any()
        rest = indices.to(self._dtype, copy=True)
        positions, weight = torch.zeros_like(rest), 1
        for axis, starts in self._windows(part):
            steps = (rest % axis.extent).sub_(starts)
            rest.div_(axis.extent, rounding_mode="floor")
            if axis.dilation > 1:
                stray |= (steps % axis.dilation).any()
                steps.div_(axis.dilation, rounding_mode="floor")
            stray |= ((steps < 0) | (steps >= axis.positions)).any()
            positions.add_(steps, alpha=weight)
            weight *= axis.positions
        return positions

    def _indices(self, positions: Tensor, part: slice) -> Tensor:
        """Invert :meth:`_positions`; ``positions`` is overwritten."""
        indices, weight = torch.zeros_like(positions), 1
        for axis, starts in self._windows(part):
            indices.add_((positions % axis.positions).mul_(axis.dilation).add_(starts), alpha=weight)
            positions.div_(axis.positions, rounding_mode="floor")
            weight *= axis.extent
        return indices

    def _windows(self, part: slice) -> Iterator[tuple[_Axis, Tensor]]:
        """Yield the pooled axes, the last one first, with the starts of the windows of a part of the outputs along them."""
        size, steps = self._layout.distinct_size, self._layout.strides_in_memory
        outputs = torch.arange(part.start, part.stop, dtype=self._dtype, device=self._packed.device)
        for place, axis in enumerate(reversed(self._axes), 1):
            starts = torch.tensor(axis.starts, dtype=self._dtype, device=self._packed.device)
            yield axis, starts[(outputs // steps[-place]).remainder_(size[-place])]


def _axes(indices: Tensor, operation: Operation) -> list[_Axis]:
    """Return the windows of a max pool, one entry for each pooled axis; none for other operations."""
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
    """Return windows from ``floor(o * extent / outputs)`` to before ``ceil((o + 1) * extent / outputs)``."""
    starts = tuple(output * extent // outputs for output in range(outputs))
    ends = (-(-(output + 1) * extent // outputs) for output in range(outputs))
    return _Axis(extent, starts, max((end - start for start, end in zip(starts, ends, strict=True)), default=1))


def _each(value: Any, rank: int) -> tuple[int, ...]:
    """Return a parameter for each axis."""
    values = tuple(value) if isinstance(value, Sequence) else (value,)
    return values * rank if len(values) == 1 else values

"""Layouts of tensors: a saved tensor is compressed as a plain contiguous tensor and comes back with its own strides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import torch
from torch import Tensor

#: Number of parts in which lossless forms are packed and unpacked, so that temporaries are a fraction of the tensor ...
_PARTS = 16
#: ... and least values of a part, a multiple of 8, so that small tensors are not handled value by value.
_LEAST_PART = 1024
#: Number of layouts that are held together with their properties.
_MOST_LAYOUTS = 1 << 12


class ReconstructionError(RuntimeError):
    """A codec returned a tensor of another shape or dtype than it was given."""


@dataclass(frozen=True)
class Layout:
    """Size, stride, dtype and device of a strided tensor."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    @staticmethod
    def of(x: Tensor) -> Layout:
        """Return the layout of ``x``; the same object for equal layouts, so that its properties are computed once."""
        return _layout(x.shape, x.stride(), x.dtype, x.device)

    @cached_property
    def distinct_size(self) -> tuple[int, ...]:
        """The size with expanded dimensions (stride 0) counted once."""
        return tuple(1 if stride == 0 else size for size, stride in zip(self.size, self.stride, strict=True))

    @cached_property
    def distinct_bytes(self) -> int:
        """Bytes of the values, those repeated by expansion counted once."""
        return prod(self.distinct_size) * self.dtype.itemsize

    @cached_property
    def overlaps(self) -> bool:
        """Return whether several positions may share memory other than by expansion (sliding windows)."""
        reach = 0
        for extent, step in reversed(self.joined_axes):
            if step <= reach:
                return True
            reach += step * (extent - 1)
        return False

    @cached_property
    def joined_axes(self) -> tuple[tuple[int, int], ...]:
        """Extents and steps of the distinct values, merged into as few axes as possible, the longest steps first.

        The result is the same for all shapes in which the same memory can be seen.
        """
        joined: list[tuple[int, int]] = []
        for axis in self._order:
            extent, step = self.distinct_size[axis], self.stride[axis]
            if extent == 1:
                continue
            if joined and joined[-1][1] == extent * step:
                joined[-1] = (joined[-1][0] * extent, step)
            else:
                joined.append((extent, step))
        return tuple(joined)

    @cached_property
    def span(self) -> int:
        """Number of elements from the first value in memory to the last one, both included."""
        return 1 + sum((extent - 1) * step for extent, step in self.joined_axes)

    @cached_property
    def dense(self) -> bool:
        """Return whether the distinct values lie side by side in memory."""
        return not self.joined_axes or (len(self.joined_axes) == 1 and self.joined_axes[0][1] == 1)

    @cached_property
    def contiguous(self) -> bool:
        """Return whether the strides are those of a new contiguous tensor, also for axes of extent 1, which tell the format."""
        return self.stride == tuple(prod(self.size[axis + 1 :]) for axis in range(len(self.size)))

    def distinct_values(self, x: Tensor) -> Tensor:
        """The values of ``x`` without those repeated by expansion, contiguous."""
        for axis, (size, stride) in enumerate(zip(self.size, self.stride, strict=True)):
            if stride == 0 and size > 1:
                x = x.narrow(axis, 0, 1)
        return x.contiguous()

    @cached_property
    def _order(self) -> tuple[int, ...]:
        """The axes in memory order, the one with the longest steps first."""
        return tuple(sorted(range(len(self.size)), key=lambda axis: self.stride[axis], reverse=True))

    @cached_property
    def strides_in_memory(self) -> tuple[int, ...]:
        """Distance between neighbours along each axis in :meth:`in_memory_order`; arbitrary for axes of extent 1."""
        size, order = self.distinct_size, self._order
        steps = {axis: prod(size[inner] for inner in order[place + 1 :]) for place, axis in enumerate(order)}
        return tuple(steps[axis] for axis in range(len(size)))

    def in_memory_order(self, x: Tensor) -> Tensor:
        """Return the distinct values of ``x``, (n,), in memory order; without a copy if the tensor has no gaps."""
        narrowed = x.detach().as_strided(self.distinct_size, self.stride, x.storage_offset())
        return narrowed.permute(self._order).reshape(-1)

    def from_memory_order(self, values: Tensor) -> Tensor:
        """Return a tensor of this layout from :meth:`in_memory_order`; it shares the memory of ``values`` if there are no
        gaps.
        """
        if self.dense:
            return values.as_strided(self.size, self.stride)
        laid_out = torch.empty_strided(self.distinct_size, self.stride, dtype=self.dtype, device=self.device)
        narrowed = laid_out.permute(self._order)
        narrowed.copy_(values.view(narrowed.shape))
        return laid_out.as_strided(self.size, self.stride)

    def restore(self, values: Tensor, source: str) -> Tensor:
        """Return a tensor of this layout from :meth:`distinct_values`.

        Raises ReconstructionError, naming ``source``, if ``values`` has another shape or dtype.
        """
        if tuple(values.shape) != self.distinct_size or values.dtype != self.dtype:
            raise ReconstructionError(
                f"{source} returned {values.dtype} {tuple(values.shape)} for {self.dtype} {self.distinct_size}"
            )
        values = values.to(self.device)
        if tuple(values.stride()) == self.stride:
            return values
        laid_out = torch.empty_strided(self.distinct_size, self.stride, dtype=self.dtype, device=self.device)
        laid_out.copy_(values)
        return laid_out.as_strided(self.size, self.stride)


@lru_cache(_MOST_LAYOUTS)
def _layout(size: torch.Size, stride: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Layout:
    return Layout(tuple(size), tuple(stride), dtype, device)


def parts(count: int) -> Iterator[slice]:
    """Divide ``count`` values into a few slices, each of which begins at a multiple of 8."""
    length = max(-(-count // (8 * _PARTS)) * 8, _LEAST_PART)
    return (slice(start, min(start + length, count)) for start in range(0, count, length))

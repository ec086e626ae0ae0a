"""Strides: a saved tensor is compressed as a plain contiguous tensor and comes back in the layout that it had."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

#: Lossless forms are made and undone in so many parts, so that what that takes besides is a fraction of the tensor ...
_PARTS = 16
#: ... of so many values at least, a multiple of 8, so that small tensors are not handled value by value.
_LEAST_PART = 1024


class ReconstructionError(RuntimeError):
    """A codec returned a tensor of another shape or dtype than it was given."""


@dataclass(frozen=True)
class Layout:
    """Size, stride, dtype and device of a strided tensor."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, x: Tensor) -> Layout:
        """The layout of ``x``."""
        return cls(tuple(x.shape), tuple(x.stride()), x.dtype, x.device)

    @property
    def distinct_size(self) -> tuple[int, ...]:
        """The size with expanded dimensions (stride 0) counted once."""
        return tuple(1 if stride == 0 else size for size, stride in zip(self.size, self.stride, strict=True))

    @property
    def overlaps(self) -> bool:
        """Whether several positions may share memory other than by expansion (sliding windows)."""
        reach = 0
        pairs = zip(self.distinct_size, self.stride, strict=True)
        for stride, size in sorted((stride, size) for size, stride in pairs if size > 1):
            if stride <= reach:
                return True
            reach += stride * (size - 1)
        return False

    def distinct_values(self, x: Tensor) -> Tensor:
        """The values of ``x`` without those repeated by expansion, contiguous."""
        for axis, (size, stride) in enumerate(zip(self.size, self.stride, strict=True)):
            if stride == 0 and size > 1:
                x = x.narrow(axis, 0, 1)
        return x.contiguous()

    @property
    def _order(self) -> list[int]:
        """The axes as they lie in memory, the one with the longest steps first."""
        return sorted(range(len(self.size)), key=lambda axis: self.stride[axis], reverse=True)

    @property
    def strides_in_memory(self) -> tuple[int, ...]:
        """Of each axis, how far apart its neighbours are in :meth:`in_memory_order`; whatever for axes of extent 1."""
        size, order = self.distinct_size, self._order
        steps = {axis: prod(size[inner] for inner in order[place + 1 :]) for place, axis in enumerate(order)}
        return tuple(steps[axis] for axis in range(len(size)))

    def in_memory_order(self, x: Tensor) -> Tensor:
        """The distinct values of ``x``, (n,), in the order in which they lie in memory: no copy of a tensor without gaps."""
        narrowed = x.detach().as_strided(self.distinct_size, self.stride, x.storage_offset())
        return narrowed.permute(self._order).reshape(-1)

    def from_memory_order(self, values: Tensor) -> Tensor:
        """A tensor of this layout from :meth:`in_memory_order`; it has the memory of ``values`` when the layout has no gaps."""
        if values.numel() == 1 + sum((extent - 1) * step for extent, step in zip(self.distinct_size, self.stride, strict=True)):
            return values.as_strided(self.size, self.stride)
        laid_out = torch.empty_strided(self.distinct_size, self.stride, dtype=self.dtype, device=self.device)
        narrowed = laid_out.permute(self._order)
        narrowed.copy_(values.view(narrowed.shape))
        return laid_out.as_strided(self.size, self.stride)

    def restore(self, values: Tensor, source: str) -> Tensor:
        """A tensor of this layout from :meth:`distinct_values`.

        Raises ReconstructionError, naming ``source``, when ``values`` has not the shape and dtype that it must have.
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


def parts(count: int) -> Iterator[slice]:
    """``count`` values in a few parts, each of which begins at a multiple of 8."""
    length = max(-(-count // (8 * _PARTS)) * 8, _LEAST_PART)
    return (slice(start, min(start + length, count)) for start in range(0, count, length))

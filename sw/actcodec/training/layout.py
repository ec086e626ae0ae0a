"""Strides: a saved tensor is compressed as a plain contiguous tensor and comes back in the layout that it had."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


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

"""Layouts of values in a compiled graph: how axes lie in memory, and which sizes are numbers while others are symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import SymInt, Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

Size = int | SymInt


@dataclass(frozen=True)
class Layout:
    """The static facts of a dense tensor.

    Parameters
    ----------
    dtype
        Its number format.
    order
        Its axes as they lie in memory, the one with the longest steps first.
    inner
        Sizes of the last axes in that order, as many as are numbers. Axes before them may have symbolic sizes.
    """

    dtype: torch.dtype
    order: tuple[int, ...]
    inner: tuple[int, ...]

    def axes(self, suits: Callable[[int], bool]) -> int | None:
        """Return the least number of last axes in memory order whose number of values suits; None where there is none."""
        for count in range(1, len(self.inner) + 1):
            if suits(prod(self.inner[-count:])):
                return count
        return None

    def split(self, x: Tensor, axes: int, sizes: Sequence[int]) -> Tensor:
        """Return a tensor in memory order with its last axes replaced by ``sizes``: (leading sizes, *sizes)."""
        ordered = x if self._is_plain else x.permute(self.order)
        return ordered.view(*ordered.shape[: ordered.dim() - axes], *sizes)

    def join(self, values: Tensor, axes: int, sizes: int) -> Tensor:
        """The inverse of :meth:`split` for values whose last ``sizes`` axes replace the last ``axes`` ones of the tensor."""
        lead = values.shape[: values.dim() - sizes]
        ordered = values.view(*lead, *self.inner[len(self.inner) - axes :])
        return ordered if self._is_plain else ordered.permute([self.order.index(axis) for axis in range(len(self.order))])

    @property
    def _is_plain(self) -> bool:
        return self.order == tuple(range(len(self.order)))


def layout_of(value: Tensor) -> Layout:
    """The layout of a dense tensor, which may be fake and have symbolic sizes; ValueError for one with gaps or overlaps."""
    order = _memory_order(value)
    if order is None:
        raise ValueError(f"a tensor of sizes {tuple(value.shape)} and strides {value.stride()} is not dense: keep it as it is")
    sizes = [value.shape[axis] for axis in order]
    symbols = [place for place, size in enumerate(sizes) if not isinstance(size, int)]
    return Layout(value.dtype, order, tuple(int(size) for size in sizes[symbols[-1] + 1 if symbols else 0 :]))


def is_dense(value: Tensor) -> bool:
    """Return whether the values of a tensor fill its memory without gaps, each in a place of its own."""
    return _memory_order(value) is not None


def _memory_order(value: Tensor) -> tuple[int, ...] | None:
    """Return the axes from the longest steps to the shortest if the strides are those of a permuted contiguous tensor."""
    left, order, run = set(range(value.dim())), list[int](), 1
    while left:
        here = [axis for axis in sorted(left, reverse=True) if statically_known_true(value.stride(axis) == run)]
        if not here:
            return None
        axis = next((axis for axis in here if statically_known_true(value.shape[axis] == 1)), here[0])
        run *= value.shape[axis]
        left.remove(axis)
        order.insert(0, axis)
    return tuple(order)

"""Positions of max pooling in their windows, in 2 or 4 bits: of a window of 2x2 or of 3x3 and the like."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from actcodec.graph.blocks import in_parts
from actcodec.graph.format import VECTOR, Format
from actcodec.graph.layout import Layout, Size, is_dense, layout_of
from actcodec.graph.planes import codes_per_byte, pack_planes, plane_bytes, unpack_planes

_INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)


@dataclass(frozen=True)
class Windows(Format):
    """``windows2`` and ``windows4``: integers from 0 to 3 or to 15, exactly; all others lose their higher bits."""

    bits: int  #: 2 or 4

    @property
    def name(self) -> str:  # type: ignore[override]
        """Implement :class:`Format`."""
        return f"windows{self.bits}"

    @property
    def positions(self) -> int:
        """Return the number of positions that a window may have."""
        return 1 << self.bits

    def fits(self, value: Tensor) -> bool:
        """Implement :class:`Format`. It does not see whether the positions are few enough: ask :attr:`positions`."""
        return value.dtype in _INTEGERS and is_dense(value) and self._axes(layout_of(value)) is not None

    def pack(self, x: Tensor) -> tuple[Tensor, ...]:
        """Implement :class:`Format`."""
        layout = layout_of(x)
        axes, sizes = self._sizes(layout)
        return pack_planes(layout.split(x, axes, sizes).to(torch.uint8), self.bits, -len(sizes))

    def unpack(self, parts: tuple[Tensor, ...], value: Layout) -> Tensor:
        """Implement :class:`Format`."""
        axes, sizes = self._sizes(value)
        return value.join(unpack_planes(parts, self.bits, -len(sizes)).to(value.dtype), axes, len(sizes))

    def nbytes(self, value: Tensor) -> Size:
        """Implement :class:`Format`."""
        return plane_bytes(value.numel(), self.bits)

    def _axes(self, layout: Layout) -> int | None:
        parts = codes_per_byte(self.bits)
        return layout.axes(lambda values: values % (parts * VECTOR) == 0) or layout.axes(lambda values: values % parts == 0)

    def _sizes(self, layout: Layout) -> tuple[int, tuple[int, ...]]:
        axes = self._axes(layout)
        assert axes is not None, f"{layout} does not fit {self.name}"
        return axes, in_parts(layout.inner[-axes:], codes_per_byte(self.bits))

"""Integers of 16, 8, 6, 5 and 4 bits with a scale for a row, for a group in a row, or for a group in a column.

With m, the greatest magnitude of what shares a scale, and h = 32767, 127, 31, 15 or 7, a value x is kept as
``round(x / m * h)``, ties to even, and a code q stands for ``q / h * m``: float32 operations in this order. m is kept in the
format of the tensor, in which it is exact. Only groups of float32 values keep it in bfloat16, rounded toward zero, so that
nothing becomes infinite; what exceeds it saturates. Infinity and NaN make everything that shares their scale NaN or infinite.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from actcodec.golden.formats import quotient
from actcodec.graph.blocks import GROUP, Blocks, group_blocks, has_plain_parts, in_parts
from actcodec.graph.format import FLOATS, VECTOR, Format
from actcodec.graph.layout import Layout, Size, is_dense, layout_of
from actcodec.graph.planes import codes_per_byte, pack_planes, plane_bytes, unpack_planes

#: Values of the shortest row that has a scale of its own: a map of 7x7, not a row of 32 in one.
_LEAST_ROW = 48
_BYTE = 8
#: The bits of a float32 pattern that bfloat16 has.
_BFLOAT16 = -1 << 16


@dataclass(frozen=True)
class Integers(Format):
    """Symmetric integers; float32, bfloat16 or float16, dense, with long enough last axes of known sizes."""

    bits: int  #: 16, 8, 6, 5 or 4

    def fits(self, value: Tensor) -> bool:
        """Implement :class:`Format`."""
        return value.dtype in FLOATS and is_dense(value) and self._blocks(layout_of(value)) is not None

    def pack(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return planes of codes, those of 16 bits as their higher and their lower byte, then the greatest magnitudes."""
        layout = layout_of(x)
        blocks = self._known_blocks(layout)
        # Maxima of float32: inductor's C++ for several bfloat16 ones in a kernel does not compile (torch 2.13).
        values = layout.split(x, blocks.axes, blocks.sizes).to(torch.float32)
        greatest, kept = self._kept(values.abs().amax(blocks.shared, keepdim=True), x.dtype)
        codes = (values / torch.where(greatest > 0, greatest, 1.0) * self._top).round()
        if kept.dtype != x.dtype:
            codes = codes.clamp(-self._top, self._top)
        if self.bits == _BYTE:
            return codes.to(torch.int8), kept
        if self.bits == 2 * _BYTE:  # two bytes: inductor makes no vectors of int16
            higher = (codes / (1 << _BYTE)).floor()
            return higher.to(torch.int8), (codes - higher * (1 << _BYTE)).to(torch.uint8), kept
        return *pack_planes((codes + self._top).to(torch.uint8), self.bits, blocks.parts), kept

    def unpack(self, parts: tuple[Tensor, ...], value: Layout) -> Tensor:
        """Implement :class:`Format`."""
        *planes, kept = parts
        blocks = self._known_blocks(value)
        if self.bits == _BYTE:
            codes = planes[0].to(torch.float32)
        elif self.bits == 2 * _BYTE:
            codes = planes[0].to(torch.float32) * (1 << _BYTE) + planes[1].to(torch.float32)
        else:
            codes = unpack_planes(tuple(planes), self.bits, blocks.parts).to(torch.float32) - self._top
        values = quotient(codes, self._top) * kept.to(torch.float32)
        return value.join(values.to(value.dtype), blocks.axes, len(blocks.sizes))

    def nbytes(self, value: Tensor) -> Size:
        """Implement :class:`Format`."""
        blocks = self._known_blocks(layout_of(value))
        scales = value.numel() // blocks.values_per_scale
        return plane_bytes(value.numel(), self.bits) + scales * self._scale_format(value.dtype).itemsize

    @property
    def _top(self) -> float:
        """Return the code of the greatest magnitude."""
        return float((1 << (self.bits - 1)) - 1)

    @property
    def _parts(self) -> int:
        return codes_per_byte(self.bits) if self.bits < _BYTE else 1

    def _known_blocks(self, layout: Layout) -> Blocks:
        blocks = self._blocks(layout)
        if blocks is None:
            raise ValueError(f"{layout} does not fit the format {self.name!r}: keep the value as it is")
        return blocks

    @abstractmethod
    def _blocks(self, layout: Layout) -> Blocks | None:
        """Return how a layout is cut, None where it does not fit."""

    def _scale_format(self, dtype: torch.dtype) -> torch.dtype:
        """Return the format in which the greatest magnitudes of values of a format are kept."""
        return torch.bfloat16 if dtype == torch.float32 else dtype

    def _kept(self, greatest: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The greatest magnitudes of values of a format as they are kept: in float32, and in the format that keeps them."""
        kept = self._scale_format(dtype)
        if kept != dtype:
            # Inductor may leave out a conversion and its rounding: it is exact here.
            greatest = (greatest.view(torch.int32) & _BFLOAT16).view(torch.float32)
        return greatest, greatest.to(kept)


@dataclass(frozen=True)
class IntegerRows(Integers):
    """A scale for the last axis in memory, or for several where it is short: ``int16``, ``int8``, ``int6`` and the like."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """Implement :class:`Format`."""
        return f"int{self.bits}"

    def _scale_format(self, dtype: torch.dtype) -> torch.dtype:
        return dtype

    def _blocks(self, layout: Layout) -> Blocks | None:
        axes = layout.axes(lambda values: values >= _LEAST_ROW)
        if axes is None:
            return None
        row = layout.inner[-axes:]
        if has_plain_parts(row, self._parts):
            sizes = in_parts(row, self._parts)
            return Blocks(axes, sizes, tuple(range(-len(sizes), 0)), -len(sizes))
        # Parts of such a row would be no whole vectors: whole rows share bytes instead.
        for whole in range(axes + 1, len(layout.inner) + 1):
            if layout.inner[-whole] % self._parts == 0:
                sizes = in_parts(layout.inner[-whole:], self._parts)
                return Blocks(whole, sizes, tuple(range(-axes, 0)), -len(sizes))
        return Blocks(axes, in_parts(row, self._parts), (-2, -1), -2) if prod(row) % self._parts == 0 else None


@dataclass(frozen=True)
class IntegerGroups(Integers):
    """A scale for 32 values in a row, or for as many of 31 to 16 as divide the last axis: ``int8-group`` and the like."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """Implement :class:`Format`."""
        return f"int{self.bits}-group"

    def _blocks(self, layout: Layout) -> Blocks | None:
        sizes = range(GROUP, GROUP // 2 - 1, -1)
        divisors = [group for group in sizes if layout.inner and layout.inner[-1] % group == 0]
        found = (group_blocks(layout, group, self._parts) for group in (*divisors, *sizes))
        return next((blocks for blocks in found if blocks is not None), None)


@dataclass(frozen=True)
class IntegerColumns(Integers):
    """A scale for 32 values in a column, one from each of so many rows: ``int8-columns`` and the like."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """Implement :class:`Format`."""
        return f"int{self.bits}-columns"

    def _blocks(self, layout: Layout) -> Blocks | None:
        axes = layout.axes(lambda values: values >= VECTOR * self._parts and values % self._parts == 0)
        if axes is None or axes == len(layout.inner) or layout.inner[-axes - 1] % GROUP:
            return None
        run = in_parts(layout.inner[-axes:], self._parts)
        return Blocks(axes + 1, (layout.inner[-axes - 1] // GROUP, GROUP, *run), (-len(run) - 1,), -len(run))

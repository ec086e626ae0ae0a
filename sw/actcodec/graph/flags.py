"""Booleans, and the signs of values, as one bit each.

Bit j of byte m of a row stands for value m of the j-th eighth of the row. Sums of powers of two and quotients in float32, exact
here, are what inductor makes vectors of; operations of booleans and bytes are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from actcodec.graph.blocks import in_parts
from actcodec.graph.format import FLOATS, VECTOR, Format
from actcodec.graph.layout import Layout, Size, is_dense, layout_of

_BYTE = 8


def _axes(layout: Layout) -> int | None:
    """The last axes whose values are kept together: a multiple of 8, in eighths of whole vectors where such axes are found."""
    return layout.axes(lambda values: values % (_BYTE * VECTOR) == 0) or layout.axes(lambda values: values % _BYTE == 0)


def _pack(flags: Tensor) -> Tensor:
    """Return booleans as bytes, uint8 (leading sizes, eighths of the last axes)."""
    layout = layout_of(flags)
    axes = _axes(layout)
    assert axes is not None
    sizes = in_parts(layout.inner[-axes:], _BYTE)
    ones = torch.where(layout.split(flags, axes, sizes), 1.0, 0.0).unbind(-len(sizes))
    byte = ones[0]
    for place, one in enumerate(ones[1:], 1):
        byte = byte + one * 2.0**place
    return byte.to(torch.uint8)


def _unpack(packed: Tensor, value: Layout) -> Tensor:
    """Return the inverse: booleans in the shape and strides of the tensor."""
    axes = _axes(value)
    assert axes is not None
    sizes = in_parts(value.inner[-axes:], _BYTE)
    places = torch.arange(_BYTE, dtype=torch.float32, device=packed.device).view(_BYTE, *[1] * (len(sizes) - 1))
    shifted = (packed.to(torch.float32).unsqueeze(-len(sizes)) * torch.exp2(-places)).floor()
    return value.join(shifted - (shifted * 0.5).floor() * 2 > 0.5, axes, len(sizes))


class _Flags(Format):
    def nbytes(self, value: Tensor) -> Size:
        """Implement :class:`Format`."""
        return value.numel() // _BYTE


@dataclass(frozen=True)
class Bits(_Flags):
    """``bits``: booleans, exactly."""

    name = "bits"

    def fits(self, value: Tensor) -> bool:
        """Implement :class:`Format`."""
        return value.dtype == torch.bool and is_dense(value) and _axes(layout_of(value)) is not None

    def pack(self, x: Tensor) -> tuple[Tensor, ...]:
        """Implement :class:`Format`."""
        return (_pack(x),)

    def unpack(self, parts: tuple[Tensor, ...], value: Layout) -> Tensor:
        """Implement :class:`Format`."""
        return _unpack(parts[0], value)


@dataclass(frozen=True)
class Brc(_Flags):
    """``brc``: one where a value is positive, else zero, NaN included, as :mod:`actcodec.golden.brc` has it."""

    name = "brc"

    def fits(self, value: Tensor) -> bool:
        """Implement :class:`Format`."""
        return value.dtype in FLOATS and is_dense(value) and _axes(layout_of(value)) is not None

    def pack(self, x: Tensor) -> tuple[Tensor, ...]:
        """Implement :class:`Format`."""
        return (_pack(x > 0),)

    def unpack(self, parts: tuple[Tensor, ...], value: Layout) -> Tensor:
        """Implement :class:`Format`."""
        return torch.where(_unpack(parts[0], value), 1.0, 0.0).to(value.dtype)

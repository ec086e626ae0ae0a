"""Formats of MX and NVFP4: blocks that follow each other in memory, as :mod:`actcodec.golden.mx` and ``nvfp4`` define them.

Numbers that come back are the golden model's to the last bit. Only a block with NaN or infinity, which their codecs refuse, is
NaN here; in NVFP4 the whole tensor is, as it has one scale.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from cdu_spec.mx import MX_FORMATS, NVFP4, NVFP4_FORMAT, NVFP4_SCALE, SCALE_BIAS, SCALE_MOST, SCALE_NAN, BlockFormat
from torch import Tensor

from actcodec.golden.formats import quotient
from actcodec.graph.blocks import Blocks, group_blocks
from actcodec.graph.elements import (
    FRACTION,
    INFINITY,
    MAGNITUDE,
    element_codes,
    element_values,
    flushed,
    greatest_number,
    power_of_two,
)
from actcodec.graph.format import FLOATS, Format
from actcodec.graph.layout import Layout, Size, is_dense, layout_of
from actcodec.graph.planes import codes_per_byte, pack_planes, plane_bytes, unpack_planes

_CANONICAL_NAN = 0x7FC00000
_SMALLEST_NORMAL_PATTERN = 1 << FRACTION


@dataclass(frozen=True)
class ScaledBlocks(Format):
    """Blocks with a scale of 8 bits each; float32, bfloat16 or float16, dense, whole blocks in the last axes of known sizes."""

    @property
    @abstractmethod
    def _kind(self) -> BlockFormat:
        """Return the elements."""

    def fits(self, value: Tensor) -> bool:
        """Implement :class:`Format`."""
        return value.dtype in FLOATS and is_dense(value) and self._blocks(layout_of(value)) is not None

    def nbytes(self, value: Tensor) -> Size:
        """Implement :class:`Format`."""
        return plane_bytes(value.numel(), self._kind.bits) + value.numel() // self._kind.values

    def _blocks(self, layout: Layout) -> Blocks | None:
        return group_blocks(layout, self._kind.values, codes_per_byte(self._kind.bits))

    def _split(self, x: Tensor) -> tuple[Tensor, Blocks]:
        """Return the blocks of a tensor, float32, and how they are cut."""
        layout = layout_of(x)
        blocks = self._blocks(layout)
        assert blocks is not None, f"{layout} does not fit {self.name}"
        return layout.split(x, blocks.axes, blocks.sizes).to(torch.float32), blocks

    def _pack_codes(self, scaled: Tensor, blocks: Blocks) -> tuple[Tensor, ...]:
        codes = element_codes(scaled, self._kind)
        return (
            (codes.to(torch.int8),)
            if self._kind.is_integer
            else pack_planes(codes.to(torch.uint8), self._kind.bits, blocks.parts)
        )

    def _numbers(self, planes: tuple[Tensor, ...], blocks: Blocks) -> Tensor:
        """Return the elements, float32 (leading sizes, *blocks.sizes)."""
        codes = planes[0] if self._kind.is_integer else unpack_planes(planes, self._kind.bits, blocks.parts)
        return element_values(codes.to(torch.int32), self._kind)

    def _join(self, values: Tensor, value: Layout, blocks: Blocks) -> Tensor:
        limits = torch.finfo(value.dtype)
        return value.join(values.clamp(limits.min, limits.max).to(value.dtype), blocks.axes, len(blocks.sizes))


@dataclass(frozen=True)
class Mx(ScaledBlocks):
    """A format of MX with a power of two for 32 values, by the rule ``floor`` of the specification."""

    name: str

    @property
    def _kind(self) -> BlockFormat:
        return MX_FORMATS[self.name]

    def pack(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return planes of codes, then E8M0 scales, uint8."""
        values, blocks = self._split(x)
        # A vectorised maximum may return a NaN with a sign.
        greatest = values.abs().amax(-1, keepdim=True).view(torch.int32) & MAGNITUDE
        normal = torch.where(greatest < _SMALLEST_NORMAL_PATTERN, 0, greatest)
        numbers_ = ((normal >> FRACTION) - self._kind.emax).clamp(0, SCALE_MOST)
        scaled = flushed(values) * power_of_two(SCALE_BIAS - numbers_)
        # Not ">=": GCC 12 for a CPU with AVX-512 turns it round where inductor writes AVX2.
        scales = torch.where(greatest > INFINITY - 1, SCALE_NAN, numbers_)
        return *self._pack_codes(scaled, blocks), scales.to(torch.uint8)

    def unpack(self, parts: tuple[Tensor, ...], value: Layout) -> Tensor:
        """Implement :class:`Format`."""
        blocks = self._blocks(value)
        assert blocks is not None, f"{value} does not fit {self.name}"
        *planes, scales = parts
        exponents = scales.to(torch.int32) - SCALE_BIAS
        factors = torch.where(scales == SCALE_NAN, torch.nan, power_of_two(exponents))
        return self._join(flushed(self._numbers(tuple(planes), blocks) * factors), value, blocks)


@dataclass(frozen=True)
class Nvfp4(ScaledBlocks):
    """``nvfp4``: E2M1 with a scale in E4M3 for 16 values, and one in float32 for the tensor."""

    name: ClassVar[str] = NVFP4  # type: ignore[misc]

    @property
    def _kind(self) -> BlockFormat:
        return NVFP4_FORMAT

    def nbytes(self, value: Tensor) -> Size:
        """Implement :class:`Format`."""
        return super().nbytes(value) + torch.float32.itemsize

    def pack(self, x: Tensor) -> tuple[Tensor, ...]:
        """Codes, two in a byte; E4M3 scales, uint8; the scale of the tensor, float32 ()."""
        values, blocks = self._split(x)
        most, least, most_scale = greatest_number(NVFP4_FORMAT), 2.0**NVFP4_SCALE.emin, greatest_number(NVFP4_SCALE)
        tensor = quotient(values.abs().amax(), most_scale * most).clamp_min(torch.finfo(torch.float32).tiny / least)
        wanted = (quotient(values.abs().amax(-1, keepdim=True), most) / tensor).clamp(least, most_scale)
        scales = element_codes(wanted, NVFP4_SCALE)
        factors = tensor.reciprocal() / element_values(scales, NVFP4_SCALE)
        return *self._pack_codes(values * factors, blocks), scales.to(torch.uint8), tensor

    def unpack(self, parts: tuple[Tensor, ...], value: Layout) -> Tensor:
        """Implement :class:`Format`."""
        blocks = self._blocks(value)
        assert blocks is not None, f"{value} does not fit {self.name}"
        *planes, scales, tensor = parts
        finite = torch.where(tensor.isfinite(), tensor, torch.nan)
        factors = finite * element_values(scales.to(torch.int32), NVFP4_SCALE)
        return self._join(self._numbers(tuple(planes), blocks) * factors, value, blocks)

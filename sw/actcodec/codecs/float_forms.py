"""DIVISION and ActNN in floating point, as the papers have them: for comparison with the integer forms. No hardware does this.

What the published code does wrong is not repeated: values are quantised with the rounded parameters that decoding uses, codes
are limited at both ends, no padding enters a range, and pooling and upsampling use one grid.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

import torch
from cdu_spec.affine import CODE_BITS, GROUP_VALUES
from cdu_spec.bitstream import Mode
from cdu_spec.errors import UserError
from cdu_spec.geometry import BLOCK_SIDE, LANES
from torch import Tensor

from actcodec.codecs.affine_codecs import NEAREST, STOCHASTIC
from actcodec.codecs.backend import Backend
from actcodec.codecs.codec import Codec, check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.codecs.tensor_seeds import TensorSeeds
from actcodec.golden.codes import pack_tight, unpack_tight
from actcodec.golden.random_bits import random_bits

#: 16-bit formats of what is kept per cell, map or group.
HALF_FORMATS = {"bf16": torch.bfloat16, "fp16": torch.float16}
#: Keeps the random numbers apart from those of the integer forms.
_SALT = len(Mode) + 1


@dataclass(frozen=True, eq=False)
class FloatForm:
    """A tensor in floating-point form: 16-bit parameters and packed codes."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    bits: int
    low: Tensor  #: 16-bit floats (ranges,): least value of each range
    step: Tensor  #: 16-bit floats (ranges,)
    codes: Tensor  #: uint8 (ceil(values * bits / 8),)
    means: Tensor  #: 16-bit floats (cells,): division's low-frequency part; empty in actnn

    @property
    def nbytes(self) -> int:
        """Bytes of parameters and codes (the paper's account: shape and format are not counted)."""
        return sum(part.numel() * part.element_size() for part in (self.low, self.step, self.codes, self.means))

    def to_bytes(self) -> bytes:
        """Raises UserError: a floating-point form is not a stream."""
        raise UserError("a floating-point form has no bitstream: use division or actnn")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The reconstructed tensor, float32 arithmetic."""
        codes = unpack_tight(self.codes, self.bits, prod(self.shape))
        values = codes.to(torch.float32) * self._spread(self.step) + self._spread(self.low)
        if self.means.numel():
            values += self.means.to(torch.float32)[pooling_cells(self.shape, values.device)]
        return values.to(self.dtype).view(self.shape)

    def _spread(self, per_range: Tensor) -> Tensor:
        return _spread(per_range.to(torch.float32), self.shape, whole_maps=self.means.numel() > 0)


class _FloatCodec(Codec):
    """What both float forms have in common."""

    bits: int
    half: str
    rounding: str
    seed: int

    def __post_init__(self) -> None:
        if isinstance(self.bits, bool) or self.bits not in CODE_BITS:
            raise UserError(f"bits = {self.bits!r} is not allowed: use {', '.join(map(str, CODE_BITS))}")
        if self.half not in HALF_FORMATS:
            raise UserError(f"half = {self.half!r} is not allowed: use {' or '.join(HALF_FORMATS)}")
        if self.rounding not in (STOCHASTIC, NEAREST):
            raise UserError(f"rounding = {self.rounding!r} is not allowed: use {STOCHASTIC} or {NEAREST}")
        self._seeds = TensorSeeds(self.seed, _SALT)

    def restart(self, seed: int) -> None:
        """See :class:`Codec`."""
        self._seeds.restart(seed)

    def decompress(self, compressed: Packed) -> Tensor:
        """See :class:`Codec`."""
        return compressed.decompress()

    def compress(self, x: Tensor) -> FloatForm:
        """See :class:`Codec`. Every call draws other random numbers."""
        check_input(x)
        if not self.fits(x.shape):
            raise UserError(f"{self.name} does not take a tensor of shape {tuple(x.shape)}: use actnn-float")
        check_finite(x)
        values = x.detach().to(torch.float32).flatten()
        half = HALF_FORMATS[self.half]
        means = self._means(values, x.shape).to(half)
        whole_maps = bool(means.numel())
        if whole_maps:
            values = values - means.to(torch.float32)[pooling_cells(x.shape, x.device)]
        least, greatest = _least_and_greatest(values, x.shape, whole_maps=whole_maps)
        low = rounded_to_half(least, half, up=False)
        # With the rounded least value, so that the codes reach the greatest one.
        step = rounded_to_half((greatest - low.to(torch.float32)) / ((1 << self.bits) - 1), half, up=True)
        step = step.clamp_min(torch.finfo(half).smallest_normal)
        if not bool((low.isfinite() & step.isfinite()).all() & means.isfinite().all()):
            other = "half=bf16" if self.half == "fp16" else f"codec {self.name.removesuffix('-float')}"
            raise UserError(f"values up to {float(x.detach().abs().max()):g} do not fit {self.half}: use {other}")
        floor, width = (_spread(part.to(torch.float32), x.shape, whole_maps=whole_maps) for part in (low, step))
        added: Tensor | float = 0.5
        if self.rounding == STOCHASTIC:
            drawn = random_bits(self._seeds.next(), 0, -(-values.numel() // LANES), x.device)
            added = drawn.flatten()[: values.numel()] * 2.0**-16
        codes = ((values - floor) / width + added).floor_().clamp_(0, (1 << self.bits) - 1).to(torch.uint8)
        return FloatForm(tuple(x.shape), x.dtype, self.bits, low, step, pack_tight(codes, self.bits), means)

    @abstractmethod
    def _means(self, values: Tensor, shape: Sequence[int]) -> Tensor:
        """The low-frequency part, float32; empty without one."""


@dataclass
class DivisionFloatCodec(_FloatCodec):
    """``division-float``: DIVISION as published. Means of cells of about 8x8 values, range of the rest per map (N, C).

    Cells are 8x8 where height and width are multiples of 8. Otherwise an axis of N values is cut into ``floor(N/8)`` or
    ``ceil(N/8)`` nearly equal parts, from map to map in such turns that there is one cell for 64 values on average, which is
    how the paper counts; a map below 8 is one part.

    Parameters
    ----------
    bits
        Per value: 1, 2, 4 or 8 (paper: Q).
    half
        Format of means and ranges, ``bf16`` or ``fp16``.
    rounding, seed
        As for codec ``division``.
    """

    bits: int = 2
    half: str = "bf16"
    rounding: str = STOCHASTIC
    seed: int = 0

    name = "division-float"

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether ``shape`` is (N, C, H, W)."""
        return len(shape) == 4 and prod(shape) > 0

    def _means(self, values: Tensor, shape: Sequence[int]) -> Tensor:
        cells = pooling_cells(shape, values.device)
        count = int(cells[-1]) + 1
        sums = torch.zeros(count, dtype=torch.float64, device=values.device).index_add_(0, cells, values.to(torch.float64))
        return (sums / torch.bincount(cells, minlength=count)).to(torch.float32)


@dataclass
class ActnnFloatCodec(_FloatCodec):
    """``actnn-float``: codec ``actnn`` in floating point. Range of every 256 consecutive values, whichever sample they are of.

    Any shape. :class:`~actcodec.codecs.sample_groups.ActnnSampleCodec` has groups within samples, as published.

    Parameters as for :class:`DivisionFloatCodec`.
    """

    bits: int = 2
    half: str = "bf16"
    rounding: str = STOCHASTIC
    seed: int = 0

    name = "actnn-float"

    def _means(self, values: Tensor, shape: Sequence[int]) -> Tensor:
        return values.new_zeros(0)


def pooling_cells(shape: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
    """Number of the cell of each value of (N, C, H, W), int64 (values,): map by map, row by row."""
    _, _, height, width = shape
    maps = torch.arange(shape[0] * shape[1], device=device)
    rows, row_counts = _parts(height, device)
    columns, column_counts = _parts(width, device)
    row_turn, column_turn = maps % len(rows), maps // len(rows) % len(columns)
    across = column_counts[column_turn]
    cells = row_counts[row_turn] * across
    first = cells.cumsum(0) - cells
    down = rows[row_turn] * across[:, None]
    return (first[:, None, None] + down[:, :, None] + columns[column_turn][:, None, :]).flatten()


def _parts(extent: int, device: torch.device | str) -> tuple[Tensor, Tensor]:
    """Part of each position of an axis in each turn, int64 (turns, extent), and the number of parts (turns,)."""
    turns = torch.arange(BLOCK_SIDE // gcd(extent, BLOCK_SIDE) if extent > BLOCK_SIDE else 1, device=device)
    counts = ((turns + 1) * extent // BLOCK_SIDE - turns * extent // BLOCK_SIDE).clamp_min(1)
    return torch.arange(extent, device=device) * counts[:, None] // extent, counts


def _least_and_greatest(values: Tensor, shape: Sequence[int], *, whole_maps: bool) -> tuple[Tensor, Tensor]:
    """Of each map, or of each group of 256 (the last one may be smaller), float32 (ranges,)."""
    if whole_maps:
        least, greatest = values.view(shape[0] * shape[1], -1).aminmax(dim=1)
        return least, greatest
    full = values[-1:].expand(-(-values.numel() // GROUP_VALUES) * GROUP_VALUES).clone()
    full[: values.numel()] = values
    least, greatest = full.view(-1, GROUP_VALUES).aminmax(dim=1)
    return least, greatest


def _spread(per_range: Tensor, shape: Sequence[int], *, whole_maps: bool) -> Tensor:
    """The parameter of each value, (values,)."""
    size = prod(shape[2:]) if whole_maps else GROUP_VALUES
    return per_range.repeat_interleave(size)[: prod(shape)]


def rounded_to_half(values: Tensor, half: torch.dtype, *, up: bool) -> Tensor:
    """float32 to a 16-bit format, rounded up or down."""
    near = values.to(half)
    back = near.to(torch.float32)
    wrong = back < values if up else back > values
    distance = values.abs() * torch.finfo(half).eps + torch.finfo(half).smallest_normal * torch.finfo(half).eps
    return torch.where(wrong, (values + distance if up else values - distance).to(half), near)

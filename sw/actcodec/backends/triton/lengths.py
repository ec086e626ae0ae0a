"""Lengths of blocks, whose sums determine where every block goes.

The kernel that knows the lengths leaves their sums in units of 16 blocks and in groups of units. The sums of all groups are the
size of the payload. A program that packs a unit adds the groups, and the units of its own group, that are before it, so that
programs may run in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt

import torch
import triton
import triton.language as tl
from cdu_spec.modes import Coder
from torch import Tensor

from actcodec.backends.triton.block_starts import UNIT_BLOCKS, remember_units
from actcodec.backends.triton.launch import PROGRAM_BLOCKS, programs_for
from actcodec.backends.triton.zeros import zeros

#: Number of marks before the sums of groups, and their places: bits of the largest magnitude, channels perhaps far from zero.
_MARKS = 2
LARGEST, UNSURE, _GROUPS = tl.constexpr(0), tl.constexpr(1), tl.constexpr(_MARKS)
#: Least number of units of a group, a power of two and a multiple of the units that a program has.
_LEAST_GROUP = 128


@triton.jit
def add_lengths(
    lengths: tl.tensor, sums_ptr: tl.tensor, marks_ptr: tl.tensor, blocks: tl.tensor, group_units: tl.constexpr
) -> None:
    """Leave the sums of the lengths of a program's blocks, int32 (n,), zeros after the last block."""
    units: tl.constexpr = lengths.shape[0] // UNIT_BLOCKS
    first = tl.program_id(0).to(tl.int64) * units
    unit = first + tl.arange(0, units)
    sums = tl.sum(tl.reshape(lengths, (units, UNIT_BLOCKS)), axis=1)
    tl.store(sums_ptr + unit, sums, mask=unit * UNIT_BLOCKS < blocks)
    tl.atomic_add(marks_ptr + _GROUPS + first // group_units, tl.sum(sums, axis=0).to(tl.int64))


@triton.jit
def placed(
    lengths: tl.tensor, sums_ptr: tl.tensor, marks_ptr: tl.tensor, offsets_ptr: tl.tensor, group_units: tl.constexpr
) -> tl.tensor:
    """Return where the blocks of the program's unit begin, int64 (n,), from their lengths; store where the first one does."""
    unit, member = tl.program_id(0).to(tl.int64), tl.arange(0, group_units)
    group = unit // group_units
    beside = group * group_units + member
    inside = tl.load(sums_ptr + beside, mask=beside < unit, other=0).to(tl.int64)
    begin = tl.sum(inside + tl.load(marks_ptr + _GROUPS + member, mask=member < group, other=0), axis=0)
    tl.store(offsets_ptr + unit, begin.to(tl.int32))
    return begin + tl.cumsum(lengths, axis=0) - lengths


def _group_units(units: int) -> int:
    """Return the number of units of a group, no less than the number of groups."""
    return max(_LEAST_GROUP, 1 << isqrt(units).bit_length())


def marks_for(blocks: int) -> int:
    """Return the number of marks, int64, that kernels leave for the host with the sums of groups of blocks."""
    units = programs_for(blocks, PROGRAM_BLOCKS)
    return _MARKS + programs_for(units, _group_units(units))


@dataclass(frozen=True, eq=False)
class Lengths:
    """Sums of the lengths of blocks that a coder will write."""

    coder: Coder
    blocks: int
    marks: Tensor  #: int64 (:func:`marks_for`,)
    sums: Tensor  #: int32 (units,)

    @classmethod
    def of(cls, coder: Coder, blocks: int, device: torch.device, marks: Tensor | None) -> Lengths:
        """Return memory for the sums; ``marks`` are zeros, or None."""
        marks = zeros(marks_for(blocks), device) if marks is None else marks
        sums = torch.empty(programs_for(blocks, PROGRAM_BLOCKS), dtype=torch.int32, device=device)
        return cls(coder, blocks, marks, sums)

    @property
    def units(self) -> int:
        """Return the number of units, which is that of the programs that pack them."""
        return self.sums.numel()

    @property
    def shape(self) -> dict[str, int]:
        """Return the constant of kernels that leave and add sums."""
        return {"group_units": _group_units(self.units)}


def sums_of(lengths: Lengths | None, other: Tensor) -> tuple[tuple[Tensor, Tensor], dict[str, int]]:
    """Return arguments and constants of kernels that leave sums; without lengths they leave none, and take any other tensor."""
    return ((other, other), {"group_units": 0}) if lengths is None else ((lengths.sums, lengths.marks), lengths.shape)


#: Function that writes a payload, uint8 (n,), and the offsets of its units, int32 (units,).
Pack = Callable[[Tensor, Tensor], None]


@dataclass(frozen=True, eq=False)
class Measured:
    """Blocks whose lengths kernels know, and the kernel that packs them."""

    lengths: Lengths
    pack: Pack

    def payload(self, size: int | None = None) -> Tensor:
        """Return the payload, which has ``size`` bytes; without a size, the host waits for the device and reads it."""
        found, marks = self.lengths, self.lengths.marks
        size = sum(marks[_MARKS:].tolist()) if size is None else size
        payload = torch.empty(size, dtype=torch.uint8, device=marks.device)
        offsets = torch.empty(found.units, dtype=torch.int32, device=marks.device)
        self.pack(payload, offsets)
        remember_units(payload, offsets, found.blocks, found.coder)
        return payload

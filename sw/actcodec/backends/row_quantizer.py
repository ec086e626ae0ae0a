"""The arithmetic of ``acgc-quant`` on all values of a tensor, by torch: rows of whole numbers of steps in 1 to 16 bits.

This is the specification of every other way to compute it. A row is a channel, axis 1, or the whole tensor where one step is
given for it; the codes of a row are those of its values in the order of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from cdu_spec.geometry import LANES
from torch import Tensor

from actcodec.golden.codes import pack_tight, unpack_tight
from actcodec.golden.formats import as_dtype
from actcodec.golden.random_bits import stochastically_rounded_

_BYTE = 8


@dataclass(frozen=True, eq=False)
class RowSteps:
    """How the values of each row are quantised; all (rows,)."""

    steps: Tensor  #: float32, positive
    bits: Tensor  #: uint8, 1 to 16: of a code
    signed: Tensor  #: boolean: a code's highest bit counts negative

    @property
    def ends(self) -> tuple[Tensor, Tensor]:
        """See :func:`code_ends`."""
        return code_ends(self.bits.to(torch.float64), self.signed)

    @property
    def widths(self) -> list[int]:
        """The numbers of bits that occur, ascending."""
        return sorted(set(self.bits.tolist()))

    def places(self, counts: Tensor) -> tuple[dict[int, tuple[int, int]], int]:
        """Where the codes of each width begin in the stream if rows have so many, int64 (rows,); and its bytes.

        Of codes of more than a byte the lower 8 bits of all come first, then what is above: a first byte for each.
        """
        found, first = {}, 0
        for width in self.widths:
            count = int(counts[self.bits == width].sum())
            low = -(-count * min(width, _BYTE) // LANES)
            found[width] = first, first + low
            first += low + -(-count * max(width - _BYTE, 0) // LANES)
        return found, first


class RowQuantizer:
    """Codes of rows, those of one width together, without gaps; and what they stand for."""

    def codes(self, x: Tensor, rows: RowSteps, seed: int, *, drop_zeros: bool) -> tuple[Tensor, Tensor]:
        """Finite x in steps, rounded up with the probability of the fraction, limited to what the codes reach.

        Returns a mask of the codes that are not zero, uint8 (ceil(values / 8),), where zeros are dropped, else (0,); and the
        codes that are kept, uint8 (bytes,), see :meth:`RowSteps.places`.
        """
        least, greatest = rows.ends
        exact = by_row(x, len(rows.steps)).transpose(0, 1).flatten(1).to(torch.float64) / rows.steps.to(torch.float64)[:, None]
        codes = stochastically_rounded_(exact, seed)
        codes = torch.minimum(torch.maximum(codes, -least[:, None]), greatest[:, None]).to(torch.int32)
        present = codes != 0
        packed = []
        for width in rows.widths:
            chosen = rows.bits == width
            kept = codes[chosen][present[chosen]] if drop_zeros else codes[chosen].flatten()
            packed.append(_packed(kept & ((1 << width) - 1), width))
        mask = pack_tight(present.flatten().to(torch.uint8), 1) if drop_zeros else rows.bits[:0]
        return mask, torch.cat(packed)

    def values(self, codes: Tensor, mask: Tensor, rows: RowSteps, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """The products of codes and steps in ``shape`` and ``dtype``; an empty mask: all codes are there."""
        whole, count = tuple(shape), len(rows.steps)
        size = (count, prod(whole) // count)
        present = unpack_tight(mask, 1, prod(size)).view(size).to(torch.bool) if mask.numel() else None
        places, _ = rows.places(torch.full((count,), size[1]) if present is None else present.sum(1).cpu())
        numbers = torch.zeros(size, dtype=torch.int32, device=codes.device)
        for width, (first, _) in places.items():
            chosen = (rows.bits == width)[:, None].expand(size)
            if present is not None:
                chosen = chosen & present
            numbers[chosen] = _unpacked(codes[first:], width, int(chosen.sum()))
        half, above = (torch.exp2(power).to(torch.int32)[:, None] for power in (rows.bits - 1.0, rows.bits.to(torch.float64)))
        numbers -= torch.where(rows.signed[:, None] & (numbers >= half), above, torch.zeros_like(above))
        values = as_dtype((numbers.to(torch.float64) * rows.steps.to(torch.float64)[:, None]).to(torch.float32), dtype)
        if count == 1:
            return values.view(whole)
        return values.view(whole[1], whole[0], *whole[2:]).transpose(0, 1).contiguous()


def code_ends(bits: Tensor, signed: Tensor) -> tuple[Tensor, Tensor]:
    """How many steps codes of so many bits, float64 (rows,), reach below and above zero, float64 (rows,)."""
    least = torch.where(signed, torch.exp2(bits - 1), 0.0)
    return least, torch.exp2(bits) - 1 - least


def by_row(x: Tensor, count: int) -> Tensor:
    """A tensor of rank 2 or more, or with one row, as (outer, rows, inner)."""
    return x.reshape(x.shape[0], count, -1) if count > 1 else x.reshape(1, 1, -1)


def _packed(codes: Tensor, width: int) -> Tensor:
    """int32 (n,), each below 2**width, to bytes: the lower 8 bits of all, then what is above."""
    parts = [pack_tight((codes & 255).to(torch.uint8), min(width, _BYTE))]
    if width > _BYTE:
        parts.append(pack_tight((codes >> _BYTE).to(torch.uint8), width - _BYTE))
    return torch.cat(parts)


def _unpacked(packed: Tensor, width: int, count: int) -> Tensor:
    """The inverse of :func:`_packed`, of a stream that begins with these codes."""
    low, high = min(width, _BYTE), max(width - _BYTE, 0)
    split = -(-count * low // LANES)
    codes = unpack_tight(packed[:split], low, count).to(torch.int32)
    if high:
        codes |= unpack_tight(packed[split : split - (-count * high // LANES)], high, count).to(torch.int32) << _BYTE
    return codes

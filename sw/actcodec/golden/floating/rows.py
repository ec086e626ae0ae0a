"""Arithmetic of ``acgc-quant``: rows of whole numbers of steps in 1 to 16 bits.

A row is a channel, axis 1, or the whole tensor if it has one step; the codes of a row are in the order of memory, and those of
one width lie together, without gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from cdu_spec.geometry import LANES
from torch import Tensor

from actcodec.golden.codes import pack_tight, unpack_part
from actcodec.golden.formats import as_dtype
from actcodec.golden.movement import select
from actcodec.golden.random_bits import stochastically_rounded_
from actcodec.golden.rows import Piece, Rows

_BYTE, _LOWEST = 8, 255


@dataclass(frozen=True, eq=False)
class RowSteps:
    """Quantisation parameters of each row, all (rows,)."""

    steps: Tensor  #: float32, positive
    bits: Tensor  #: uint8, 1 to 16: bits of a code
    signed: Tensor  #: boolean: whether a code's highest bit counts negative

    @property
    def ends(self) -> tuple[Tensor, Tensor]:
        """Return the steps that codes reach below and above zero, float64 (rows,); see :func:`code_ends`."""
        return code_ends(self.bits.to(torch.float64), self.signed)

    @property
    def widths(self) -> list[int]:
        """Return the numbers of bits that occur, ascending."""
        return sorted(set(self.bits.tolist()))

    def places(self, counts: Tensor) -> tuple[dict[int, tuple[int, int]], int]:
        """Return where the codes of each width begin in the stream, and the bytes of the stream.

        ``counts``, int64 (rows,), is the number of codes of each row. Codes of more than a byte are stored as the lower 8 bits
        of all codes, then their upper bits; each width has a first byte for both parts.
        """
        found, first = {}, 0
        for width in self.widths:
            count = int(counts[self.bits == width].sum())
            low = -(-count * min(width, _BYTE) // LANES)
            found[width] = first, first + low
            first += low + -(-count * max(width - _BYTE, 0) // LANES)
        return found, first


def codes(x: Tensor, steps: RowSteps, seed: int, *, drop_zeros: bool) -> tuple[Tensor, Tensor]:
    """Return codes of finite x in steps, rounded up with the probability of the fraction, limited to the codes' range.

    The first result is a mask of the nonzero codes, uint8 (ceil(values / 8),), if zeros are dropped, else (0,); the second
    is the kept codes, uint8 (bytes,), as :meth:`RowSteps.places` describes.
    """
    planes = _planes(x, steps, seed)
    present = ((planes[0] if len(planes) == 1 else planes.amax(0)) != 0) if drop_zeros else None
    parts = []
    for width in steps.widths:
        rows = slice(None) if bool((steps.bits == width).all()) else steps.bits == width
        for place, plane in enumerate(planes[: -(-width // _BYTE)]):
            codes = plane[rows] if present is None else select(plane[rows], present[rows])
            parts.append(pack_tight(codes.flatten(), min(width - _BYTE * place, _BYTE)))
    mask = steps.bits[:0] if present is None else pack_tight(present.view(torch.uint8).flatten(), 1)
    return mask, torch.cat(parts)


def values(codes: Tensor, mask: Tensor, steps: RowSteps, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Return the products of codes and steps in ``shape`` and ``dtype``; with an empty mask all codes are present."""
    rows = Rows(tuple(shape), len(steps.steps))
    counts = torch.full((rows.count,), 0 if mask.numel() else rows.length, device=codes.device)
    if mask.numel():
        for piece in rows.pieces(codes.device):
            counts[piece[0]] += _present(mask, rows, piece).sum(1)
    of_width = {width: _Codes(codes, width, first) for width, first in steps.places(counts)[0].items()}
    rebuilt = torch.empty(tuple(shape), dtype=dtype, device=codes.device)
    for piece in rows.pieces(rebuilt.device):
        whole = _whole_steps(_present(mask, rows, piece), steps, piece[0], of_width)
        values = (whole.to(torch.float64) * steps.steps[piece[0], None].to(torch.float64)).to(torch.float32)
        rows.put(rebuilt, piece, as_dtype(values, dtype))
    return rebuilt


def _planes(x: Tensor, steps: RowSteps, seed: int) -> Tensor:
    """Return codes as planes of their lower 8 bits and, beyond 8 bits, of their upper bits, uint8 (planes, rows, values)."""
    least, greatest = (end[:, None] for end in steps.ends)
    rows = Rows(tuple(x.shape), len(steps.steps))
    count = 2 if int(steps.bits.max()) > _BYTE else 1
    planes = torch.empty(count, rows.count, rows.length, dtype=torch.uint8, device=x.device)
    for piece in rows.pieces(x.device):
        exact = rows.taken(x, piece).to(torch.float64).div_(steps.steps[piece[0], None].to(torch.float64))
        rounded = stochastically_rounded_(exact, seed, rows.first(piece))
        codes = torch.minimum(torch.maximum(rounded, -least[piece[0]]), greatest[piece[0]]).to(torch.int32)
        codes &= (1 << steps.bits[piece[0], None].to(torch.int32)) - 1
        for place, plane in enumerate(planes):
            plane[piece] = codes >> _BYTE * place & _LOWEST
    return planes


def _present(mask: Tensor, rows: Rows, piece: Piece) -> Tensor:
    """Return whether the values of a piece have a code, boolean (rows, values)."""
    shape = tuple(extent.stop - extent.start for extent in piece)
    if not mask.numel():
        return torch.ones(shape, dtype=torch.bool, device=mask.device)
    first = rows.first(piece)
    return unpack_part(mask, 1, slice(first, first + prod(shape))).view(torch.bool).view(shape)


def _whole_steps(present: Tensor, steps: RowSteps, rows: slice, codes: dict[int, _Codes]) -> Tensor:
    """Return the next values of some rows in steps, int32 (rows, values); ``present`` marks those with a code."""
    bits = steps.bits[rows]
    whole = torch.zeros(present.shape, dtype=torch.int32, device=bits.device)
    for width in sorted(set(bits.tolist())):
        chosen = present & (bits == width)[:, None]
        whole[chosen] = codes[width].take(int(chosen.sum()))
    range_ = 1 << bits[:, None].to(torch.int32)
    return whole.sub_(torch.where(steps.signed[rows, None] & (2 * whole >= range_), range_, torch.zeros_like(range_)))


class _Codes:
    """Reader of the codes of one width."""

    def __init__(self, codes: Tensor, width: int, first: tuple[int, int]) -> None:
        self._low, self._high = codes[first[0] :], codes[first[1] :]
        self._width, self._first = width, 0

    def take(self, count: int) -> Tensor:
        """Return the next ``count`` codes, int32 (count,)."""
        here = slice(self._first, self._first + count)
        self._first = here.stop
        codes = unpack_part(self._low, min(self._width, _BYTE), here).to(torch.int32)
        if self._width > _BYTE:
            codes |= unpack_part(self._high, self._width - _BYTE, here).to(torch.int32) << _BYTE
        return codes


def code_ends(bits: Tensor, signed: Tensor) -> tuple[Tensor, Tensor]:
    """Return the numbers of steps that codes of ``bits`` bits reach below and above zero; all float64 (rows,)."""
    least = torch.where(signed, torch.exp2(bits - 1), 0.0)
    return least, torch.exp2(bits) - 1 - least


def by_row(x: Tensor, count: int) -> Tensor:
    """Return a tensor of rank 2 or more, or with one row, as (outer, rows, inner)."""
    return x.reshape(x.shape[0], count, -1) if count > 1 else x.reshape(1, 1, -1)

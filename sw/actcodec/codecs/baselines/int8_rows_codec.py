"""Integers of eight bits with one scale per row of the last dimension, as in libraries for 8-bit layers.

In a row with the greatest magnitude m, a value x is stored as round(127 x / m), ties to even, and decoded to that times m /
127. This is the vector-wise quantisation of Dettmers et al., "LLM.int8()", NeurIPS 2022, section 3.1, without its outliers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite

import torch
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.codec import Codec, check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.golden.formats import quotient
from actcodec.golden.pieces import piece_values

#: Integer of a row's greatest magnitude.
FULL_SCALE = torch.iinfo(torch.int8).max


@dataclass(frozen=True, eq=False)
class Int8RowsForm:
    """Tensor as integers, and the greatest magnitude of each row."""

    dtype: torch.dtype
    codes: Tensor  #: int8, in the shape of the tensor
    greatest: Tensor  #: float32 (rows,)

    @property
    def nbytes(self) -> int:
        """Return the bytes of integers and magnitudes (shape and format are not counted)."""
        return self.codes.nbytes + self.greatest.nbytes

    def to_bytes(self) -> bytes:
        """Raise UserError: no bitstream is defined for this form."""
        raise UserError("codec 'int8-rows' has no bitstream: use sfpr")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed tensor."""
        rebuilt = torch.empty_like(self.codes, dtype=self.dtype)
        for into, codes, greatest in _in_pieces(_rows(rebuilt), _rows(self.codes), self.greatest[:, None]):
            into.copy_(quotient(codes.to(torch.float32), FULL_SCALE) * greatest)
        return rebuilt


@dataclass
class Int8RowsCodec(Codec):
    """Codec ``int8-rows``: 8 bits per value with one scale per row of the last dimension. Refuses NaN and infinity."""

    name = "int8-rows"
    centred = True

    def compress(self, x: Tensor) -> Int8RowsForm:
        """Implement :class:`Codec`."""
        check_input(x)
        values = x.detach().contiguous()
        codes = torch.empty_like(values, dtype=torch.int8)
        greatest = values.new_empty(values.numel() // values.shape[-1], dtype=torch.float32)
        for into, rows, most in _in_pieces(_rows(codes), _rows(values), greatest):
            most.copy_(rows.abs().amax(1))
            into.copy_((rows / torch.where(most > 0, most, 1.0)[:, None]).mul_(FULL_SCALE).round_())
        if not isfinite(greatest.amax()):
            check_finite(x)
        return Int8RowsForm(x.dtype, codes, greatest)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress()


def _rows(x: Tensor) -> Tensor:
    """Return a contiguous tensor as (rows, values)."""
    return x.view(-1, x.shape[-1])


def _in_pieces(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield tensors (rows, ...) some rows at a time, as many as suit the first one."""
    rows, values = tensors[0].shape
    step = max(1, piece_values(rows * values, tensors[0].device) // values)
    return (tuple(one[first : first + step] for one in tensors) for first in range(0, rows, step))

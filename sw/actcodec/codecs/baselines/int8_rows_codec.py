"""Integers of eight bits with one scale per row of the last dimension, as in libraries for 8-bit layers.

In a row with the greatest magnitude m, a value x is stored as round(127 x / m), ties to even, and decoded to that times m /
127. This is the vector-wise quantisation of Dettmers et al., "LLM.int8()", NeurIPS 2022, section 3.1, without its outliers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.named import backend as backend_of
from actcodec.backends.near_zero import begin_near_zero
from actcodec.codecs.codec import Codec, check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.golden.floating import scaled_rows


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
        values = backend_of(backend).run(scaled_rows.values, _rows(self.codes), self.greatest, self.dtype)
        return values.view(self.codes.shape)


@dataclass
class Int8RowsCodec(Codec):
    """Codec ``int8-rows``: 8 bits per value with one scale per row of the last dimension. Refuses NaN and infinity.

    Parameters
    ----------
    backend
        ``torch``, or a backend that computes the same in less time: ``native``, ``triton`` or ``auto``.
    """

    backend: str | Backend = "torch"

    name = "int8-rows"
    centred = True

    def __post_init__(self) -> None:
        self._backend = backend_of(self.backend)

    def compress(self, x: Tensor) -> Int8RowsForm:
        """Implement :class:`Codec`."""
        form, unfit = self._coded(x)
        if bool(unfit):
            check_finite(x, self._backend)
        return form

    def begin(self, x: Tensor) -> Callable[[], Int8RowsForm | None] | None:
        """Implement :class:`Codec`."""
        check_input(x)
        own = type(self).compress is Int8RowsCodec.compress
        near = begin_near_zero(self._backend, x.detach().contiguous()) if own else None
        if near is None:
            return None
        form, _ = self._coded(x)
        return lambda: form if near.holds() else None

    def _coded(self, x: Tensor) -> tuple[Int8RowsForm, Tensor]:
        """Return the form of a tensor, and a number that is not 0 if values are not all finite."""
        check_input(x)
        codes, greatest, unfit = self._backend.run(scaled_rows.codes, _rows(x.detach().contiguous()))
        return Int8RowsForm(x.dtype, codes.view(x.shape), greatest), unfit

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress(self._backend)


def _rows(x: Tensor) -> Tensor:
    """Return a contiguous tensor as (rows, values)."""
    return x.view(-1, x.shape[-1])

"""Storage in bfloat16, the upper half of every float32, rounded to nearest: the usual way to save memory without a codec."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.codec import Codec, check_finite, check_input
from actcodec.codecs.compressed import Packed


@dataclass(frozen=True, eq=False)
class Bf16Form:
    """Tensor in 16 bits per value."""

    dtype: torch.dtype
    values: Tensor  #: bfloat16, or the tensor's own dtype if that has 16 bits

    @property
    def nbytes(self) -> int:
        """Return the bytes of the values (shape and format are not counted)."""
        return self.values.nbytes

    def to_bytes(self) -> bytes:
        """Raise UserError: no bitstream is defined for this form."""
        raise UserError("codec 'bf16' has no bitstream: use bypass of a tensor in bfloat16")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the tensor, in memory of its own."""
        return self.values.to(self.dtype, copy=True)


@dataclass
class Bf16Codec(Codec):
    """Codec ``bf16``: every value in bfloat16. Takes any shape; tensors in 16 bits stay as they are.

    Rounding is to nearest, ties to even; values that would become infinite become the greatest number. NaN and infinity are
    refused.
    """

    name = "bf16"
    centred = True

    def compress(self, x: Tensor) -> Bf16Form:
        """Implement :class:`Codec`."""
        check_input(x)
        check_finite(x)
        if x.dtype != torch.float32:
            return Bf16Form(x.dtype, x.detach().clone())
        greatest = torch.finfo(torch.bfloat16).max
        return Bf16Form(x.dtype, x.detach().to(torch.bfloat16).clamp_(-greatest, greatest))

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress()

"""Tensors compressed in NVFP4."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from cdu_spec.mx import NVFP4, TENSOR_SCALE_BYTES
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.named import backend as backend_of
from actcodec.golden.floating.blocks import nvfp4_values
from actcodec.golden.shapes import header_bytes


@dataclass(frozen=True, eq=False)
class Nvfp4Form:
    """Blocks of NVFP4 (docs/reference/bitstream.md, "Blocks of NVFP4"), and the scale of the tensor."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    scale: Tensor  #: float32 ()
    payload: Tensor  #: uint8 (bytes,)

    @property
    def nbytes(self) -> int:
        """Return the bytes of a header, the scale and the blocks."""
        return header_bytes(self.shape) + TENSOR_SCALE_BYTES + self.payload.numel()

    def to_bytes(self) -> bytes:
        """Raise UserError: the blocks have no header of their own."""
        raise UserError(f"codec {NVFP4!r} has no bitstream: use mxfp4")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed tensor."""
        return backend_of(backend).run(nvfp4_values, self.payload, self.scale, self.shape, self.dtype)

"""What is kept of a tensor in MX or NVFP4."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from cdu_spec.mx import MX_FORMATS, NVFP4, TENSOR_SCALE_BYTES
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.backend import backend as backend_of
from actcodec.golden.shapes import header_bytes


@dataclass(frozen=True, eq=False)
class MxForm:
    """Blocks of MX (docs/reference/bitstream.md, "Blocks of MX and NVFP4")."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    codec: str  #: name in :data:`~cdu_spec.mx.MX_FORMATS`
    payload: Tensor  #: uint8 (bytes,)

    @property
    def nbytes(self) -> int:
        """Bytes of a header and the blocks."""
        return header_bytes(self.shape) + self.payload.numel()

    def to_bytes(self) -> bytes:
        """Raises UserError: the blocks have no header of their own."""
        raise no_stream(self.codec)

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The reconstructed tensor."""
        quantizer = backend_of(backend).block_quantizer()
        return quantizer.mx_values(self.payload, MX_FORMATS[self.codec], self.shape, self.dtype)


@dataclass(frozen=True, eq=False)
class Nvfp4Form:
    """Blocks of NVFP4, and the scale of the tensor."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    scale: Tensor  #: float32 ()
    payload: Tensor  #: uint8 (bytes,)

    @property
    def nbytes(self) -> int:
        """Bytes of a header, the scale and the blocks."""
        return header_bytes(self.shape) + TENSOR_SCALE_BYTES + self.payload.numel()

    def to_bytes(self) -> bytes:
        """Raises UserError: the blocks have no header of their own."""
        raise no_stream(NVFP4)

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The reconstructed tensor."""
        return backend_of(backend).block_quantizer().nvfp4_values(self.payload, self.scale, self.shape, self.dtype)


def no_stream(codec: str) -> UserError:
    """The error of asking for a stream."""
    return UserError(f"codec {codec!r} has no bitstream: use sfpr")

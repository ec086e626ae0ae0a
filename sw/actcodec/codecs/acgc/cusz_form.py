"""Tensors compressed by codec ``cusz``."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.named import backend as backend_of
from actcodec.golden.floating.predicted import Predicted, products
from actcodec.golden.predicted_integers import Coded
from actcodec.golden.shapes import header_bytes


@dataclass(frozen=True, eq=False)
class CuszForm:
    """Compressed tensor, its parts in memory on the tensor's device."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    dimensions: int  #: axes that predict, 0 to 3
    steps: Tensor  #: float32 (1,) or (channels,)
    differences: Coded
    places: Tensor  #: int64 (outliers,): positions in the flattened tensor of values with too many steps
    outliers: Tensor  #: values at these positions, of dtype ``dtype``

    @property
    def nbytes(self) -> int:
        """Return the bytes that decoding needs: header, shape, steps, coded differences, and outliers with their places."""
        parts = (self.steps, self.places, self.outliers)
        return header_bytes(self.shape) + self.differences.nbytes + sum(part.numel() * part.element_size() for part in parts)

    def to_bytes(self) -> bytes:
        """Raise UserError: there is no stream of this form."""
        raise UserError("codec 'cusz' has no bitstream: use autoquant or sfpr")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed tensor, float64 products rounded to the tensor's dtype."""
        predicted = Predicted(self.dimensions, self.differences, self.places)
        values = backend_of(backend).run(products, predicted, self.steps, self.shape, self.dtype)
        values.view(-1)[self.places] = self.outliers
        return values

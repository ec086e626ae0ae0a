"""Copies in steps of a feature: codec ``blpa-coded`` of a tensor seen as rows of features, which its last axis counts.

Tokens, heads and rows of a linear layer have features last, while maps have channels second. In a sequence the second axis
counts positions: with steps per position, the same number of bytes leaves a larger error in the gradient
(docs/methods/transformer.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.actnn.float_forms import no_bitstream
from actcodec.codecs.blpa.blpa_coded import BlpaCodedCodec
from actcodec.codecs.codec import check_finite, check_input
from actcodec.codecs.compressed import Packed

#: Values of the option ``steps_of``.
FEATURE, TOKEN = "feature", "token"


@dataclass(frozen=True, eq=False)
class FeatureForm:
    """Copy of the rows of a tensor."""

    shape: tuple[int, ...]
    rows: Packed  #: copy of shape (rows, features), or (1, rows, features)

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype of the original."""
        dtype: torch.dtype = self.rows.dtype  # type: ignore[attr-defined]
        return dtype

    @property
    def nbytes(self) -> int:
        """Return the bytes of the copy of the rows."""
        return self.rows.nbytes

    def to_bytes(self) -> bytes:
        """Raise UserError: a floating-point form is not a stream."""
        raise no_bitstream()

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the values in shape and dtype of the original, by the codec's own backend."""
        return self.rows.decompress().view(self.shape)


@dataclass
class FeatureCodedCodec(BlpaCodedCodec):
    """Codec ``feature-coded``: steps of ``6 gamma / 2**bits``, coded; gamma is the deviation of a feature. Takes any shape.

    Signs are kept as in codec ``blpa-coded``. Copies of batch normalisations still have channels second.

    Parameters
    ----------
    bits, backend, coder
        As for :class:`~actcodec.codecs.blpa.blpa_coded.BlpaCodedCodec`.
    steps_of
        Unit with a step of its own: ``feature``, a place on the last axis, or ``token``, all features of a place on the others.
    """

    bits: float = 4
    steps_of: str = FEATURE

    name = "feature-coded"

    def __post_init__(self) -> None:
        if self.steps_of not in (FEATURE, TOKEN):
            raise UserError(f"steps_of = {self.steps_of!r} is not allowed: use {FEATURE} or {TOKEN}")
        super().__post_init__()

    def compress(self, x: Tensor) -> FeatureForm:  # type: ignore[override]
        """Implement :class:`Codec`."""
        check_input(x)
        check_finite(x, self.arithmetic)
        rows = x.detach().reshape(-1, x.shape[-1])
        return FeatureForm(tuple(x.shape), super().compress(rows if self.steps_of == FEATURE else rows[None]))

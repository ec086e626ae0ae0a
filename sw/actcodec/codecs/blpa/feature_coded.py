"""Copies in steps of a feature: codec ``blpa-coded`` of a tensor seen as rows of features, which its last axis counts.

Tokens, heads and rows of a linear layer have features last, where maps have channels second. With steps of the second axis,
which there counts places in a sequence, as many bytes leave a gradient that is farther off (docs/methods/transformer.md).
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

#: What may have a step of its own.
FEATURE, TOKEN = "feature", "token"


@dataclass(frozen=True, eq=False)
class FeatureForm:
    """A copy of the rows of a tensor."""

    shape: tuple[int, ...]
    rows: Packed  #: of shape (rows, features), or (1, rows, features)

    @property
    def dtype(self) -> torch.dtype:
        """Of the original."""
        dtype: torch.dtype = self.rows.dtype  # type: ignore[attr-defined]
        return dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the copy of the rows."""
        return self.rows.nbytes

    def to_bytes(self) -> bytes:
        """Raises UserError: a floating-point form is not a stream."""
        raise no_bitstream()

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The values in shape and dtype of the original, by the codec's own backend."""
        return self.rows.decompress().view(self.shape)


@dataclass
class FeatureCodedCodec(BlpaCodedCodec):
    """``feature-coded``: any tensor in steps of ``6 gamma / 2**bits``, coded; gamma is the deviation of a feature.

    Signs are kept as in codec ``blpa-coded``. Copies of batch normalisations have channels second.

    Parameters
    ----------
    bits, backend
        As for :class:`~actcodec.codecs.blpa.blpa_coded.BlpaCodedCodec`.
    steps_of
        What has a step of its own: ``feature``, a place on the last axis, or ``token``, all features of a place on the others.
    """

    bits: float = 4
    steps_of: str = FEATURE

    name = "feature-coded"

    def __post_init__(self) -> None:
        if self.steps_of not in (FEATURE, TOKEN):
            raise UserError(f"steps_of = {self.steps_of!r} is not allowed: use {FEATURE} or {TOKEN}")
        super().__post_init__()

    def compress(self, x: Tensor) -> FeatureForm:  # type: ignore[override]
        """See :class:`Codec`."""
        check_input(x)
        check_finite(x, self.arithmetic.channel_maxima)
        rows = x.detach().reshape(-1, x.shape[-1])
        return FeatureForm(tuple(x.shape), super().compress(rows if self.steps_of == FEATURE else rows[None]))

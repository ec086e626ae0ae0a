"""DIVISION as published: the low-frequency part in 16-bit floating point, the rest in a few bits per value (section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from cdu_spec.geometry import BLOCK_SIDE
from cdu_tools.errors import UserError
from cdu_tools.numbers import is_whole
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.named import backend as backend_of
from actcodec.codecs.actnn.float_forms import HALF_FORMATS, FloatCodec, FloatForm, no_bitstream
from actcodec.codecs.affine.affine_codecs import STOCHASTIC
from actcodec.golden.floating import ranges
from actcodec.golden.pooling import MAP_RANKS, Means, Pooling, map_size

#: Values of the option ``parts``: both parts, or, for comparison, fewer (the paper's ablations).
BOTH, LOW, HIGH, PLAIN = PARTS = ("both", "low", "high", "plain")


@dataclass(frozen=True, eq=False)
class DivisionForm:
    """Tensor as two parts, either of which may be left out."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    block: int
    means: Tensor  #: 16-bit floats (cells,); empty without a low-frequency part
    high: FloatForm | None  #: codes of the values less means

    @property
    def nbytes(self) -> int:
        """Return the bytes of means, parameters and codes (as in the paper, without shape, format and block)."""
        return self.means.numel() * self.means.element_size() + (0 if self.high is None else self.high.nbytes)

    def to_bytes(self) -> bytes:
        """Raise UserError: a floating-point form is not a stream."""
        raise no_bitstream()

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed tensor, computed in float32: nearest upsampling of the means, plus the rest."""
        computes = backend_of(backend)
        means = Means(Pooling.of(self.shape, self.block, self.means.device), self.means) if self.means.numel() else None
        if self.high is not None:
            return self.high.rebuilt(computes, means)
        assert means is not None, "one part is kept at least"
        return computes.run(ranges.upsampled, means.means, means.pooling, self.shape, self.dtype)


#: Greatest side of a cell, more than any map has.
_MOST_SIDE = 65_536


@dataclass
class DivisionFloatCodec(FloatCodec):
    """Codec ``division-float``: DIVISION as published, with means of B x B cells, and codes of the rest with a range per map.

    In (N, C, H, W) a map is the values of one (n, c); in (N, F) and (N, S, F) it is a row of features, pooled along that axis
    alone. Cells are B x B where height and width are multiples of B; :mod:`actcodec.golden.pooling` describes other sizes.

    Parameters
    ----------
    bits
        Bits per value: 1, 2, 4 or 8 (paper: Q).
    block
        Side of a cell, 1 or more (paper: B). A smaller map has one mean.
    half
        Format of means and ranges, ``bf16`` or ``fp16``.
    parts
        Parts that are kept: ``both``; ``low``, the means alone; ``high``, the codes alone, so that means are lost; ``plain``,
        codes of the values themselves, without means. All but ``both`` are the paper's ablations.
    rounding
        ``stochastic`` or ``nearest``.
    seed
        Number, 0 to 2**32 - 1, that the seeds of tensors follow from (:class:`~actcodec.codecs.tensor_seeds.TensorSeeds`).
    backend
        ``torch``, or a backend that computes the same in less time, such as ``native``.
    """

    bits: int = 2
    block: int = BLOCK_SIDE
    half: str = "bf16"
    parts: str = BOTH
    rounding: str = STOCHASTIC
    seed: int = 0
    backend: str | Backend = "torch"

    name = "division-float"

    def __post_init__(self) -> None:
        if not is_whole(self.block, 1, _MOST_SIDE):
            raise UserError(f"block = {self.block!r} is not allowed: use 1 to {_MOST_SIDE} values")
        if self.parts not in PARTS:
            raise UserError(f"parts = {self.parts!r} is not allowed: use {', '.join(PARTS)}")
        super().__post_init__()

    def takes(self, shape: Sequence[int]) -> bool:
        """Return whether ``shape`` is (N, F), (N, S, F) or (N, C, H, W)."""
        return len(shape) in MAP_RANKS and prod(shape) > 0

    def compress(self, x: Tensor) -> DivisionForm:
        """Implement :class:`~actcodec.codecs.codec.Codec`. Every call draws new random numbers."""
        x, shape = self._checked(x), tuple(x.shape)
        half, means = HALF_FORMATS[self.half], None
        if self.parts != PLAIN:
            pooling = Pooling.of(shape, self.block, x.device)
            # Means are rounded first, because decoding adds rounded ones.
            means = Means(pooling, self._backend.run(ranges.means, x, pooling).to(half))
            self._check_range(x, means.means)
        high = None if self.parts == LOW else self._quantised(x, prod(map_size(shape)), means)
        kept = torch.zeros(0, dtype=half, device=x.device) if means is None or self.parts == HIGH else means.means
        return DivisionForm(shape, x.dtype, self.block, kept, high)

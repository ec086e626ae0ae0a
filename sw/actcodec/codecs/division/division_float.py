"""DIVISION as published: the low-frequency part in 16-bit floating point, the rest in a few bits per value (section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from cdu_spec.geometry import BLOCK_SIDE
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.actnn.float_forms import HALF_FORMATS, FloatCodec, FloatForm, no_bitstream, range_pieces
from actcodec.codecs.affine.affine_codecs import STOCHASTIC
from actcodec.codecs.division.pooling import MAP_RANKS, cell_means, map_size, pooling_cells
from actcodec.golden.formats import as_dtype

#: What may be kept: both parts, or, for comparison, less (the paper's ablations).
BOTH, LOW, HIGH, PLAIN = PARTS = ("both", "low", "high", "plain")


@dataclass(frozen=True, eq=False)
class DivisionForm:
    """A tensor as two parts, either of which may be left out."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    block: int
    means: Tensor  #: 16-bit floats (cells,); empty without a low-frequency part
    high: FloatForm | None  #: the rest

    @property
    def nbytes(self) -> int:
        """Bytes of means, parameters and codes (the paper's account: shape, format and block are not counted)."""
        return self.means.numel() * self.means.element_size() + (0 if self.high is None else self.high.nbytes)

    def to_bytes(self) -> bytes:
        """Raises UserError: a floating-point form is not a stream."""
        raise no_bitstream()

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The reconstructed tensor, float32 arithmetic: nearest upsampling of the means, and the rest."""
        means = _Means(self.shape, self.block, self.means)
        if self.high is not None:
            return self.high.rebuilt(means.add_to if self.means.numel() else lambda values, part: None)
        rebuilt = torch.zeros(prod(self.shape), dtype=self.dtype, device=self.means.device)
        for part in range_pieces(rebuilt.numel(), prod(map_size(self.shape)), rebuilt.device):
            rebuilt[part] = as_dtype(means.at(part), self.dtype)
        return rebuilt.view(self.shape)


@dataclass(frozen=True, eq=False)
class _Means:
    """Nearest upsampling of means."""

    shape: tuple[int, ...]
    block: int
    means: Tensor  #: 16-bit floats (cells,)

    def at(self, part: slice) -> Tensor:
        """The mean at the places of a piece of whole maps, float32 (n,)."""
        return self.means[_cells(self.shape, self.block, self.means.device, part)].to(torch.float32)

    def add_to(self, values: Tensor, part: slice) -> None:
        """Add them to the values at these places."""
        values += self.at(part)


def _cells(shape: tuple[int, ...], block: int, device: torch.device, part: slice) -> Tensor:
    """The cells of a piece of whole maps."""
    size = prod(map_size(shape))
    return pooling_cells(shape, block, device, slice(part.start // size, part.stop // size))


#: Side of a cell, more than any map has.
_MOST_SIDE = 65_536


@dataclass
class DivisionFloatCodec(FloatCodec):
    """``division-float``: DIVISION as published. Means of cells of B x B values, and codes of the rest with a range per map.

    A map is what (n, c) counts in (N, C, H, W), and a row of features, pooled along that axis alone, in (N, F) and (N, S, F).
    Cells are B x B where height and width are multiples of B; see :mod:`actcodec.codecs.division.pooling` for other sizes.

    Parameters
    ----------
    bits
        Per value: 1, 2, 4 or 8 (paper: Q).
    block
        Side of a cell, 1 or more (paper: B). A map that is smaller has one mean.
    half
        Format of means and ranges, ``bf16`` or ``fp16``.
    parts
        What is kept: ``both``; ``low``, the means alone; ``high``, the codes alone, so that means are lost; ``plain``, codes of
        the values themselves, with no means. All but ``both`` are the paper's ablations.
    rounding
        ``stochastic`` or ``nearest``.
    seed
        Of the random numbers, 0 to 2**32 - 1.
    """

    bits: int = 2
    block: int = BLOCK_SIDE
    half: str = "bf16"
    parts: str = BOTH
    rounding: str = STOCHASTIC
    seed: int = 0

    name = "division-float"

    def __post_init__(self) -> None:
        if isinstance(self.block, bool) or not isinstance(self.block, int) or not 1 <= self.block <= _MOST_SIDE:
            raise UserError(f"block = {self.block!r} is not allowed: use 1 to {_MOST_SIDE} values")
        if self.parts not in PARTS:
            raise UserError(f"parts = {self.parts!r} is not allowed: use {', '.join(PARTS)}")
        super().__post_init__()

    def takes(self, shape: Sequence[int]) -> bool:
        """Whether ``shape`` is (N, F), (N, S, F) or (N, C, H, W)."""
        return len(shape) in MAP_RANKS and prod(shape) > 0

    def compress(self, x: Tensor) -> DivisionForm:
        """See :class:`~actcodec.codecs.codec.Codec`. Every call draws other random numbers."""
        flat, shape = self._checked(x), tuple(x.shape)
        half, size = HALF_FORMATS[self.half], prod(map_size(shape))
        low = _Means(shape, self.block, torch.zeros(0, dtype=half, device=x.device))
        if self.parts != PLAIN:
            parts = range_pieces(x.numel(), size, x.device)
            means = [cell_means(flat[part], _cells(shape, self.block, x.device, part)) for part in parts]
            low = _Means(shape, self.block, torch.cat(means).to(half))
            self._check_range(x, low.means)

        def rest(part: slice) -> Tensor:
            values = flat[part].to(torch.float32)
            # Less the rounded means, which decoding adds.
            return values if self.parts == PLAIN else values - low.at(part)

        high = None if self.parts == LOW else self._quantised(rest, x, size)
        kept = low.means[:0] if self.parts == HIGH else low.means
        return DivisionForm(shape, x.dtype, self.block, kept, high)

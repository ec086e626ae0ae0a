"""Zeros in one bit and other values in few: one form of a ReLU's output for ReLU itself and for the layer after it.

ReLU needs to know which of its results are zero, the next layer needs their values. Kept separately they cost 1 + b bits per
value (ActNN). Here one bit per value marks the zeros, and only other values have codes, those of ActNN: 1 + b * density bits. A
value that is not zero never decodes to zero, and a positive one stays positive, so that ReLU's gradient is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
from cdu_spec.affine import GROUP_VALUES
from cdu_spec.modes import Mode
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.actnn.sample_groups import ActnnSampleCodec, SampleForm
from actcodec.codecs.affine.affine_codecs import STOCHASTIC
from actcodec.codecs.codec import check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.codecs.random_codec import RandomCodec
from actcodec.codecs.tensor_seeds import TensorSeeds
from actcodec.golden.codes import pack_tight, unpack_part
from actcodec.golden.pieces import pieces

#: Salt that separates the random numbers from those of the other codecs.
_SALT = len(Mode) + 3


@dataclass(frozen=True, eq=False)
class SparseForm:
    """Tensor as positions of its nonzero values, and codes for these."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    mask: Tensor  #: uint8 (ceil(values / 8),)
    others: SampleForm | None  #: nonzero values, in order, as one sample; None when all are zero

    @property
    def nbytes(self) -> int:
        """Return the bytes of the mask and of the others' codes, Z, R and bits (without shape, format and group size)."""
        return self.mask.numel() + (0 if self.others is None else self.others.nbytes)

    def to_bytes(self) -> bytes:
        """Raise UserError: a floating-point form is not a stream."""
        raise UserError("codec 'sparse-sample' has no bitstream: use sfpr+zvc or autoquantz")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed tensor, zero exactly where the original is. ``backend`` as for :class:`SampleForm`."""
        none = torch.empty(0, dtype=self.dtype, device=self.mask.device)
        others = none if self.others is None else self.others.decompress(backend)
        values = torch.zeros(prod(self.shape), dtype=self.dtype, device=self.mask.device)
        first = 0
        for part in pieces(values.numel(), values.device):
            there = unpack_part(self.mask, 1, part).bool()
            mine = others[first : first + int(there.sum())]
            first += mine.numel()
            # A group whose least value is subnormal may begin at zero; its values must not become zeros.
            values[part][there] = mine.where(mine != 0, torch.finfo(self.dtype).smallest_normal)
        return values.view(self.shape)


@dataclass
class SparseSampleCodec(RandomCodec):
    """Codec ``sparse-sample``: one bit for zeros, ActNN's codes for the other values. Takes any shape.

    Parameters
    ----------
    bits
        Bits per nonzero value, 1 to 8.
    group
        Number of consecutive nonzero values that share Z and R, 1 or more.
    rounding
        ``stochastic`` or ``nearest``.
    seed
        Number, 0 to 2**32 - 1, that the seeds of tensors follow from (:class:`~actcodec.codecs.tensor_seeds.TensorSeeds`).
    backend
        ``torch`` or ``native``; computes the codes of nonzero values.
    """

    bits: int = 2
    group: int = GROUP_VALUES
    rounding: str = STOCHASTIC
    seed: int = 0
    backend: str | Backend = "torch"

    name = "sparse-sample"
    keeps_zeros = True
    centred = True

    def __post_init__(self) -> None:
        if not isinstance(self.bits, int):
            raise UserError(f"bits = {self.bits!r} is not allowed: use one number from 1 to 8")
        self._quantiser = ActnnSampleCodec(self.bits, self.group, self.rounding, self.seed, self.backend)
        self._seeds = TensorSeeds(self.seed, _SALT)

    def compress(self, x: Tensor) -> SparseForm:
        """Implement :class:`Codec`. Every call draws new random numbers."""
        check_input(x)
        check_finite(x)
        flat = x.detach().flatten()
        mask = pack_tight((flat != 0).view(torch.uint8), 1)
        others = _without_zeros(flat)
        self._quantiser.restart(self._seeds.next())
        form = self._quantiser.compress(others) if others.numel() else None
        return SparseForm(tuple(x.shape), x.dtype, mask, form)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress(self.backend)


def _without_zeros(flat: Tensor) -> Tensor:
    """Return the nonzero values, (n,); the tensor itself if it has no zeros."""
    count = int(flat.count_nonzero())
    if count == flat.numel():
        return flat
    others, first = flat.new_empty(count), 0
    for part in pieces(flat.numel(), flat.device):
        mine = flat[part][flat[part] != 0]
        others[first : first + mine.numel()] = mine
        first += mine.numel()
    return others

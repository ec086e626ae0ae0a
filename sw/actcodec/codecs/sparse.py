"""Zeros in one bit, the rest in few: what a ReLU leaves, for ReLU itself and for the layer after it.

ReLU wants to know which of its results are positive, the next layer wants their values. Kept apart that is one bit for the
first and b bits for the second. Here one bit says where the zeros are, which is all that ReLU needs, and only the other values
get codes: ``1 + b * density`` bits. The mask is GIST's (binarisation, section 4.2, and sparse storage), the codes are ActNN's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from cdu_spec.affine import GROUP_VALUES
from cdu_spec.errors import UserError
from torch import Tensor

from actcodec.codecs.affine_codecs import STOCHASTIC
from actcodec.codecs.backend import Backend
from actcodec.codecs.codec import Codec, check_input
from actcodec.codecs.compressed import Packed
from actcodec.codecs.sample_groups import ActnnSampleCodec, SampleForm
from actcodec.golden.codes import pack_tight, unpack_tight


@dataclass(frozen=True, eq=False)
class SparseForm:
    """A tensor as the places of its values that are not zero, and codes for those."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    mask: Tensor  #: uint8 (ceil(values / 8),)
    values: SampleForm | None  #: of the others, as one sample; None when all are zero

    @property
    def nbytes(self) -> int:
        """Bytes of the mask and of the values' form."""
        return self.mask.numel() + (0 if self.values is None else self.values.nbytes)

    def to_bytes(self) -> bytes:
        """Raises UserError: this form is not a stream."""
        raise UserError("codec 'sparse-sample' has no bitstream: use sfpr+zvc or autoquantz")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The reconstruction: zeros where they were and nowhere else."""
        count = self.shape.numel() if isinstance(self.shape, torch.Size) else torch.Size(self.shape).numel()
        flat = torch.zeros(count, dtype=self.dtype, device=self.mask.device)
        if self.values is not None:
            found = self.values.decompress().flatten()
            tiny = torch.finfo(self.dtype).smallest_normal
            flat[unpack_tight(self.mask, 1, count).bool()] = torch.where(found == 0, tiny, found)
        return flat.view(self.shape)


@dataclass
class SparseSampleCodec(Codec):
    bits: int = 2
    group: int = GROUP_VALUES
    rounding: str = STOCHASTIC
    seed: int = 0

    name = "sparse-sample"

    def __post_init__(self) -> None:
        self._codec = ActnnSampleCodec(self.bits, self.group, self.rounding, self.seed)

    def restart(self, seed: int) -> None:
        self._codec.restart(seed)

    def compress(self, x: Tensor) -> SparseForm:
        check_input(x)
        flat = x.detach().flatten()
        there = flat != 0
        mask = pack_tight(there.to(torch.uint8), 1)
        found = flat[there]
        return SparseForm(tuple(x.shape), x.dtype, mask, self._codec.compress(found) if found.numel() else None)

    def decompress(self, compressed: Packed) -> Tensor:
        return compressed.decompress()

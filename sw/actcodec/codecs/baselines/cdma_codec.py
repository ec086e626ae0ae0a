"""cDMA+: zero value compression of whole words, lossless (cDMA: Rhu et al., HPCA 2018; "+" as JPEG-ACT compares with it).

A block of 32 words consists of a mask of 32 bits, bit i set where word i is not zero, and the nonzero words. Here all masks are
stored together, and so are all words; the number of bytes is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
from cdu_spec.geometry import LANES
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.codec import Codec, check_input
from actcodec.codecs.compressed import Packed
from actcodec.golden.codes import pack_tight, unpack_part
from actcodec.golden.movement import select, spread
from actcodec.golden.pieces import pieces

#: Number of words that share a mask.
BLOCK_WORDS = 32
_WORDS = {4: torch.int32, 2: torch.int16}


@dataclass(frozen=True, eq=False)
class CdmaForm:
    """Tensor as masks and nonzero words."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    masks: Tensor  #: uint8 (4 * blocks,), word i at bit ``i % 8`` of byte ``i // 8``; bits beyond the last word are zero
    words: Tensor  #: int32 or int16 (words,), bit patterns of the nonzero values

    @property
    def nbytes(self) -> int:
        """Return the bytes of masks and words (shape and format are not counted)."""
        return self.masks.numel() + self.words.numel() * self.words.element_size()

    def to_bytes(self) -> bytes:
        """Raise UserError: no bitstream is defined for this form."""
        raise UserError("codec 'cdma' has no bitstream: use bypass, or sfpr+zvc")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the tensor, exact to the last bit."""
        rebuilt = self.words.new_empty(prod(self.shape))
        first = 0
        for part in pieces(rebuilt.numel(), rebuilt.device):
            present = unpack_part(self.masks, 1, part).view(torch.bool)
            words = self.words[first : first + int(present.sum())]
            rebuilt[part], first = spread(words, present), first + words.numel()
        return rebuilt.view(self.dtype).view(self.shape)


@dataclass
class CdmaCodec(Codec):
    """Codec ``cdma``: ZVC on words of 32 bits, or of 16 for tensors in 16 bits. Takes any shape; lossless.

    A word is zero when all its bits are: -0.0, NaN and infinity are restored exactly.
    """

    name = "cdma"
    lossless = True

    def compress(self, x: Tensor) -> CdmaForm:
        """Implement :class:`Codec`."""
        check_input(x)
        words = x.detach().resolve_neg().contiguous().flatten().view(_WORDS[x.element_size()])
        nonzero = words != 0
        bits = pack_tight(nonzero.view(torch.uint8), 1)
        masks = bits.new_zeros(-(-words.numel() // BLOCK_WORDS) * (BLOCK_WORDS // LANES))
        masks[: bits.numel()] = bits
        return CdmaForm(tuple(x.shape), x.dtype, masks, select(words, nonzero))

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress()

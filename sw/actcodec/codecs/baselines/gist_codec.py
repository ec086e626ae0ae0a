"""GIST (Jain et al., ISCA 2018): small floating-point numbers (DPR), and sparse tensors as rows of column numbers (CSR).

GIST reshapes a sparse tensor to rows of 256 columns, so that a column number is one byte ("narrow value optimisation"), and
rounds the values of both forms to 16, 10 or 8 bits. Its third form, one bit per value of a ReLU, is codec ``brc``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.codec import Codec, check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.golden.minifloat import MINIFLOATS
from actcodec.golden.sfpr import check_nonfinite_policy
from actcodec.golden.wide_codes import pack_wide, unpack_wide, wide_bytes

#: Values of a row; a column number is one byte.
COLUMNS = 256
_FLAG_BYTES = 1
_START = torch.int32


@dataclass(frozen=True, eq=False)
class GistForm:
    """A tensor in small floating-point numbers: all of them, or those that are not zero and where they stand."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    dpr: str  #: format of the values
    codes: Tensor  #: uint8 (bytes,): packed codes of the values that are kept
    row_starts: Tensor  #: int32 (rows + 1,): number of the first kept value of each row, and of all; empty in the dense form
    columns: Tensor  #: uint8 (kept values,): place in the row; empty in the dense form

    @property
    def is_sparse(self) -> bool:
        """Whether only values that are not zero are kept."""
        return self.row_starts.numel() > 0

    @property
    def nbytes(self) -> int:
        """Bytes of codes, row starts, columns, and one that says which form it is (shape and formats are not counted)."""
        parts = (self.codes, self.row_starts, self.columns)
        return _FLAG_BYTES + sum(part.numel() * part.element_size() for part in parts)

    def to_bytes(self) -> bytes:
        """Raises UserError: no bitstream is defined for it."""
        raise UserError("codecs gist and gist-csr have no bitstream: use sfpr or sfpr+zvc")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The reconstructed tensor."""
        kind, count = MINIFLOATS[self.dpr], prod(self.shape)
        if not self.is_sparse:
            codes = unpack_wide(self.codes, kind.bits, count)
        else:
            kept = unpack_wide(self.codes, kind.bits, self.columns.numel())
            rows = torch.arange(self.row_starts.numel() - 1, device=self.codes.device)
            rows = rows.repeat_interleave(self.row_starts.diff(), output_size=kept.numel())
            codes = torch.zeros(count, dtype=kept.dtype, device=kept.device)
            codes[rows * COLUMNS + self.columns] = kept
        return kind.decode(codes).to(self.dtype).view(self.shape)


@dataclass
class GistCodec(Codec):
    """``gist``: DPR, every value rounded to a smaller floating-point number. Any shape.

    Parameters
    ----------
    dpr
        Format: ``fp16``, ``fp10`` or ``fp8`` (:mod:`actcodec.golden.minifloat`). Packed without gaps.
    nonfinite
        ``raise`` refuses NaN and infinity; ``saturate`` turns NaN into 0 and infinity into the greatest number.
    """

    dpr: str = "fp16"
    nonfinite: str = "raise"

    name = "gist"
    centred = True

    def __post_init__(self) -> None:
        if self.dpr not in list(MINIFLOATS):
            raise UserError(f"dpr = {self.dpr!r} is not allowed: use {', '.join(MINIFLOATS)}")
        check_nonfinite_policy(self.nonfinite)

    def compress(self, x: Tensor) -> GistForm:
        """See :class:`Codec`."""
        return self._dense(x, self._codes(x))

    def decompress(self, compressed: Packed) -> Tensor:
        """See :class:`Codec`."""
        return compressed.decompress()

    def _codes(self, x: Tensor) -> Tensor:
        """int32 (values,)."""
        check_input(x)
        if self.nonfinite == "raise":
            check_finite(x)
        return MINIFLOATS[self.dpr].encode(x.detach().to(torch.float32).flatten())

    def _dense(self, x: Tensor, codes: Tensor) -> GistForm:
        starts = torch.zeros(0, dtype=_START, device=x.device)
        columns = torch.zeros(0, dtype=torch.uint8, device=x.device)
        return GistForm(tuple(x.shape), x.dtype, self.dpr, pack_wide(codes, MINIFLOATS[self.dpr].bits), starts, columns)


@dataclass
class GistCsrCodec(GistCodec):
    """``gist-csr``: only values that DPR does not round to zero, in rows of 256 values; all of them where that is smaller.

    A kept value costs its code and one byte, a row four bytes: CSR is smaller than DPR alone when more than 34 % (fp16), 45 %
    (fp10) or 51 % (fp8) of the values are zero. A negative zero comes back as zero in CSR.

    Parameters as for :class:`GistCodec`.
    """

    name = "gist-csr"

    def compress(self, x: Tensor) -> GistForm:
        """See :class:`Codec`."""
        codes, kind = self._codes(x), MINIFLOATS[self.dpr]
        places = (codes & (kind.magnitudes - 1)).nonzero().flatten()
        rows = -(-codes.numel() // COLUMNS)
        sparse_bytes = wide_bytes(places.numel(), kind.bits) + places.numel() + _START.itemsize * (rows + 1)
        if sparse_bytes >= wide_bytes(codes.numel(), kind.bits) or places.numel() > torch.iinfo(_START).max:
            return self._dense(x, codes)
        starts = torch.zeros(rows + 1, dtype=_START, device=x.device)
        starts[1:] = torch.bincount(places // COLUMNS, minlength=rows).cumsum(0)
        kept, columns = pack_wide(codes[places], kind.bits), (places % COLUMNS).to(torch.uint8)
        return GistForm(tuple(x.shape), x.dtype, self.dpr, kept, starts, columns)

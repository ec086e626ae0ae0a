"""GIST (Jain et al., ISCA 2018): small floating-point numbers (DPR), and sparse tensors as rows of column numbers (CSR).

GIST reshapes a sparse tensor to rows of 256 columns, so that a column number is one byte ("narrow value optimisation"), and
rounds the values of both forms to 16, 10 or 8 bits. Its third form, one bit per value of a ReLU, is codec ``brc``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import torch
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.codec import Codec, check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.golden.minifloat import MINIFLOATS
from actcodec.golden.pieces import pieces
from actcodec.golden.sfpr import check_nonfinite_policy
from actcodec.golden.wide_codes import pack_wide, put_wide, take_wide, wide_bytes

#: Number of values of a row; a column number is one byte.
COLUMNS = 256
_FLAG_BYTES = 1
_START = torch.int32


@dataclass(frozen=True, eq=False)
class GistForm:
    """Tensor in small floating-point numbers: all values, or the nonzero ones with their positions."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    dpr: str  #: format of the values
    codes: Tensor  #: uint8 (bytes,): packed codes of the kept values
    row_starts: Tensor  #: int32 (rows + 1,): number of the first kept value of each row, and of all; empty in the dense form
    columns: Tensor  #: uint8 (kept values,): column of each; empty in the dense form

    @property
    def is_sparse(self) -> bool:
        """Return whether only nonzero values are kept."""
        return self.row_starts.numel() > 0

    @property
    def nbytes(self) -> int:
        """Return the bytes of codes, row starts, columns, and one byte for the form (shape and formats are not counted)."""
        parts = (self.codes, self.row_starts, self.columns)
        return _FLAG_BYTES + sum(part.numel() * part.element_size() for part in parts)

    def to_bytes(self) -> bytes:
        """Raise UserError: no bitstream is defined for this form."""
        raise UserError("codecs gist and gist-csr have no bitstream: use sfpr or sfpr+zvc")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed tensor."""
        kept = self.columns.numel() if self.is_sparse else prod(self.shape)
        rebuilt = torch.zeros(prod(self.shape), dtype=self.dtype, device=self.codes.device)
        kind = MINIFLOATS[self.dpr]
        for part in pieces(kept, rebuilt.device):
            values = kind.decode(take_wide(self.codes, kind.bits, kept, part)).to(self.dtype)
            rebuilt[self._places(part) if self.is_sparse else part] = values
        return rebuilt.view(self.shape)

    def _places(self, part: slice) -> Tensor:
        """Return the positions of some kept values of the sparse form, int64."""
        kept = torch.arange(part.start, part.stop, dtype=_START, device=self.columns.device)
        rows = torch.searchsorted(self.row_starts, kept, right=True) - 1
        return rows * COLUMNS + self.columns[part]


@dataclass
class GistCodec(Codec):
    """Codec ``gist``: DPR, every value rounded to a smaller floating-point number. Takes any shape.

    Parameters
    ----------
    dpr
        Format: ``fp16``, ``fp10`` or ``fp8`` (:mod:`actcodec.golden.minifloat`), packed without gaps.
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
        """Implement :class:`Codec`."""
        return self._dense(self._checked(x), x)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress()

    def _checked(self, x: Tensor) -> Tensor:
        """Return the values, (n,); raise UserError for tensors that cannot be compressed."""
        check_input(x)
        if self.nonfinite == "raise":
            check_finite(x)
        return x.detach().resolve_neg().flatten()

    def _encoded(self, values: Tensor) -> Tensor:
        """Return the codes of values (n,), int32 (n,)."""
        return MINIFLOATS[self.dpr].encode(values.to(torch.float32))

    def _dense(self, values: Tensor, x: Tensor) -> GistForm:
        bits, count = MINIFLOATS[self.dpr].bits, values.numel()
        packed = torch.empty(wide_bytes(count, bits), dtype=torch.uint8, device=x.device)
        for part in pieces(count, x.device):
            put_wide(packed, self._encoded(values[part]), bits, count, part.start)
        starts, columns = torch.zeros(0, dtype=_START, device=x.device), torch.zeros(0, dtype=torch.uint8, device=x.device)
        return GistForm(tuple(x.shape), x.dtype, self.dpr, packed, starts, columns)


@dataclass
class GistCsrCodec(GistCodec):
    """Codec ``gist-csr``: rows of 256 values without those that DPR rounds to zero; the dense form where that is smaller.

    A kept value costs its code and one byte, a row four bytes: CSR is smaller than DPR alone when more than 34 % (fp16), 45 %
    (fp10) or 51 % (fp8) of the values are zero. A negative zero comes back as zero in CSR.

    Parameters as for :class:`GistCodec`.
    """

    name = "gist-csr"

    def compress(self, x: Tensor) -> GistForm:
        """Implement :class:`Codec`."""
        values, kind = self._checked(x), MINIFLOATS[self.dpr]
        rows = -(-values.numel() // COLUMNS)
        counts = torch.zeros(rows, dtype=_START, device=x.device)
        for part, _, places in self._kept(values):
            in_rows = torch.bincount(places // COLUMNS)
            counts[part.start // COLUMNS :][: in_rows.numel()] = in_rows
        count = int(counts.sum())
        sparse_bytes = wide_bytes(count, kind.bits) + count + _START.itemsize * (rows + 1)
        if sparse_bytes >= wide_bytes(values.numel(), kind.bits) or count > torch.iinfo(_START).max:
            return self._dense(values, x)
        starts = torch.zeros(rows + 1, dtype=_START, device=x.device)
        torch.cumsum(counts, 0, dtype=_START, out=starts[1:])
        codes = torch.empty(count, dtype=torch.int16, device=x.device)  # no format has more than 16 bits
        columns = torch.empty(count, dtype=torch.uint8, device=x.device)
        first = 0
        for _, kept, places in self._kept(values):
            here = slice(first, first + kept.numel())
            codes[here], columns[here], first = kept, places % COLUMNS, here.stop
        return GistForm(tuple(x.shape), x.dtype, self.dpr, pack_wide(codes, kind.bits), starts, columns)

    def _kept(self, values: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Yield pieces of whole rows, the nonzero codes in each, int32, and their positions in the piece, int64."""
        magnitudes = MINIFLOATS[self.dpr].magnitudes - 1
        for part in pieces(values.numel(), values.device):
            codes = self._encoded(values[part])
            places = (codes & magnitudes).nonzero().flatten()
            yield part, codes[places], places

"""Compressed tensors as JPEG files: the blocks of JPEG-BASE and JPEG-ACT are those of a grayscale image."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from cdu_spec.bitstream import COEFFICIENT_ORDER
from cdu_spec.coding import coder_of
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.huffman import STANDARD, HuffmanTables
from cdu_spec.jpeg import ZIGZAG
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Coder, Mode
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.codecs.compressed import Compressed, Packed
from actcodec.codecs.jpeg.jpeg_base_compressed import JpegBaseCompressed
from actcodec.golden import gmc, zvc
from actcodec.golden.entropy_encoder import OPTIMAL_TABLES, STANDARD_TABLES, encode
from actcodec.golden.jfif import MAX_SIDE, jfif


def jpeg_image(packed: Packed, rows: tuple[int, int] | None = None) -> bytes:
    """Return a baseline grayscale JPEG (JFIF) whose samples are the values after the inverse DCT, plus 128.

    The image is the matrix (N*C*H, W), one map below the other.

    Parameters
    ----------
    packed
        Result of codec ``jpeg-base``, whose entropy-coded segment is copied to the file, or of ``jpeg-act`` or ``jpeg-gmc``,
        whose coefficients are recoded with the standard tables. A JPEG has no reconstruction point.
    rows
        Rows of the matrix, from the first, a multiple of 8, to before the second. Default: all.

    Raises UserError for other codecs, for rows out of range, and for more rows or columns than
    :data:`actcodec.golden.jfif.MAX_SIDE`; BitstreamError when the payload is corrupted.
    """
    if isinstance(packed, JpegBaseCompressed):
        view, divisors = packed.header.view, packed.header.divisors
    elif isinstance(packed, Compressed) and packed.header.mode is Mode.JPEG_ACT:
        view, divisors = packed.header.view, _in_zigzag([1 << shift for shift in packed.shifts])
    else:
        raise UserError("only the blocks of jpeg-base, jpeg-act and jpeg-gmc make a JPEG: use a result of one of them")
    begin, end = _checked_rows(rows, view)
    whole = end - begin == view.rows
    if isinstance(packed, JpegBaseCompressed) and whole:
        tables, segment = packed.header.tables, packed.payload
    else:
        first, last = (-(-row // BLOCK_SIDE) * view.row_beats for row in (begin, end))
        tables, segment = _coded_anew(packed, slice(first, last))
    return jfif(end - begin, view.columns, divisors, tables, segment.cpu().numpy().tobytes())


def _checked_rows(rows: tuple[int, int] | None, view: MatrixView) -> tuple[int, int]:
    """Return the first row, and the row after the last."""
    size = f"the matrix of {view.rows} x {view.columns} values"
    if view.columns > MAX_SIDE:
        raise UserError(f"{size} does not fit a JPEG, which has at most {MAX_SIDE} columns: use a tensor of narrower maps")
    begin, end = rows or (0, view.rows)
    if begin % BLOCK_SIDE or not 0 <= begin < end <= view.rows:
        allowed = f"begin with a multiple of {BLOCK_SIDE} and end by {view.rows}"
        raise UserError(f"rows {begin}:{end} of {size} are no image: {allowed}")
    if end - begin > MAX_SIDE:
        raise UserError(f"{size} does not fit a JPEG, which has at most {MAX_SIDE} rows: choose rows, as in 0:{MAX_SIDE}")
    return begin, end


def _coded_anew(packed: Compressed | JpegBaseCompressed, blocks: slice) -> tuple[HuffmanTables, Tensor]:
    """Return tables and segment of some blocks; optimal tables if the stream has its own."""
    if isinstance(packed, JpegBaseCompressed):
        kind = STANDARD_TABLES if packed.header.tables == STANDARD else OPTIMAL_TABLES
        return encode(packed.coefficients()[blocks], kind)
    coder = gmc if coder_of(packed.header.how) is Coder.GMC else zvc
    by_column = coder.decode(packed.payload, packed.header.view.blocks).flatten(1).to(torch.int16)
    return encode(by_column[blocks, list(_in_zigzag(range(BLOCK_VALUES)))])


def _in_zigzag(by_column: Sequence[int]) -> tuple[int, ...]:
    """Return the entries of a jpeg-act block in zig-zag order; jpeg-act's order is a transposition, its own inverse."""
    return tuple(by_column[COEFFICIENT_ORDER[index]] for index in ZIGZAG)

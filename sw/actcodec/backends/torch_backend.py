"""Golden model as a backend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import torch
from cdu_spec.bitstream import BitstreamError
from cdu_spec.coding import known
from cdu_spec.geometry import BLOCK_SIDE, LANES
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from cdu_spec.mx import MxSettings
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.golden_codings import CODINGS, DIRECT, Piece, block_chain
from actcodec.backends.job import DTYPES, Job, beats_in, padded_view, tensor_from_beats
from actcodec.golden import blocks
from actcodec.golden.block_starts import block_starts
from actcodec.golden.floating import blocks as mx_blocks
from actcodec.golden.pieces import piece_values
from actcodec.golden.sfpr import inverse_sfpr, sfpr, sfpr16


class TorchBackend(Backend):
    """Backend that computes jobs with the golden functions, on the device of the data.

    Codecs use the methods for whole tensors (``*_tensor``), which need no rearrangement into beats; the methods for beats
    correspond to any other backend.
    """

    software = True

    def compress(self, job: Job, beats: Tensor) -> Tensor:
        """Implement :class:`Backend`."""
        if job.mode in DIRECT:
            return DIRECT[job.mode].encode(beats)
        if job.mode is Mode.MX:
            return self._blocks_of(beats, job)
        view = padded_view(job)
        return _encoded(blocks.from_beats(beats, view), view, job)

    def decompress(self, job: Job, payload: Tensor) -> Tensor:
        """Implement :class:`Backend`."""
        if job.mode in DIRECT:
            return DIRECT[job.mode].decode(payload, job.beats * LANES, DTYPES[job.dtype]).view(-1, LANES)
        if job.mode is Mode.MX:
            return self._of_blocks(payload, job, (job.beats, LANES))
        view = padded_view(job)
        return blocks.to_beats(_decoded(payload, view, job), view)

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Implement :class:`Backend`."""
        if job.mode in DIRECT:
            return DIRECT[job.mode].encode(x)
        if job.mode is Mode.MX:
            return self._blocks_of(x, job)
        if not job.mode.in_tiles:
            return self.compress(job, beats_in(x, view))
        whole = x.numel() == view.rows * view.columns
        return _encoded((x if whole else blocks.padded(x, view)).reshape(-1, view.columns), view, job)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Implement :class:`Backend`."""
        if job.mode in DIRECT:
            return DIRECT[job.mode].decode(payload, view.columns, DTYPES[job.dtype]).view(tuple(shape))
        if job.mode is Mode.MX:
            return self._of_blocks(payload, job, shape)
        if not job.mode.in_tiles:
            return tensor_from_beats(self.decompress(job, payload), view, shape)
        return _decoded(payload, view, job).view(-1)[: prod(shape)].view(tuple(shape))

    def _blocks_of(self, values: Tensor, job: Job) -> Tensor:
        """Return values of any shape as blocks of MX."""
        settings = known(job.how, MxSettings)
        return self.run(mx_blocks.mx_codes, values, settings.kind, settings.rule)

    def _of_blocks(self, payload: Tensor, job: Job, shape: Sequence[int]) -> Tensor:
        """Return the values of blocks of MX."""
        return self.run(mx_blocks.mx_values, payload, known(job.how, MxSettings).kind, shape, DTYPES[job.dtype])


def _pieces(view: MatrixView, device: torch.device) -> Iterator[Piece]:
    """Yield the pieces of a matrix in the order of the payload."""
    piece_beats = piece_values(view.beats * LANES, device) // LANES
    strip_beats = BLOCK_SIDE * view.row_beats
    strips = max(piece_beats // strip_beats, 1)
    blocks_wide = min(view.row_beats, piece_beats // BLOCK_SIDE)
    for top in range(0, view.rows, strips * BLOCK_SIDE):
        rows = slice(top, min(top + strips * BLOCK_SIDE, view.rows))
        padded_rows = -(-(rows.stop - top) // BLOCK_SIDE) * BLOCK_SIDE if view.mode.in_tiles else rows.stop - top
        for left in range(0, view.row_beats, blocks_wide):
            wide = min(blocks_wide, view.row_beats - left)
            columns = slice(left * LANES, min((left + wide) * LANES, view.columns))
            yield Piece(rows, columns, wide, top * view.row_beats + left * BLOCK_SIDE, padded_rows * wide)


def _encoded(matrix: Tensor, view: MatrixView, job: Job) -> Tensor:
    """Return the payload of a matrix (view.rows, view.columns); in modes without tiles its rows are beats."""
    done = []
    for piece in _pieces(view, matrix.device):
        part = matrix[piece.rows, piece.columns]
        values = blocks.padded(part, MatrixView(len(part), part.shape[1], 1, 1, view.mode))
        k = piece.scales(job, job.scales, matrix.device)
        offsets = piece.scales(job, job.offsets, matrix.device) if job.mode.has_offsets else None
        integers = sfpr16(values, k, offsets) if job.mode.is_affine else sfpr(values, k)
        done.append(CODINGS[job.mode].encode(integers, replace(piece, first=job.first + piece.first), job))
    return torch.cat(done)


def _decoded(payload: Tensor, view: MatrixView, job: Job) -> Tensor:
    """Return the matrix (view.rows, view.columns) of a payload, of the dtype that ``job.dtype`` names."""
    least, most = view.payload_bounds(job.dtype, job.how)
    if not least <= payload.numel() <= most:
        raise BitstreamError(
            f"corrupted stream: {payload.numel()} payload bytes are not {job.beats} beats of mode {job.mode.label}"
        )
    matrix = torch.empty(view.rows, view.columns, dtype=DTYPES[job.dtype], device=payload.device)
    starts = _starts(payload, view, job)
    for piece in _pieces(view, payload.device):
        data, own_starts = _cut(payload, starts, piece, job)
        integers = CODINGS[job.mode].decode(data, own_starts, piece, job)
        if job.mode.has_offsets:
            integers += piece.scales(job, job.offsets, payload.device)
        values = inverse_sfpr(integers, piece.scales(job, job.scales, payload.device))
        part = matrix[piece.rows, piece.columns]
        part.copy_(values[: part.shape[0], : part.shape[1]])
    return matrix


def _starts(payload: Tensor, view: MatrixView, job: Job) -> Tensor | None:
    """Return where blocks begin, int64 (blocks,), in modes with blocks of different lengths; None in other modes."""
    if not job.mode.has_zvc:
        return None
    return block_starts(payload, view.blocks, block_chain(job))


def _cut(payload: Tensor, starts: Tensor | None, piece: Piece, job: Job) -> tuple[Tensor, Tensor]:
    """Return the payload of a piece, and where blocks of different lengths begin in it."""
    end = piece.first + piece.beats
    if starts is None:
        size = payload.numel()
        return payload[piece.first * size // job.beats : end * size // job.beats], payload.new_empty(0)
    mine = starts[piece.first // BLOCK_SIDE : end // BLOCK_SIDE]
    begin = int(mine[0])
    stop = int(starts[end // BLOCK_SIDE]) if end < job.beats else payload.numel()
    return payload[begin:stop], mine - begin

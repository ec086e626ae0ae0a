"""Backend that computes large tensors in pieces, with values and payloads in mapped files, so that the memory is bounded."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm, prod
from typing import Any, BinaryIO, TypeVar, cast

import torch
from cdu_spec.bitstream import BitstreamError
from cdu_spec.geometry import BLOCK_SIDE, LANES
from cdu_spec.matrix_view import MatrixView
from cdu_tools.mapped import LARGE_BYTES, MappedFiles
from cdu_tools.progress import Progress, Silent
from torch import Tensor

from actcodec.backends.backend import Backend, P, R
from actcodec.backends.golden_codings import block_chain
from actcodec.backends.job import DTYPES, Job
from actcodec.golden.block_starts import end_of_blocks
from actcodec.golden.block_statistics import residual_maxima
from actcodec.golden.channel_statistics import channel_edges, channel_moments, channel_sums, moments_of, squared_errors
from actcodec.golden.sfpr import NonFiniteError, channel_maxima, nonfinite_error

_T = TypeVar("_T")
#: Values of a piece, a multiple of those of a tile.
PIECE_VALUES = 1 << 22


@dataclass(frozen=True, eq=False)
class _Piece:
    """Part of a job, contiguous in the payload: rows of a matrix, columns of a strip of rows, or beats."""

    view: MatrixView
    job: Job
    rows: slice  #: of the whole matrix; its beats in ``of_beats``
    columns: slice
    shape: tuple[int, ...]  #: of its values, padding included
    of_beats: bool = False


class StreamedBackend(Backend):
    """Backend that hands parts of a large tensor to another one; bytes and values are those of the whole tensor at once.

    Small tensors, and what is no job of a mode (JPEG-BASE's entropy coder), go to the other backend as they are.

    Parameters
    ----------
    inner
        Backend that computes: ``torch``, ``native`` or ``auto``, as hardware cannot begin within a tensor.
    files
        Payloads and tensors are written to its scratch files; all mapped files give their pages back after each piece.
    progress
        Each pass over a large tensor is one part, each piece one step.
    """

    def __init__(self, inner: Backend, files: MappedFiles, progress: Progress | None = None) -> None:
        self.inner = inner
        self._files = files
        self._progress = progress or Silent()

    def compress(self, job: Job, beats: Tensor) -> Tensor:
        """Implement :class:`Backend`."""
        return self.inner.compress(job, beats)

    def decompress(self, job: Job, payload: Tensor) -> Tensor:
        """Implement :class:`Backend`."""
        return self.inner.decompress(job, payload)

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Implement :class:`Backend`; a large payload lies in a mapped file."""
        if not _is_large(x):
            return self.inner.compress_tensor(x, view, job)
        flat, size = x.reshape(-1), 0
        with self._files.scratch() as file:
            for piece in self._steps("coding", _pieces_of(view, job)):
                payload = self.inner.compress_tensor(_values(flat, view, piece), piece.view, piece.job)
                file.write(payload.numpy().data)
                size += payload.numel()
            return self._mapped(file, torch.uint8, (size,))

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Implement :class:`Backend`; a large tensor lies in a mapped file."""
        dtype, place = DTYPES[job.dtype], 0
        if prod(shape) * dtype.itemsize < LARGE_BYTES:
            return self.inner.decompress_tensor(payload, view, job, shape)
        with self._files.scratch() as file:
            for piece in self._steps("decoding", _pieces_of(view, job)):
                least, most = piece.view.payload_bounds(job.dtype, job.how)
                data = payload[place : place + most]
                if least < most:
                    data = data[: end_of_blocks(data, piece.view.blocks, block_chain(job))]
                place += data.numel()
                values = self.inner.decompress_tensor(data, piece.view, piece.job, piece.shape)
                _write(file, values, view, piece, prod(shape))
            if place != payload.numel():
                raise BitstreamError("corrupted stream: the blocks do not end where the payload ends")
            return self._mapped(file, dtype, tuple(shape))

    def run(self, function: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        """Implement :class:`Backend`: statistics of a large tensor are those of its parts."""
        own: Mapping[Callable[..., Any], Callable[..., Any]] = {
            channel_maxima: self._channel_maxima,
            channel_edges: self._channel_edges,
            channel_sums: self._channel_sums,
            channel_moments: self._channel_moments,
            squared_errors: self._squared_errors,
            residual_maxima: self._residual_maxima,
        }
        if function in own:
            return cast("Callable[P, R]", own[function])(*arguments, **options)
        return self.inner.run(function, *arguments, **options)

    def _channel_maxima(self, channels: Tensor, nonfinite: str = "raise") -> Tensor:
        if not _is_large(channels):
            return self.inner.run(channel_maxima, channels, nonfinite)
        largest = torch.zeros(channels.shape[1], dtype=torch.float64)
        try:
            for part, mine in self._parts(channels):
                largest[mine] = torch.maximum(largest[mine], self.inner.run(channel_maxima, part, nonfinite))
        except NonFiniteError:
            bad = torch.zeros(channels.shape[1], dtype=torch.int64)
            for part, mine in self._parts(channels):
                bad[mine] += (~part.isfinite()).sum((0, 2))
            raise nonfinite_error(bad, channels.numel()) from None
        return largest

    def _channel_edges(self, channels: Tensor) -> tuple[Tensor, Tensor]:
        if not _is_large(channels):
            return self.inner.run(channel_edges, channels)
        least, greatest = torch.full((2, channels.shape[1]), torch.inf, dtype=torch.float64)
        greatest = -greatest
        for part, mine in self._parts(channels):
            low, high = self.inner.run(channel_edges, part)
            least[mine] = torch.minimum(least[mine], low)
            greatest[mine] = torch.maximum(greatest[mine], high)
        return least, greatest

    def _channel_sums(self, channels: Tensor, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
        if not _is_large(channels):
            return self.inner.run(channel_sums, channels, least, greatest)
        values, squares = torch.zeros(2, channels.shape[1], dtype=torch.int64)
        for part, mine in self._parts(channels):
            of_part = self.inner.run(channel_sums, part, least[mine], greatest[mine])
            values[mine] += of_part[0]
            squares[mine] += of_part[1]
        return values, squares

    def _channel_moments(self, channels: Tensor, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
        return moments_of(*self._channel_sums(channels, least, greatest), channels[:, 0].numel(), least, greatest)

    def _squared_errors(self, channels: Tensor, steps: Tensor) -> Tensor:
        if not _is_large(channels):
            return self.inner.run(squared_errors, channels, steps)
        sums = torch.zeros(channels.shape[1], dtype=torch.int64)
        for part, mine in self._parts(channels):
            sums[mine] += self.inner.run(squared_errors, part, steps[mine])
        return sums

    def _residual_maxima(self, x: Tensor, view: MatrixView, k: Tensor) -> Tensor:
        if not _is_large(x):
            return self.inner.run(residual_maxima, x, view, k)
        matrix, largest = x.reshape(view.rows, view.columns), torch.zeros(view.channels)
        for rows, columns in self._steps("measuring", list(_cuts(view, BLOCK_SIDE))):
            part = matrix[rows, columns].contiguous()
            channels = torch.arange(rows.start, rows.stop) // view.channel_rows % view.channels
            by_row = MatrixView(len(part), part.shape[1], len(part), 1, view.mode)
            largest.scatter_reduce_(0, channels, self.inner.run(residual_maxima, part, by_row, k[channels]), "amax")
        return largest

    def converted(self, x: Tensor, convert: Callable[[Tensor], Tensor]) -> Tensor:
        """Implement :class:`Backend`; the function sees a piece of a large tensor at a time."""
        if not _is_large(x):
            return convert(x)
        dtype = convert(x.reshape(-1)[:0]).dtype
        with self._files.scratch() as file:
            for part in self._steps("converting", list(x.reshape(-1).split(PIECE_VALUES))):
                file.write(convert(part).view(torch.uint8).numpy().data)
            return self._mapped(file, dtype, tuple(x.shape))

    def release(self) -> None:
        """Implement :class:`Backend`: mapped files give their pages back."""
        self._files.release()

    def _parts(self, channels: Tensor) -> Iterator[tuple[Tensor, slice]]:
        """Yield contiguous parts (outer, channels, inner), and which channels they have."""
        return self._steps("measuring", list(_channel_parts(channels)))

    def _steps(self, what: str, pieces: Sequence[_T]) -> Iterator[_T]:
        """Yield pieces, and count them."""
        self._progress.begin(what, len(pieces))
        for piece in pieces:
            yield piece
            self._files.release()
            self._progress.step()

    def _mapped(self, file: BinaryIO, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it cannot be written, and nothing writes it
            return torch.frombuffer(self._files.mapped(file), dtype=dtype).view(shape)


def _is_large(x: Tensor) -> bool:
    return x.numel() * x.element_size() >= LARGE_BYTES and x.device.type == "cpu"


def _channel_parts(channels: Tensor) -> Iterator[tuple[Tensor, slice]]:
    outer, count, inner = channels.shape
    samples = max(PIECE_VALUES // (count * inner), 1)
    together, length = max(min(PIECE_VALUES // inner, count), 1), min(PIECE_VALUES, inner)
    for sample in range(0, outer, samples):
        for channel in range(0, count, together):
            mine = slice(channel, min(channel + together, count))
            for first in range(0, inner, length):
                yield channels[sample : sample + samples, mine, first : first + length], mine


def _cuts(view: MatrixView, least: int) -> Iterator[tuple[slice, slice]]:
    """Yield rows, a multiple of ``least``, and columns of pieces in the order of the payload."""
    width = view.row_beats * LANES
    rows = max(PIECE_VALUES // (width * least), 1) * least
    columns = width if rows * width <= PIECE_VALUES else max(PIECE_VALUES // (least * LANES), 1) * LANES
    for top in range(0, view.rows, rows):
        for left in range(0, view.columns, columns):
            yield slice(top, min(top + rows, view.rows)), slice(left, min(left + columns, view.columns))


def _pieces_of(view: MatrixView, job: Job) -> list[_Piece]:
    """Return the pieces of a job. Rows without tiles that are too long for one are cut as beats."""
    if view.mode.in_tiles:
        return [_tiled(view, job, *cut) for cut in _cuts(view, BLOCK_SIDE)]
    aligned = lcm(view.row_beats, view.mode.whole_beats) // view.row_beats
    if not view.mode.is_flat and aligned * view.row_beats * LANES <= PIECE_VALUES:
        return [_of_rows(view, job, rows) for rows, _ in _cuts(view, aligned)]
    beats, step = view.rows * view.row_beats, PIECE_VALUES // LANES
    return [_of_beats(view, job, slice(first, min(first + step, beats))) for first in range(0, beats, step)]


def _piece(view: MatrixView, job: Job, groups: Tensor, first: int, rows: slice, columns: slice) -> _Piece:
    """Return a piece with this view, in which each row has the scale of one of ``groups``."""
    of_groups = groups.clamp_max(len(job.scales) - 1)
    own = replace(
        job,
        beats=view.beats,
        row_beats=view.row_beats,
        channel_rows=view.channel_rows,
        scales=job.scales[of_groups],
        offsets=job.offsets[of_groups] if view.mode.has_offsets else job.offsets,
        first=job.first + first,
    )
    return _Piece(view, own, rows, columns, (view.rows, view.columns))


def _tiled(view: MatrixView, job: Job, rows: slice, columns: slice) -> _Piece:
    mine = MatrixView(rows.stop - rows.start, columns.stop - columns.start, 1, 1, view.mode)
    groups = torch.arange(rows.start, rows.start + mine.padded_rows) // job.channel_rows
    return _piece(mine, job, groups, rows.start * view.row_beats + columns.start // LANES * BLOCK_SIDE, rows, columns)


def _of_rows(view: MatrixView, job: Job, rows: slice) -> _Piece:
    mine = MatrixView(rows.stop - rows.start, view.columns, 1, 1, view.mode)
    groups = torch.arange(rows.start, rows.start + mine.scale_groups)
    return _piece(mine, job, groups, rows.start * view.row_beats, rows, slice(0, view.columns))


def _of_beats(view: MatrixView, job: Job, beats: slice) -> _Piece:
    count = beats.stop - beats.start
    shape = (1, count * LANES) if view.mode.is_flat else (count, LANES)
    mine = MatrixView(shape[0], shape[1], 1, 1, view.mode)
    groups = torch.arange(beats.start, beats.start + mine.scale_groups) // view.row_beats
    return replace(_piece(mine, job, groups, beats.start, beats, slice(0, LANES)), of_beats=True)


def _values(flat: Tensor, view: MatrixView, piece: _Piece) -> Tensor:
    """Return the values of a piece, contiguous; those of beats with their padding."""
    if piece.of_beats:
        values = flat.new_zeros(piece.shape)
        place = values.view(-1)
        for of_tensor, of_piece in _runs(view, piece.rows):
            place[of_piece] = flat[of_tensor]
        return values
    if piece.columns == slice(0, view.columns):  # the last row of mode actnn may be incomplete
        return flat[piece.rows.start * view.columns : piece.rows.stop * view.columns]
    return flat.view(view.rows, view.columns)[piece.rows, piece.columns].contiguous()


def _write(file: BinaryIO, values: Tensor, view: MatrixView, piece: _Piece, count: int) -> None:
    """Write the values of a piece to where they are in the tensor of ``count`` values."""
    raw, size = values.reshape(-1), values.element_size()
    if piece.of_beats:
        for _, of_piece in _runs(view, piece.rows):
            file.write(raw[of_piece].view(torch.uint8).numpy().data)
    elif piece.columns == slice(0, view.columns):
        file.write(raw[: count - piece.rows.start * view.columns].view(torch.uint8).numpy().data)
    else:
        for row, part in enumerate(values, piece.rows.start):
            file.seek((row * view.columns + piece.columns.start) * size)
            file.write(part.contiguous().view(torch.uint8).numpy().data)


def _runs(view: MatrixView, beats: slice) -> Iterator[tuple[slice, slice]]:
    """Yield which values of the tensor stand where in beats, row by row."""
    for row in range(beats.start // view.row_beats, -(-beats.stop // view.row_beats)):
        begin, end = row * view.row_beats, (row + 1) * view.row_beats
        first, last = max(beats.start, begin), min(beats.stop, end)
        left, right = (first - begin) * LANES, min((last - begin) * LANES, view.columns)
        at = (first - beats.start) * LANES
        yield slice(row * view.columns + left, row * view.columns + right), slice(at, at + right - left)

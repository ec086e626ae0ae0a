"""The golden model as a backend."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from cdu_spec.bitstream import BitstreamError, MatrixView, Mode
from cdu_spec.geometry import BLOCK_VALUES, LANES
from torch import Tensor

from actcodec.codecs.backend import Backend
from actcodec.codecs.job import DTYPES, Job
from actcodec.golden import blocks, brc, bypass, jpeg_act, zvc
from actcodec.golden.sfpr import CHUNK_VALUES, inverse_sfpr, sfpr


class TorchBackend(Backend):
    """Computes jobs with the golden functions, on the device of the data.

    Codecs take the way over whole tensors (``*_tensor``), which needs no rearrangement into beats; the way over beats is
    what any other backend does.
    """

    def compress(self, job: Job, beats: Tensor) -> Tensor:
        """See :class:`Backend`."""
        if job.mode is Mode.BRC:
            return brc.encode(beats)
        if job.mode is Mode.BYPASS:
            return bypass.encode(beats)
        if job.mode.in_tiles:
            matrix = blocks.from_beats(beats, _padded_view(job))
            return self._payload(sfpr(matrix, _row_scales(job, beats.device)), job)
        return self._payload(sfpr(beats, _beat_scales(job, beats.device)), job)

    def decompress(self, job: Job, payload: Tensor) -> Tensor:
        """See :class:`Backend`."""
        dtype = DTYPES[job.dtype]
        if job.mode is Mode.BRC:
            return brc.decode(payload, job.beats * LANES).to(dtype).view(job.beats, LANES)
        if job.mode is Mode.BYPASS:
            return bypass.decode(payload, job.beats * LANES, dtype).view(job.beats, LANES)
        quantized = self._quantized(payload, job)
        if job.mode.in_tiles:
            matrix = inverse_sfpr(quantized, _row_scales(job, payload.device)).to(dtype)
            return blocks.to_beats(matrix, _padded_view(job))
        return inverse_sfpr(quantized.view(-1, LANES), _beat_scales(job, payload.device)).to(dtype)

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """See :class:`Backend`."""
        if job.mode is Mode.BRC:
            return brc.encode(x)
        if job.mode is Mode.BYPASS:
            return bypass.encode(x)
        groups = x.reshape(-1, view.channel_rows * view.columns)
        quantized = torch.empty(groups.shape, dtype=torch.int8, device=x.device)
        scales = job.scales[: len(groups), None].to(x.device)
        for rows, columns in _pieces(quantized):
            quantized[rows, columns] = sfpr(groups[rows, columns], scales[rows])
        matrix = blocks.padded(quantized, view)
        return self._payload(blocks.linear_blocks(matrix, view) if job.mode is Mode.SFPR_ZVC else matrix, job)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """See :class:`Backend`."""
        dtype = DTYPES[job.dtype]
        if job.mode is Mode.BRC:
            return brc.decode(payload, job.beats * LANES)[: view.columns].to(dtype).view(tuple(shape))
        if job.mode is Mode.BYPASS:
            return bypass.decode(payload, view.columns, dtype).view(tuple(shape))
        quantized = self._quantized(payload, job)
        matrix = quantized if job.mode.in_tiles else blocks.linear_matrix(quantized, view)
        groups = blocks.unpadded(matrix, view).reshape(-1, view.channel_rows * view.columns)
        values = torch.empty(groups.shape, dtype=dtype, device=payload.device)
        scales = job.scales[: len(groups), None].to(payload.device)
        for rows, columns in _pieces(groups):
            values[rows, columns] = inverse_sfpr(groups[rows, columns], scales[rows])
        return values.view(tuple(shape))

    @staticmethod
    def _payload(quantized: Tensor, job: Job) -> Tensor:
        """Payload of int8 values: the padded matrix (jpeg-act), or all values in order."""
        if job.mode is Mode.SFPR:
            return quantized.reshape(-1).view(torch.uint8)
        if job.mode is Mode.SFPR_ZVC:
            return zvc.encode(quantized.reshape(-1, BLOCK_VALUES))
        if job.rounding is None:
            raise ValueError("a jpeg-act job to compress needs a rounding rule")
        return zvc.encode(jpeg_act.forward(quantized, job.shifts, job.const_bits, job.pass1_bits, job.rounding))

    @staticmethod
    def _quantized(payload: Tensor, job: Job) -> Tensor:
        """The inverse of :meth:`_payload`: the padded matrix (jpeg-act), or all values in order."""
        if job.mode is Mode.SFPR:
            if payload.numel() != job.beats * LANES:
                raise BitstreamError(f"corrupted stream: {payload.numel()} payload bytes are not {job.beats} beats")
            return payload.view(torch.int8)
        coefficients = zvc.decode(payload, job.beats * LANES // BLOCK_VALUES)
        if job.mode is Mode.SFPR_ZVC:
            return coefficients.reshape(-1)
        return jpeg_act.inverse(coefficients, job.row_beats, job.shifts, job.const_bits, job.pass1_bits)


def _pieces(matrix: Tensor) -> list[tuple[slice, slice]]:
    """Index pairs that cut a matrix into pieces of at most CHUNK_VALUES values."""
    height, width = matrix.shape
    columns = min(width, CHUNK_VALUES)
    rows = max(CHUNK_VALUES // columns, 1)
    return [
        (slice(top, top + rows), slice(left, left + columns))
        for top in range(0, height, rows)
        for left in range(0, width, columns)
    ]


def _padded_view(job: Job) -> MatrixView:
    """The padded matrix of a jpeg-act job as a matrix of its own."""
    return MatrixView(job.beats // job.row_beats, job.row_beats * LANES, 1, 1, job.mode)


def _row_scales(job: Job, device: torch.device) -> Tensor:
    """The scale of each row of the padded matrix, float32 (rows, 1)."""
    rows = torch.arange(job.beats // job.row_beats)
    return job.scales[rows // job.channel_rows, None].to(device)


def _beat_scales(job: Job, device: torch.device) -> Tensor:
    """The scale of each beat when beats travel row by row, float32 (beats, 1)."""
    beats = torch.arange(job.beats)
    return job.scales[beats // (job.row_beats * job.channel_rows), None].to(device)

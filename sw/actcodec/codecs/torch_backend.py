"""The golden model as a backend."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from cdu_spec.affine import GROUP_VALUES
from cdu_spec.bitstream import BitstreamError, MatrixView, Mode
from cdu_spec.geometry import BLOCK_VALUES, LANES
from torch import Tensor

from actcodec.codecs.backend import Backend
from actcodec.codecs.group_quantizer import GroupQuantizer
from actcodec.codecs.job import DTYPES, Job
from actcodec.golden import actnn, autoquant, blocks, blpa, brc, bypass, division, jpeg_act, zvc
from actcodec.golden.sfpr import CHUNK_VALUES, inverse_sfpr, sfpr, sfpr16


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
        view, groups = _padded_view(job), _groups_of_rows(job)
        matrix, k = blocks.from_beats(beats, view), job.scales[groups, None].to(beats.device)
        if not job.mode.is_affine:
            return self._payload(sfpr(matrix, k), job)
        offsets = job.offsets[groups, None].to(beats.device) if job.mode.has_offsets else None
        return _affine_payload(sfpr16(matrix, k, offsets), view, job)

    def decompress(self, job: Job, payload: Tensor) -> Tensor:
        """See :class:`Backend`."""
        dtype = DTYPES[job.dtype]
        if job.mode is Mode.BRC:
            return brc.decode(payload, job.beats * LANES, dtype).view(job.beats, LANES)
        if job.mode is Mode.BYPASS:
            return bypass.decode(payload, job.beats * LANES, dtype).view(job.beats, LANES)
        view, groups = _padded_view(job), _groups_of_rows(job)
        if job.mode.is_affine:
            integers = _affine_integers(payload, view, job)
            if job.mode.has_offsets:
                integers += job.offsets[groups, None].to(payload.device)
        else:
            integers = self._quantized(payload, job).view(view.padded_rows, -1)
        r = job.scales[groups, None].to(payload.device)
        return blocks.to_beats(inverse_sfpr(integers, r).to(dtype), view)

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """See :class:`Backend`."""
        if job.mode is Mode.BRC:
            return brc.encode(x)
        if job.mode is Mode.BYPASS:
            return bypass.encode(x)
        if job.mode.has_offsets:  # which are subtracted from the padding too
            return self.compress(job, blocks.to_beats(blocks.padded(x, view), view))
        groups = _by_scale(x, view)
        quantized = torch.empty(groups.shape, dtype=torch.int16 if job.mode.is_affine else torch.int8, device=x.device)
        scales = job.scales[: len(groups), None].to(x.device)
        reduce = sfpr16 if job.mode.is_affine else sfpr
        for rows, columns in _pieces(quantized):
            quantized[rows, columns] = reduce(groups[rows, columns], scales[rows])
        matrix = blocks.padded(quantized, view)
        if job.mode.is_affine:
            return _affine_payload(matrix, view, job)
        return self._payload(blocks.linear_blocks(matrix, view) if job.mode is Mode.SFPR_ZVC else matrix, job)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """See :class:`Backend`."""
        dtype = DTYPES[job.dtype]
        if job.mode is Mode.BRC:
            return brc.decode(payload, view.columns, dtype).view(tuple(shape))
        if job.mode is Mode.BYPASS:
            return bypass.decode(payload, view.columns, dtype).view(tuple(shape))
        if job.mode.is_affine:
            matrix = _affine_integers(payload, view, job)
        else:
            quantized = self._quantized(payload, job)
            matrix = quantized if job.mode.in_tiles else blocks.linear_matrix(quantized, view)
        groups = _by_scale(blocks.unpadded(matrix, view, prod(shape)), view)
        values = torch.empty(groups.shape, dtype=dtype, device=payload.device)
        scales = job.scales[: len(groups), None].to(payload.device)
        if job.mode.has_offsets:
            groups += job.offsets[: len(groups), None].to(payload.device)
        for rows, columns in _pieces(groups):
            values[rows, columns] = inverse_sfpr(groups[rows, columns], scales[rows])
        return values.view(tuple(shape))

    def group_quantizer(self) -> GroupQuantizer:
        """See :class:`Backend`."""
        return GroupQuantizer()

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


def _affine_payload(matrix: Tensor, view: MatrixView, job: Job) -> Tensor:
    """Payload of SFPR's 16-bit results, the padded matrix."""
    if job.settings is None:
        raise ValueError(f"a job of mode {job.mode.label} needs settings")
    if job.mode is Mode.DIVISION:
        return division.encode(blocks.tiles(matrix).reshape(-1, BLOCK_VALUES), job.settings)
    if job.mode is Mode.ACTNN:
        return actnn.encode(matrix.reshape(-1, GROUP_VALUES), job.settings)
    if job.mode is Mode.AUTOQUANTZ:
        return autoquant.encode_masked(blocks.linear_blocks(matrix, view).view(-1, LANES), job.settings)
    encode = blpa.encode if job.mode is Mode.BLPA else autoquant.encode
    return encode(matrix.reshape(-1, LANES), job.settings)


def _affine_integers(payload: Tensor, view: MatrixView, job: Job) -> Tensor:
    """The inverse of :func:`_affine_payload`: the padded matrix of decoded integers, int32, without offsets."""
    if job.settings is None:
        raise ValueError(f"a job of mode {job.mode.label} needs settings")
    if job.mode is Mode.DIVISION:
        return blocks.untiled(division.decode(payload, view.blocks, job.settings), view)
    if job.mode is Mode.ACTNN:
        groups = actnn.decode(payload, view.beats * LANES // GROUP_VALUES, job.settings)
        return groups.view(view.padded_rows, -1)
    if job.mode is Mode.AUTOQUANTZ:
        return blocks.linear_matrix(autoquant.decode_masked(payload, view.blocks, job.settings), view)
    decode = blpa.decode if job.mode is Mode.BLPA else autoquant.decode
    return decode(payload, view.beats, job.settings).view(view.padded_rows, -1)


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


def _by_scale(values: Tensor, view: MatrixView) -> Tensor:
    """A tensor with one row per scale that it uses, in order."""
    return values.reshape(1, -1) if view.mode is Mode.ACTNN else values.reshape(-1, view.channel_rows * view.columns)


def _padded_view(job: Job) -> MatrixView:
    """The padded matrix of a job as a matrix of its own; a beat is a row in modes without tiles."""
    row_beats = job.row_beats if job.mode.in_tiles else 1
    return MatrixView(job.beats // row_beats, row_beats * LANES, 1, 1, job.mode)


def _groups_of_rows(job: Job) -> Tensor:
    """Number of the scale of each row of that matrix, int64 (rows,)."""
    rows = torch.arange(job.beats // job.row_beats if job.mode.in_tiles else job.beats)
    return rows // (job.channel_rows if job.mode.in_tiles else job.row_beats * job.channel_rows)

"""``Job``: what a driver tells the unit about one tensor, and the beats that it feeds and receives.

A backend (the torch model, a simulated unit) sees a tensor only as a :class:`Job`, 8-value beats and payload bytes. For
compression the driver views the tensor as a matrix, computes the scales, writes the job, and streams ``beats_in(x, view)``;
for decompression it writes the same job with reciprocals as scales, streams the payload, and turns the beats that come back
into the tensor with :func:`tensor_from_beats`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import torch
from cdu_spec.affine import AffineSettings
from cdu_spec.bitstream import COEFFICIENT_ORDER, Coder, Dtype, Header, MatrixView, Mode, check_mx, check_settings
from cdu_spec.geometry import LANES
from cdu_spec.mx import MxSettings
from cdu_spec.rounding import Rounding
from torch import Tensor

from actcodec.golden import blocks

_NO_OFFSETS = torch.zeros(0, dtype=torch.int16)
DTYPES = {Dtype.FP32: torch.float32, Dtype.BF16: torch.bfloat16, Dtype.FP16: torch.float16}
FORMATS = {dtype: form for form, dtype in DTYPES.items()}


@dataclass(frozen=True, eq=False)
class Job:
    """Everything that crosses to the hardware for one tensor besides the data.

    The precision fields (``const_bits``, ``pass1_bits``, ``rounding``) are fixed when a unit is built; they are here so
    that a backend can refuse a job for which its unit was not built. ``rounding`` is None for decompression, which does not
    depend on it.
    """

    mode: Mode
    dtype: Dtype  #: format of the values at the uncompressed port
    beats: int  #: beats of 8 values of the whole job, padding included
    row_beats: int  #: beats per row of the matrix
    channel_rows: int  #: consecutive rows that share a scale
    shifts: tuple[int, ...]  #: 64 shifts 0..7 in payload order (column by column); empty outside jpeg-act
    scales: Tensor  #: float32 (scale_groups,), CPU: one per ``channel_rows`` rows; k to compress, r to decompress
    const_bits: int = 0  #: DCT precision; 0 in modes without a DCT
    pass1_bits: int = 0
    rounding: Rounding | None = None
    settings: AffineSettings | None = None  #: of affine modes; seed and rounding mean nothing to decompression
    offsets: Tensor = field(default_factory=lambda: _NO_OFFSETS)  #: blpa: int16 (scale_groups,), CPU; else empty
    coder: Coder = Coder.ZVC  #: of jpeg-act
    point: int = 0  #: reconstruction point in eighths of a step, which means nothing to compression
    mx: MxSettings | None = None  #: of mode mx


def settings_of(job: Job) -> AffineSettings:
    """How a job of an affine mode quantises; ValueError for a job that does not say."""
    if job.settings is None:
        raise ValueError(f"a job of mode {job.mode.label} needs settings")
    return job.settings


def mx_of(job: Job) -> MxSettings:
    """How a job of mode mx codes; ValueError for a job that does not say."""
    if job.mx is None:
        raise ValueError("a job of mode mx needs a format")
    return job.mx


def payload_shifts(row_major: Sequence[int]) -> tuple[int, ...]:
    """64 shifts ordered [vertical][horizontal frequency] (``cdu_spec.dqt.shifts``) in the order of the payload."""
    return tuple(row_major[index] for index in COEFFICIENT_ORDER)


def group_scales(per_channel: Tensor, view: MatrixView) -> Tensor:
    """The scale of each group of ``channel_rows`` rows in the order in which rows pass, float32 (scale_groups,), CPU.

    Groups that begin in the padding have scale 1; in division that of the last channel, for they repeat its values.
    """
    if not view.mode.has_scales:
        return torch.ones(view.scale_groups, dtype=torch.float32)
    real, per_channel = max(view.rows // view.channel_rows, 1), per_channel.detach().cpu()
    groups = per_channel.repeat(real // view.channels)
    if real < view.scale_groups:
        last = groups[-1:] if view.mode is Mode.DIVISION else groups.new_ones(1)
        groups = torch.cat((groups, last.expand(view.scale_groups - real)))
    return groups


def group_offsets(per_channel: Tensor, view: MatrixView) -> Tensor:
    """The offset of each group of rows, int16 (scale_groups,), CPU; empty in modes without offsets."""
    if not view.mode.has_offsets:
        return _NO_OFFSETS
    return per_channel.detach().cpu().repeat(view.scale_groups // view.channels)


def compression_job(
    view: MatrixView,
    dtype: Dtype,
    multipliers: Tensor,
    shifts: Sequence[int] = (),
    const_bits: int = 0,
    pass1_bits: int = 0,
    rounding: Rounding | None = None,
    settings: AffineSettings | None = None,
    offsets: Tensor = _NO_OFFSETS,
    coder: Coder = Coder.ZVC,
    mx: MxSettings | None = None,
) -> Job:
    """The job of compressing a tensor with this view.

    ``multipliers`` is float32 (channels,), ignored by brc, bypass and mx; ``settings`` go with affine modes, ``offsets``, int16
    (channels,), with blpa, ``coder`` with jpeg-act, ``mx`` with that mode. Raises UserError for settings that the mode does not
    take.
    """
    check_settings(view.mode, settings)
    check_mx(view.mode, mx)
    return Job(
        view.mode,
        dtype,
        view.beats,
        view.row_beats,
        view.channel_rows,
        tuple(shifts),
        group_scales(multipliers, view),
        const_bits,
        pass1_bits,
        rounding,
        settings,
        group_offsets(offsets, view),
        coder,
        mx=mx,
    )


def decompression_job(header: Header, shifts: Sequence[int], reciprocals: Tensor, offsets: Tensor = _NO_OFFSETS) -> Job:
    """The job of decompressing a stream; all of it stands in the stream."""
    view = header.view
    return Job(
        view.mode,
        header.dtype,
        view.beats,
        view.row_beats,
        view.channel_rows,
        tuple(shifts),
        group_scales(reciprocals, view),
        header.const_bits,
        header.pass1_bits,
        settings=header.settings,
        offsets=group_offsets(offsets, view),
        coder=header.coder,
        point=header.point,
        mx=header.mx,
    )


def padded_view(job: Job) -> MatrixView:
    """The padded matrix of a job as a matrix of its own; a beat is a row in modes without tiles."""
    row_beats = job.row_beats if job.mode.in_tiles else 1
    return MatrixView(job.beats // row_beats, row_beats * LANES, 1, 1, job.mode)


def beats_in(x: Tensor, view: MatrixView) -> Tensor:
    """The values of ``x`` as beats (view.beats, 8) of the dtype of ``x``, in feeding order.

    Order and padding: see :func:`actcodec.golden.blocks.to_beats` and :func:`~actcodec.golden.blocks.padded`.
    """
    return blocks.to_beats(blocks.padded(x.contiguous(), view), view)


def tensor_from_beats(beats: Tensor, view: MatrixView, shape: Sequence[int]) -> Tensor:
    """The inverse of :func:`beats_in`: a tensor of ``shape``, what stands in the padding is dropped."""
    matrix = blocks.from_beats(beats, view)
    return blocks.unpadded(matrix, view, prod(shape)).reshape(tuple(shape))

"""Description of one tensor's job for a unit, and conversion between tensors and the beats that the unit sees.

A backend (the torch model, a simulated unit) sees a tensor only as a :class:`Job`, 8-value beats and payload bytes. To
compress, the driver views the tensor as a matrix, computes the scales, writes the job, and streams ``beats_in(x, view)``. To
decompress, it writes the same job with reciprocals as scales, streams the payload, and converts the resulting beats to the
tensor with :func:`tensor_from_beats`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import torch
from cdu_spec.bitstream import COEFFICIENT_ORDER, Header
from cdu_spec.coding import How, checked
from cdu_spec.geometry import LANES
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Dtype, Mode
from cdu_spec.rounding import Rounding
from torch import Tensor

from actcodec.golden import blocks

_ONE_SCALE = torch.ones(1)
NO_SCALES, NO_OFFSETS = torch.zeros(0), torch.zeros(0, dtype=torch.int16)
DTYPES = {Dtype.FP32: torch.float32, Dtype.BF16: torch.bfloat16, Dtype.FP16: torch.float16}
FORMATS = {dtype: form for form, dtype in DTYPES.items()}


@dataclass(frozen=True, eq=False)
class Job:
    """Everything besides the data that the hardware receives for one tensor.

    The precision fields (``const_bits``, ``pass1_bits``, ``rounding``) are fixed when a unit is built; they allow a backend to
    refuse a job for which its unit was not built. ``rounding`` is None for decompression, which does not depend on it.
    """

    mode: Mode
    dtype: Dtype  #: format of the values at the uncompressed port
    beats: int  #: beats of 8 values of the whole job, padding included
    row_beats: int  #: beats per row of the matrix
    channel_rows: int  #: consecutive rows that share a scale
    shifts: tuple[int, ...]  #: 64 shifts 0..7 in payload order (column by column); empty outside jpeg-act
    scales: Tensor  #: float32 (scale_groups,): one per ``channel_rows`` rows; k to compress, r to decompress
    const_bits: int = 0  #: DCT precision; 0 in modes without a DCT
    pass1_bits: int = 0
    rounding: Rounding | None = None
    how: How = None  #: settings of the mode; decompression ignores seed, rounding and scale rule, compression the point
    offsets: Tensor = field(default_factory=lambda: NO_OFFSETS)  #: blpa: int16 (scale_groups,); else empty
    first: int = 0  #: number of the job's first beat in its tensor; software computes a part of a tensor so

    def on_host(self) -> Job:
        """Return the job with scales and offsets in the host's memory, where units are driven from."""
        if self.scales.device.type == self.offsets.device.type == "cpu":
            return self
        return replace(self, scales=self.scales.cpu(), offsets=self.offsets.cpu())


@dataclass(frozen=True)
class Scaling:
    """How channels of a tensor are scaled before it is compressed.

    Parameters
    ----------
    S, scale_bits
        As :func:`actcodec.golden.sfpr.scales` takes them.
    job
        Returns the tensor's job for multipliers, float32 (channels,).
    wide
        True for integers of 16 bits, in the affine modes: the largest magnitude, times a multiplier rounded down, is 32767.
    """

    S: float
    scale_bits: int
    job: Callable[[Tensor], Job]
    wide: bool = False


def payload_shifts(row_major: Sequence[int]) -> tuple[int, ...]:
    """Return 64 shifts in payload order, from order [vertical][horizontal frequency] (``cdu_spec.dqt.shifts``)."""
    return tuple(row_major[index] for index in COEFFICIENT_ORDER)


def group_scales(per_channel: Tensor, view: MatrixView) -> Tensor:
    """Return the scale of each group of ``channel_rows`` rows in payload order, float32 (scale_groups,), on the same device.

    Groups that begin in the padding have scale 1; in division they have the scale of the last channel, whose values they
    repeat. :data:`NO_SCALES` stay as they are, for kernels that take the scales of channels.
    """
    if per_channel is NO_SCALES:
        return NO_SCALES
    if not view.mode.has_scales:
        return _ONE_SCALE.expand(view.scale_groups)
    real, per_channel = max(view.rows // view.channel_rows, 1), per_channel.detach()
    times = real // view.channels
    groups = per_channel if times == 1 else per_channel.expand(times, -1).reshape(-1).contiguous()
    if real < view.scale_groups:
        last = groups[-1:] if view.mode is Mode.DIVISION else groups.new_ones(1)
        groups = torch.cat((groups, last.expand(view.scale_groups - real)))
    return groups


def group_offsets(per_channel: Tensor, view: MatrixView) -> Tensor:
    """Return the offset of each group of rows, int16 (scale_groups,), on the same device; empty in modes without offsets.

    :data:`NO_OFFSETS` stay as they are, for kernels that take the offsets of channels.
    """
    if not view.mode.has_offsets or per_channel is NO_OFFSETS:
        return NO_OFFSETS
    return per_channel.detach().repeat(view.scale_groups // view.channels)


def compression_job(
    view: MatrixView,
    dtype: Dtype,
    multipliers: Tensor,
    shifts: Sequence[int] = (),
    const_bits: int = 0,
    pass1_bits: int = 0,
    rounding: Rounding | None = None,
    how: How = None,
    offsets: Tensor = NO_OFFSETS,
) -> Job:
    """Return the job of compressing a tensor with this view.

    ``multipliers`` is float32 (channels,), ignored by brc, bypass and mx; ``offsets``, int16 (channels,), go with blpa;
    ``how`` is as :func:`cdu_spec.coding.checked` takes it. Raises UserError for settings that the mode does not take.
    """
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
        checked(view.mode, how),
        group_offsets(offsets, view),
    )


def decompression_job(header: Header, shifts: Sequence[int], reciprocals: Tensor, offsets: Tensor = NO_OFFSETS) -> Job:
    """Return the job of decompressing a stream with these tables; ``reciprocals`` is float32, ``offsets`` int16 (channels,)."""
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
        how=header.how,
        offsets=group_offsets(offsets, view),
    )


def padded_view(job: Job) -> MatrixView:
    """Return the padded matrix of a job as a view without padding; in modes without tiles a beat is a row."""
    row_beats = job.row_beats if job.mode.in_tiles else 1
    return MatrixView(job.beats // row_beats, row_beats * LANES, 1, 1, job.mode)


def beats_in(x: Tensor, view: MatrixView) -> Tensor:
    """Return the values of ``x`` as beats (view.beats, 8) of the dtype of ``x``, in feeding order.

    :func:`actcodec.golden.blocks.to_beats` defines the order, :func:`~actcodec.golden.blocks.padded` the padding.
    """
    return blocks.to_beats(blocks.padded(x.contiguous(), view), view)


def tensor_from_beats(beats: Tensor, view: MatrixView, shape: Sequence[int]) -> Tensor:
    """Return the tensor of ``shape`` whose values ``beats`` hold; inverse of :func:`beats_in`, drops the padding."""
    matrix = blocks.from_beats(beats, view)
    return blocks.unpadded(matrix, view, prod(shape)).reshape(tuple(shape))

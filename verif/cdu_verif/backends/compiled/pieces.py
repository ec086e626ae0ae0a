"""Division of a job into jobs whose concatenated payloads are the payload of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import lcm

import torch
from actcodec.backends.golden_codings import block_chain
from actcodec.backends.job import Job
from actcodec.golden.block_starts import block_starts
from cdu_spec.coding import known
from cdu_spec.geometry import BLOCK_SIDE, LANES, VALUE_BITS
from cdu_spec.modes import Mode
from cdu_spec.mx import MxSettings
from torch import Tensor

#: Least number of beats for which another unit is worth while.
LEAST_BEATS = 2048


def cuts(job: Job, count: int) -> list[int]:
    """Return the numbers of the beats at which the pieces begin, then the number of all beats: at most ``count`` pieces.

    A piece begins with a block (a strip in jpeg-act) and with a scale, unless all values have the same one. A job of an affine
    mode is not cut, because its random numbers depend on positions in the job.
    """
    if job.mode.is_affine:
        return [0, job.beats]
    step = BLOCK_SIDE
    if job.mode.in_tiles:
        step *= job.row_beats
    if job.scales.numel() > 1 and job.mode.has_scales:
        step = lcm(step, job.row_beats * job.channel_rows)
    steps = job.beats // step
    pieces = max(1, min(count, steps, job.beats // LEAST_BEATS))
    return [steps * number // pieces * step for number in range(pieces)] + [job.beats]


def piece(job: Job, begin: int, end: int) -> Job:
    """Return the job of the beats from ``begin`` to ``end``, two neighbours in :func:`cuts`."""
    beats = end - begin
    if job.scales.numel() == 1 or not job.mode.has_scales:
        one = replace(job, beats=beats, scales=job.scales[:1])
        # With one scale and without tiles the shape of the matrix does not matter.
        return one if job.mode.in_tiles else replace(one, row_beats=beats, channel_rows=1)
    group = job.row_beats * job.channel_rows
    return replace(job, beats=beats, scales=job.scales[begin // group : -(-end // group)])


def payload_cuts(job: Job, payload: Tensor, beats: Sequence[int]) -> list[int]:
    """Return the bytes of the payload at which the beats of :func:`cuts` begin, then the payload's length.

    Raises BitstreamError if a payload whose blocks have variable lengths does not have the blocks of the job.
    """
    if len(beats) == 2:
        return [0, payload.numel()]
    if job.mode.has_zvc:
        starts = block_starts(payload, job.beats // BLOCK_SIDE, block_chain(job))
        return [*starts[torch.tensor(beats[:-1]) // BLOCK_SIDE].tolist(), payload.numel()]
    return [begin * block_payload_bytes(job) // BLOCK_SIDE for begin in beats[:-1]] + [payload.numel()]


def block_payload_bytes(job: Job) -> int:
    """Return the bytes of payload per block of 8 beats, in modes where they are constant."""
    if job.mode is Mode.MX:
        return BLOCK_SIDE // job.mode.whole_beats * known(job.how, MxSettings).kind.block_bytes
    return BLOCK_SIDE * LANES * {Mode.BRC: 1, Mode.BYPASS: job.dtype.bits}.get(job.mode, VALUE_BITS) // 8


def spans(edges: Sequence[int]) -> list[slice]:
    """Return the pieces between edges."""
    return [slice(begin, end) for begin, end in pairwise(edges)]

"""Modes blpa and autoquant: rows of codes with a fixed step, and mode brc, whose codes are signs."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from cdu_spec import geometry
from cdu_spec.affine import AffineSettings
from cdu_spec.coding import known
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from torch import Tensor

from actcodec.backends.job import Job
from actcodec.backends.triton.affine import beat_places, beats, codes_of, fractions, load_codes, store_codes
from actcodec.backends.triton.constants import BASE_MAX, BASE_MIN, LANES
from actcodec.backends.triton.launch import PROGRAM_VALUES, bits_of, launch, programs_for
from actcodec.backends.triton.values import number, product, rounded, saturated

_TILE_BEATS = PROGRAM_VALUES // geometry.LANES


@triton.jit(do_not_specialize=["seed"])
def _encode_kernel(
    x_ptr: tl.tensor,
    k_ptr: tl.tensor,
    offsets_ptr: tl.tensor,
    payload_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    count: tl.tensor,
    row_beats: tl.tensor,
    seed: tl.tensor,
    bits: tl.constexpr,
    step_log2: tl.constexpr,
    low: tl.constexpr,
    has_offsets: tl.constexpr,
    stochastic: tl.constexpr,
    tile_beats: tl.constexpr,
) -> None:
    beat = beats(tile_beats)
    row, column = beat_places(beat, row_beats)
    values = number(tl.load(x_ptr + row * columns + column, mask=(row < rows) & (column < columns), other=0))
    scaled = product(values, tl.load(k_ptr + row % count, mask=row < rows, other=1.0))
    if has_offsets:
        # Values are always rounded down, so that their signs are kept.
        scaled = tl.floor(scaled) - tl.load(offsets_ptr + row % count, mask=row < rows, other=0).to(tl.float64)
        rho = tl.zeros((tile_beats, LANES), tl.int32)
    else:
        rho = fractions(seed, beat, stochastic)
    x = saturated(scaled, BASE_MIN, BASE_MAX)
    mantissa, exponent = tl.full((tile_beats, 1), 1, tl.int32), tl.full((tile_beats, 1), step_log2, tl.int32)
    codes = codes_of(x, low, mantissa, exponent, rho, bits)
    store_codes(payload_ptr, beat * bits, codes, (beat < rows * row_beats)[:, None], bits)


@triton.jit
def _decode_kernel(
    payload_ptr: tl.tensor,
    r_ptr: tl.tensor,
    offsets_ptr: tl.tensor,
    y_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    count: tl.tensor,
    row_beats: tl.tensor,
    bits: tl.constexpr,
    step_log2: tl.constexpr,
    low: tl.constexpr,
    has_offsets: tl.constexpr,
    tile_beats: tl.constexpr,
) -> None:
    beat = beats(tile_beats)
    row, column = beat_places(beat, row_beats)
    codes = load_codes(payload_ptr, beat * bits, (beat < rows * row_beats)[:, None], bits)
    integers = low + (codes << step_log2)
    if has_offsets:
        # Values were rounded down, so they are decoded to the middle of a step.
        integers += (1 << step_log2 >> 1) + tl.load(offsets_ptr + row % count, mask=row < rows, other=0).to(tl.int32)
    values = integers.to(tl.float32) * tl.load(r_ptr + row % count, mask=row < rows, other=1.0)
    y = rounded(values, y_ptr.dtype.element_ty)
    tl.store(y_ptr + row * columns + column, y, mask=(row < rows) & (column < columns))


@triton.jit
def _signs_kernel(x_ptr: tl.tensor, payload_ptr: tl.tensor, count: tl.tensor, tile_beats: tl.constexpr) -> None:
    beat = beats(tile_beats)
    at = beat[:, None] * LANES + tl.arange(0, LANES)[None, :]
    positive = (number(tl.load(x_ptr + at, mask=at < count, other=0)) > 0).to(tl.int64)
    store_codes(payload_ptr, beat, positive, (beat * LANES < count)[:, None], 1)


@triton.jit
def _from_signs_kernel(payload_ptr: tl.tensor, y_ptr: tl.tensor, count: tl.tensor, tile_beats: tl.constexpr) -> None:
    beat = beats(tile_beats)
    at = beat[:, None] * LANES + tl.arange(0, LANES)[None, :]
    positive = load_codes(payload_ptr, beat, (beat * LANES < count)[:, None], 1)
    tl.store(y_ptr + at, rounded(positive.to(tl.float32), y_ptr.dtype.element_ty), mask=at < count)


def _form(job: Job) -> dict[str, int]:
    settings = known(job.how, AffineSettings)
    quantizer = {"bits": settings.bits, "step_log2": settings.step_log2, "low": settings.fixed_low}
    return {**quantizer, "has_offsets": job.mode is Mode.BLPA, "tile_beats": _TILE_BEATS}


def encode(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    """Return the payload of a tensor, equal to that of :func:`actcodec.golden.autoquant.encode` or ``blpa.encode``."""
    settings, device = known(job.how, AffineSettings), x.device
    payload = torch.empty(view.beats * settings.bits, dtype=torch.uint8, device=device)
    tensors = (bits_of(x), job.scales.to(device), job.offsets.to(device), payload)
    layout = (view.rows, view.columns, job.scales.numel(), view.row_beats, settings.seed)
    programs = programs_for(view.beats, _TILE_BEATS)
    launch(_encode_kernel, programs, *tensors, *layout, stochastic=settings.stochastic, **_form(job))
    return payload


def decode(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> None:
    """Decode a payload to ``y``."""
    device = payload.device
    tensors = (payload, job.scales.to(device), job.offsets.to(device), bits_of(y))
    layout = (view.rows, view.columns, job.scales.numel(), view.row_beats)
    launch(_decode_kernel, programs_for(view.beats, _TILE_BEATS), *tensors, *layout, **_form(job))


def encode_signs(x: Tensor) -> Tensor:
    """Return the payload of a tensor as :func:`actcodec.golden.brc.encode` does."""
    payload = torch.empty(programs_for(x.numel(), geometry.LANES), dtype=torch.uint8, device=x.device)
    launch(_signs_kernel, programs_for(x.numel(), PROGRAM_VALUES), bits_of(x), payload, x.numel(), tile_beats=_TILE_BEATS)
    return payload


def decode_signs(payload: Tensor, y: Tensor) -> None:
    """Decode a payload to ``y`` as :func:`actcodec.golden.brc.decode` does."""
    launch(_from_signs_kernel, programs_for(y.numel(), PROGRAM_VALUES), payload, bits_of(y), y.numel(), tile_beats=_TILE_BEATS)

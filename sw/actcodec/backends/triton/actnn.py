"""Mode actnn: groups of 256 consecutive values with their own range, and the inverse."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from cdu_spec import geometry
from cdu_spec.affine import GROUP_VALUES as GROUP
from cdu_spec.affine import AffineSettings
from cdu_spec.coding import head_bytes, known
from torch import Tensor

from actcodec.backends.job import Job
from actcodec.backends.triton.affine import (
    beats,
    codes_of,
    found_step,
    fractions,
    load_codes,
    load_head,
    load_step,
    per_row,
    store_codes,
    store_head,
    store_step,
)
from actcodec.backends.triton.constants import BASE_MAX, BASE_MIN, GROUP_VALUES, LANES, SIDE, TILE_BLOCKS
from actcodec.backends.triton.launch import PROGRAM_VALUES, bits_of, launch, programs_for
from actcodec.backends.triton.values import number, product, rounded, saturated
from actcodec.golden.heads import headed_bytes

_GROUP_BEATS = tl.constexpr(GROUP // geometry.LANES)
_TILE_GROUPS = PROGRAM_VALUES // GROUP


@triton.jit
def _values(beat: tl.tensor) -> tl.tensor:
    """Return the numbers of the values of beats (n, 8): a group is 8 rows of 32 values, cut into four adjacent blocks."""
    within = beat % _GROUP_BEATS
    first = beat // _GROUP_BEATS * GROUP_VALUES + within % SIDE * (TILE_BLOCKS * LANES) + within // SIDE * LANES
    return first[:, None] + tl.arange(0, LANES)[None, :]


@triton.jit(do_not_specialize=["seed"])
def _encode_kernel(
    x_ptr: tl.tensor,
    k_ptr: tl.tensor,
    payload_ptr: tl.tensor,
    count: tl.tensor,
    groups: tl.tensor,
    seed: tl.tensor,
    group_bytes: tl.constexpr,
    head: tl.constexpr,
    bits: tl.constexpr,
    stochastic: tl.constexpr,
    tile_groups: tl.constexpr,
) -> None:
    beat = beats(tile_groups * _GROUP_BEATS)
    # The last group is padded with the last value.
    values = number(tl.load(x_ptr + tl.minimum(_values(beat), count - 1)))
    x = saturated(product(values, tl.load(k_ptr)), BASE_MIN, BASE_MAX)
    by_group = tl.reshape(x, (tile_groups, GROUP_VALUES))
    group = tl.program_id(0).to(tl.int64) * tile_groups + tl.arange(0, tile_groups)
    low = tl.min(by_group, axis=1)
    mantissa, exponent = found_step(tl.max(by_group, axis=1) - low, bits)
    store_head(payload_ptr + group * group_bytes, low, group < groups)
    store_step(payload_ptr + group * group_bytes, mantissa, exponent, group < groups)
    ranges = per_row(low, _GROUP_BEATS), per_row(mantissa, _GROUP_BEATS), per_row(exponent, _GROUP_BEATS)
    codes = codes_of(x, ranges[0], ranges[1], ranges[2], fractions(seed, beat, stochastic), bits)
    at = beat // _GROUP_BEATS * group_bytes + head + beat % _GROUP_BEATS * bits
    store_codes(payload_ptr, at, codes, (beat // _GROUP_BEATS < groups)[:, None], bits)


@triton.jit
def _decode_kernel(
    payload_ptr: tl.tensor,
    r_ptr: tl.tensor,
    y_ptr: tl.tensor,
    count: tl.tensor,
    groups: tl.tensor,
    group_bytes: tl.constexpr,
    head: tl.constexpr,
    bits: tl.constexpr,
    tile_groups: tl.constexpr,
) -> None:
    beat = beats(tile_groups * _GROUP_BEATS)
    inside = beat // _GROUP_BEATS < groups
    head_ptr = payload_ptr + beat // _GROUP_BEATS * group_bytes
    low, step = load_head(head_ptr, inside)[:, None], load_step(head_ptr, inside)[:, None]
    at = beat // _GROUP_BEATS * group_bytes + head + beat % _GROUP_BEATS * bits
    values = (low + load_codes(payload_ptr, at, inside[:, None], bits) * step).to(tl.float32)
    place = _values(beat)
    tl.store(y_ptr + place, rounded(values * tl.load(r_ptr), y_ptr.dtype.element_ty), mask=place < count)


def _form(job: Job) -> dict[str, int]:
    settings = known(job.how, AffineSettings)
    sizes = {"group_bytes": headed_bytes(job.mode, settings), "head": head_bytes(job.mode, settings)}
    return {**sizes, "bits": settings.bits, "tile_groups": _TILE_GROUPS}


def encode(x: Tensor, job: Job) -> Tensor:
    """Return the payload of a tensor as :func:`actcodec.golden.actnn.encode` does."""
    settings, groups = known(job.how, AffineSettings), programs_for(x.numel(), GROUP)
    payload = torch.empty(groups * headed_bytes(job.mode, settings), dtype=torch.uint8, device=x.device)
    tensors = (bits_of(x), job.scales.to(x.device), payload)
    size = (x.numel(), groups, settings.seed)
    programs = programs_for(groups, _TILE_GROUPS)
    launch(_encode_kernel, programs, *tensors, *size, stochastic=settings.stochastic, **_form(job))
    return payload


def decode(payload: Tensor, job: Job, y: Tensor) -> None:
    """Decode a payload with valid heads (:func:`actcodec.golden.heads.check_heads`) to ``y``."""
    groups = programs_for(y.numel(), GROUP)
    tensors = (payload, job.scales.to(payload.device), bits_of(y))
    launch(_decode_kernel, programs_for(groups, _TILE_GROUPS), *tensors, y.numel(), groups, **_form(job))

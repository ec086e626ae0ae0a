"""Decoder of GMC: each lane reads a block from its first bit to its last, all blocks in parallel."""

from __future__ import annotations

import triton
import triton.language as tl
from cdu_spec import geometry

from actcodec.backends.triton.block_starts import starts_of
from actcodec.backends.triton.constants import (
    BLOCK_VALUES,
    GMC_A_BOTH_ZERO,
    GMC_A_ZERO,
    GMC_B_BESIDE_ZERO,
    GMC_CATEGORY_BITS,
    GMC_CATEGORY_MASK,
    GMC_GROUP,
    GMC_LONG_HEAD,
    GMC_MAX_CATEGORY,
    GMC_RAW_CLASS,
    GMC_SHORT_BYTES,
    LANES,
    SIDE,
    VALUE_MAX,
    VALUE_MIN,
)
from actcodec.backends.triton.gmc_codes import (
    A_BITS,
    A_LONGEST,
    B_BITS,
    B_LONGEST,
    LENGTH,
    MASK_BITS,
    MASK_LONGEST,
    VALUE_MASK,
    contexts,
    is_coded,
    mask_row,
)
from actcodec.backends.triton.values import clamped

#: Number of bits that are read at once, and of bytes that they may span.
_WORD = 32
_WORD_MASK, _WORD_BYTES = tl.constexpr((1 << _WORD) - 1), tl.constexpr(_WORD // geometry.LANES + 1)


@triton.jit
def _peek(payload_ptr: tl.tensor, place: tl.tensor, end: tl.tensor) -> tl.tensor:
    """Return the next 32 bits from bit ``place`` of a payload on, int64; bytes from ``end`` on count as zeros."""
    byte = place // LANES
    word = tl.zeros_like(place)
    for offset in tl.static_range(_WORD_BYTES):
        part = tl.load(payload_ptr + byte + offset, mask=byte + offset < end, other=0).to(tl.int64)
        word |= part << (offset * LANES)
    return (word >> place % LANES) & _WORD_MASK


@triton.jit
def _read_classes(
    payload_ptr: tl.tensor,
    a_ptr: tl.tensor,
    b_ptr: tl.tensor,
    place: tl.tensor,
    end: tl.tensor,
    before_a: tl.tensor,
    before_b: tl.tensor,
    first: tl.constexpr,
) -> tl.tensor:
    """Return the classes of a column's groups, given those of the column before, and the place after their code words."""
    context_a, context_b = contexts(before_a, before_b, first)
    word = _peek(payload_ptr, place, end)
    found = tl.load(a_ptr + (context_a << A_LONGEST) + (word & A_BITS))
    symbol, length = found & VALUE_MASK, found >> LENGTH
    context_b = tl.where(symbol == GMC_A_ZERO, GMC_B_BESIDE_ZERO, context_b)
    found = tl.load(b_ptr + (context_b << B_LONGEST) + ((word >> length) & B_BITS))
    found = tl.where(symbol == GMC_A_BOTH_ZERO, 0, found)
    return tl.maximum(symbol - 1, 0), found & VALUE_MASK, place + length + (found >> LENGTH)


@triton.jit
def _found_mask(mask_ptr: tl.tensor, word: tl.tensor, group_class: tl.tensor) -> tl.tensor:
    """Return the mask of a group whose code word comes next, and the word's length; 0 for groups without a mask."""
    found = tl.load(mask_ptr + (mask_row(group_class) << MASK_LONGEST) + (word & MASK_BITS))
    coded = is_coded(group_class)
    return tl.where(coded, (found & VALUE_MASK) + 1, 0), tl.where(coded, found >> LENGTH, 0)


@triton.jit
def _read_fields(
    payload_ptr: tl.tensor, place: tl.tensor, end: tl.tensor, group_class: tl.tensor, mask: tl.tensor
) -> tl.tensor:
    """Return the coefficients of groups, int32 (n, 4), and the place after them."""
    word = _peek(payload_ptr, place, end)[:, None]
    is_raw = (group_class == GMC_RAW_CLASS)[:, None]
    present = (mask[:, None] >> tl.arange(0, GMC_GROUP)[None, :]) & 1
    sizes = tl.where(is_raw, LANES, present * group_class[:, None])
    places = tl.cumsum(sizes, axis=1) - sizes
    fields = ((word >> places) & ((1 << sizes) - 1)).to(tl.int32)
    magnitude = (fields >> 1) + 1
    coded = tl.where(fields & 1 == 1, -magnitude, magnitude) * present
    return tl.where(is_raw, fields, coded), place + tl.sum(sizes, axis=1)


@triton.jit
def read_blocks(
    payload_ptr: tl.tensor,
    offsets_ptr: tl.tensor,
    a_ptr: tl.tensor,
    b_ptr: tl.tensor,
    mask_ptr: tl.tensor,
    q_ptr: tl.tensor,
    size: tl.tensor,
    blocks: tl.tensor,
    lanes: tl.constexpr,
) -> None:
    """Store the coefficients of a program's blocks, as :func:`actcodec.golden.gmc.decode_at` returns them."""
    block = tl.program_id(0).to(tl.int64) * lanes + tl.arange(0, lanes)
    inside = block < blocks
    start = starts_of(payload_ptr, offsets_ptr, size, blocks, True, lanes)
    head = tl.load(payload_ptr + start, mask=inside, other=0).to(tl.int32)
    is_long = head >= GMC_LONG_HEAD
    end = start + 1 + tl.where(is_long, head - (GMC_LONG_HEAD - GMC_SHORT_BYTES - 1), head >> 3)
    place = (start + 1) * LANES
    in_body = (_peek(payload_ptr, place, end) & GMC_CATEGORY_MASK).to(tl.int32)
    category = tl.minimum(tl.where(is_long, in_body, head & 7), GMC_MAX_CATEGORY)
    place += tl.where(is_long, GMC_CATEGORY_BITS, 0)
    bits = _peek(payload_ptr, place, end).to(tl.int32)
    place += category
    upper = (1 << category) >> 1
    magnitude = upper | ((bits >> 1) & tl.maximum(upper - 1, 0))
    dc = clamped(tl.where(bits & 1 == 1, -magnitude, magnitude), VALUE_MIN, VALUE_MAX)
    zero = tl.zeros_like(category)
    a, b, place = _read_classes(payload_ptr, a_ptr, b_ptr, place, end, zero, zero, True)
    is_dc = (tl.arange(0, GMC_GROUP) == 0)[None, :]
    at = block[:, None] * BLOCK_VALUES + tl.arange(0, GMC_GROUP)[None, :]
    column = zero
    for _ in range(SIDE):
        word = _peek(payload_ptr, place, end)
        mask_a, length = _found_mask(mask_ptr, word, a)
        mask_b, length_b = _found_mask(mask_ptr, word >> length, b)
        place += length + length_b
        next_a, next_b, behind = _read_classes(payload_ptr, a_ptr, b_ptr, place, end, a, b, False)
        # No column follows the last one.
        place = tl.where(column + 1 < SIDE, behind, place)
        x, place = _read_fields(payload_ptr, place, end, a, mask_a)
        y, place = _read_fields(payload_ptr, place, end, b, mask_b)
        x = tl.where((column == 0)[:, None] & is_dc, dc[:, None], x)
        tl.store(q_ptr + at, x.to(tl.int8), mask=inside[:, None])
        tl.store(q_ptr + at + GMC_GROUP, y.to(tl.int8), mask=inside[:, None])
        a, b, at, column = next_a, next_b, at + SIDE, column + 1

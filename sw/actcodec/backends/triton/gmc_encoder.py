"""Encoder of GMC: each lane writes a block from its first bit to its last, all blocks in parallel.

A lane writes the body without the category of DC; the sums of the lengths determine where it goes. Consecutive bits are a
value, first bit lowest, and their number.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from cdu_spec import geometry
from cdu_spec import gmc as spec
from torch import Tensor

from actcodec.backends.triton.constants import (
    BLOCK_VALUES,
    GMC_A_BOTH_ZERO,
    GMC_A_ZERO,
    GMC_B_BESIDE_ZERO,
    GMC_CATEGORY_BITS,
    GMC_GROUP,
    GMC_LONG_HEAD,
    GMC_MAX_CATEGORY,
    GMC_RAW_CLASS,
    GMC_SHORT_BYTES,
    LANES,
    SIDE,
)
from actcodec.backends.triton.gmc_codes import (
    A_SYMBOLS,
    B_SYMBOLS,
    LENGTH,
    MASK_SYMBOLS,
    VALUE_MASK,
    code_words,
    contexts,
    is_coded,
    mask_row,
)
from actcodec.backends.triton.launch import PROGRAM_BLOCKS, launch
from actcodec.backends.triton.lengths import Lengths, Measured, add_lengths, placed

#: Number of bits of the words in which bodies are written, and of words of the longest body.
_WORD = 32
_WORDS = spec.MAX_WRITTEN_BODY_BYTES * geometry.LANES // _WORD + 1
_WORD_BITS, _BODY_WORDS = tl.constexpr(_WORD), tl.constexpr(_WORDS)
_WORD_MASK = tl.constexpr((1 << _WORD) - 1)
#: Number of places for the bytes of a block, a power of two.
_BLOCK_BYTES = tl.constexpr(1 << spec.MAX_WRITTEN_BLOCK_BYTES.bit_length())
#: Fraction bits of a float64, and the exponent field of numbers from one half to below one.
_FRACTION_BITS, _HALF = tl.constexpr(52), tl.constexpr(1022)


@triton.jit
def _bit_length(value: tl.tensor) -> tl.tensor:
    """Return the bit lengths of integers from 0 to below 2**53, int32."""
    exponent = (value.to(tl.float64).to(tl.int64, bitcast=True) >> _FRACTION_BITS).to(tl.int32)
    return tl.maximum(exponent - _HALF, 0)


@triton.jit
def _category(dc: tl.tensor) -> tl.tensor:
    return _bit_length(tl.abs(dc))


@triton.jit
def _body_bytes(last: tl.tensor, category: tl.tensor) -> tl.tensor:
    """Return the bytes of bodies as heads count them, and which bodies are long, from their last bits without the category."""
    size = (last + LANES - 1) // LANES
    is_long = (size > GMC_SHORT_BYTES) | (category == GMC_MAX_CATEGORY)
    shifted = tl.maximum((last + GMC_CATEGORY_BITS + LANES - 1) // LANES, GMC_SHORT_BYTES + 1)
    return tl.where(is_long, shifted, size), is_long


@triton.jit
def _group(q_ptr: tl.tensor, block: tl.tensor, inside: tl.tensor, column: tl.tensor, half: tl.constexpr) -> tl.tensor:
    """Return the four coefficients of a group, int32 (n, 4), DC as zero, and its class (n,)."""
    place = (column * SIDE + half * GMC_GROUP)[:, None] + tl.arange(0, GMC_GROUP)[None, :]
    there = inside[:, None] & (place > 0) & (place < BLOCK_VALUES)
    x = tl.load(q_ptr + block[:, None] * BLOCK_VALUES + place, mask=there, other=0).to(tl.int32)
    largest = tl.max(tl.abs(x), axis=1)
    return x, tl.where(largest > 0, tl.minimum(_bit_length(largest - 1) + 1, GMC_RAW_CLASS), 0)


@triton.jit
def _class_bits(
    a_ptr: tl.tensor,
    b_ptr: tl.tensor,
    before_a: tl.tensor,
    before_b: tl.tensor,
    a: tl.tensor,
    b: tl.tensor,
    first: tl.constexpr,
) -> tl.tensor:
    """Return the code words of the classes of a column's groups."""
    context_a, context_b = contexts(before_a, before_b, first)
    symbol = tl.where(a > 0, a + 1, tl.where(b > 0, GMC_A_ZERO, GMC_A_BOTH_ZERO))
    context_b = tl.where(symbol == GMC_A_ZERO, GMC_B_BESIDE_ZERO, context_b)
    word_a = tl.load(a_ptr + context_a * A_SYMBOLS + symbol)
    word_b = tl.where(symbol == GMC_A_BOTH_ZERO, 0, tl.load(b_ptr + context_b * B_SYMBOLS + b))
    length_a = word_a >> LENGTH
    return (word_a & VALUE_MASK) | ((word_b & VALUE_MASK) << length_a), length_a + (word_b >> LENGTH)


@triton.jit
def _mask_bits(mask_ptr: tl.tensor, x: tl.tensor, group_class: tl.tensor) -> tl.tensor:
    """Return the code words of the masks of groups; none for classes without a mask."""
    mask = tl.sum((x != 0).to(tl.int32) << tl.arange(0, GMC_GROUP)[None, :], axis=1)
    word = tl.load(mask_ptr + mask_row(group_class) * MASK_SYMBOLS + tl.maximum(mask, 1) - 1)
    word = tl.where(is_coded(group_class), word, 0)
    return word & VALUE_MASK, word >> LENGTH


@triton.jit
def _field_bits(x: tl.tensor, group_class: tl.tensor) -> tl.tensor:
    """Return signs and magnitudes less 1 of the nonzero coefficients of groups, or bytes."""
    coded, present = is_coded(group_class)[:, None], (x != 0).to(tl.int32)
    sizes = tl.where(coded, present * group_class[:, None], tl.where(group_class[:, None] == GMC_RAW_CLASS, LANES, 0))
    fields = tl.where(coded, (x < 0).to(tl.int32) | ((tl.abs(x) - present) << 1), x & VALUE_MASK)
    places = tl.cumsum(sizes, axis=1) - sizes
    return tl.sum(fields.to(tl.int64) << places, axis=1), tl.sum(sizes, axis=1)


@triton.jit
def _appended(
    body_ptr: tl.tensor,
    inside: tl.tensor,
    kept: tl.tensor,
    place: tl.tensor,
    last: tl.tensor,
    value: tl.tensor,
    length: tl.tensor,
) -> tl.tensor:
    """Write up to 32 bits at bit ``place``; return an unfinished word's bits, the next place, and the last set bit's end."""
    filled = place % _WORD_BITS
    kept |= value.to(tl.int64) << filled
    last = tl.where(value != 0, place + _bit_length(value), last)
    full = filled + length >= _WORD_BITS
    tl.store(body_ptr + place // _WORD_BITS, (kept & _WORD_MASK).to(tl.int32), mask=inside & full)
    return tl.where(full, kept >> _WORD_BITS, kept), place + length, last


@triton.jit
def write_bodies(
    q_ptr: tl.tensor,
    a_ptr: tl.tensor,
    b_ptr: tl.tensor,
    mask_ptr: tl.tensor,
    bodies_ptr: tl.tensor,
    lasts_ptr: tl.tensor,
    sums_ptr: tl.tensor,
    marks_ptr: tl.tensor,
    blocks: tl.tensor,
    group_units: tl.constexpr,
    lanes: tl.constexpr,
) -> None:
    """Write the bodies of a program's blocks, whose coefficients are in memory, and leave the sums of their lengths."""
    block = tl.program_id(0).to(tl.int64) * lanes + tl.arange(0, lanes)
    inside = block < blocks
    body_ptr = bodies_ptr + block * _BODY_WORDS
    dc = tl.load(q_ptr + block * BLOCK_VALUES, mask=inside, other=0).to(tl.int32)
    category = _category(dc)
    zero = tl.zeros_like(category)
    kept, place, last = zero.to(tl.int64), zero, zero
    low = tl.abs(dc) - ((1 << category) >> 1)
    kept, place, last = _appended(body_ptr, inside, kept, place, last, (dc < 0).to(tl.int32) | (low << 1), category)
    x, a = _group(q_ptr, block, inside, zero, 0)
    y, b = _group(q_ptr, block, inside, zero, 1)
    value, length = _class_bits(a_ptr, b_ptr, zero, zero, a, b, True)
    kept, place, last = _appended(body_ptr, inside, kept, place, last, value, length)
    column = zero
    for _ in range(SIDE):
        column += 1
        value, length = _mask_bits(mask_ptr, x, a)
        mask_b, mask_length = _mask_bits(mask_ptr, y, b)
        value, length = value | (mask_b << length), length + mask_length
        next_x, next_a = _group(q_ptr, block, inside, column, 0)
        next_y, next_b = _group(q_ptr, block, inside, column, 1)
        classes, classes_length = _class_bits(a_ptr, b_ptr, a, b, next_a, next_b, False)
        # No column follows the last one.
        value |= tl.where(column < SIDE, classes << length, 0)
        length += tl.where(column < SIDE, classes_length, 0)
        kept, place, last = _appended(body_ptr, inside, kept, place, last, value, length)
        fields, fields_length = _field_bits(x, a)
        kept, place, last = _appended(body_ptr, inside, kept, place, last, fields, fields_length)
        fields, fields_length = _field_bits(y, b)
        kept, place, last = _appended(body_ptr, inside, kept, place, last, fields, fields_length)
        x, y, a, b = next_x, next_y, next_a, next_b
    tl.store(body_ptr + place // _WORD_BITS, kept.to(tl.int32), mask=inside)
    size, _ = _body_bytes(last, category)
    tl.store(lasts_ptr + block, last, mask=inside)
    add_lengths(tl.where(inside, size + 1, 0), sums_ptr, marks_ptr, blocks, group_units)


@triton.jit
def _pack_kernel(
    q_ptr: tl.tensor,
    bodies_ptr: tl.tensor,
    lasts_ptr: tl.tensor,
    sums_ptr: tl.tensor,
    marks_ptr: tl.tensor,
    payload_ptr: tl.tensor,
    offsets_ptr: tl.tensor,
    blocks: tl.tensor,
    group_units: tl.constexpr,
    tile_blocks: tl.constexpr,
) -> None:
    block = tl.program_id(0).to(tl.int64) * tile_blocks + tl.arange(0, tile_blocks)
    inside = block < blocks
    category = _category(tl.load(q_ptr + block * BLOCK_VALUES, mask=inside, other=0).to(tl.int32))
    last = tl.load(lasts_ptr + block, mask=inside, other=0)
    size, is_long = _body_bytes(last, category)
    start = placed(tl.where(inside, size + 1, 0), sums_ptr, marks_ptr, offsets_ptr, group_units)
    head = tl.where(is_long, GMC_LONG_HEAD - GMC_SHORT_BYTES - 1 + size, (size << 3) | category)
    tl.store(payload_ptr + start, head.to(tl.uint8), mask=inside)
    body_ptr = bodies_ptr + block[:, None] * (_BODY_WORDS * _WORD_BITS // LANES)
    place, written = tl.arange(0, _BLOCK_BYTES)[None, :], ((last + LANES - 1) // LANES)[:, None]
    body = tl.load(body_ptr + place, mask=inside[:, None] & (place < written), other=0).to(tl.int32)
    before = tl.load(body_ptr + place - 1, mask=inside[:, None] & (place > 0) & (place <= written), other=0).to(tl.int32)
    below = tl.where(place > 0, before >> (LANES - GMC_CATEGORY_BITS), category[:, None])
    body = tl.where(is_long[:, None], (body << GMC_CATEGORY_BITS) | below, body)
    tl.store(payload_ptr + start[:, None] + 1 + place, body.to(tl.uint8), mask=inside[:, None] & (place < size[:, None]))


@dataclass(frozen=True, eq=False)
class Bodies:
    """Memory for what :func:`write_bodies` writes."""

    bodies: Tensor  #: int32 (blocks, words)
    lasts: Tensor  #: int32 (blocks,): last bits of the bodies
    lengths: Lengths

    @classmethod
    def of(cls, lengths: Lengths) -> Bodies:
        """Return memory for the bodies of blocks with these lengths."""
        blocks, device = lengths.blocks, lengths.marks.device
        bodies = torch.empty(blocks, _WORDS, dtype=torch.int32, device=device)
        return cls(bodies, torch.empty(blocks, dtype=torch.int32, device=device), lengths)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Return the arguments of kernels from ``a_ptr`` to ``marks_ptr``."""
        lengths = self.lengths
        return (*code_words(lengths.marks.device), self.bodies, self.lasts, lengths.sums, lengths.marks)

    def measured(self, q: Tensor) -> Measured:
        """Return blocks, int8 (blocks, 64), whose payload is that of :func:`actcodec.golden.gmc.encode`."""
        lengths = self.lengths

        def pack(payload: Tensor, offsets: Tensor) -> None:
            sums = (lengths.sums, lengths.marks)
            tensors = (q, self.bodies.view(torch.uint8), self.lasts, *sums, payload, offsets)
            launch(_pack_kernel, lengths.units, *tensors, lengths.blocks, **lengths.shape, tile_blocks=PROGRAM_BLOCKS)

        return Measured(lengths, pack)

"""Affine quantiser and its random numbers in kernels, as :mod:`actcodec.golden.affine` and ``random_bits`` define them.

Codes are stored in rows of 8, which take as many bytes as a code has bits.
"""

from __future__ import annotations

import triton
import triton.language as tl
from cdu_spec import randomness

from actcodec.backends.triton.constants import (
    FRACTION_BITS,
    LANES,
    LOW_BYTES,
    MANTISSA_BITS,
    MAX_SPREAD,
    NEAREST,
    RECIPROCAL_ONE,
    RECIPROCAL_SHIFT,
)

_WORD_BITS = tl.constexpr(randomness.WORD_BITS)
_WORD_MASK = tl.constexpr((1 << randomness.WORD_BITS) - 1)
_ROUND_CONSTANTS = tl.constexpr(randomness.ROUND_CONSTANTS)
_ROUNDS = tl.constexpr(len(randomness.ROUND_CONSTANTS))
_ROTATIONS = tl.constexpr(randomness.ROTATIONS)
_SECOND_ROTATION = tl.constexpr(randomness.SECOND_ROTATION)
#: Fraction bits of a float32, and the exponent field of numbers from one half to below one.
_FLOAT_FRACTION_BITS, _FLOAT_HALF = tl.constexpr(23), tl.constexpr(126)


@triton.jit
def beats(tile_beats: tl.constexpr) -> tl.tensor:
    """Return the numbers of a program's beats in the order of the payload, int64 (n,)."""
    return tl.program_id(0).to(tl.int64) * tile_beats + tl.arange(0, tile_beats)


@triton.jit
def beat_places(beat: tl.tensor, row_beats: tl.tensor) -> tl.tensor:
    """Return row (n, 1) and columns (n, 8) of the matrix for beats of its rows."""
    return (beat // row_beats)[:, None], (beat % row_beats * LANES)[:, None] + tl.arange(0, LANES)[None, :]


@triton.jit
def _rotated(word: tl.tensor, places: tl.constexpr) -> tl.tensor:
    """Rotate 16-bit words, as int32, left."""
    return ((word << places) | (word >> (_WORD_BITS - places))) & _WORD_MASK


@triton.jit
def random_bits(seed: tl.tensor, beat: tl.tensor) -> tl.tensor:
    """Return the random numbers of beats, int64 (n,), for a seed, int64: int32 (n, 8), each 0 to 65535."""
    w0 = (beat & _WORD_MASK).to(tl.int32)
    w1 = ((beat >> _WORD_BITS) & _WORD_MASK).to(tl.int32)
    w2 = tl.zeros_like(w0) + (seed & _WORD_MASK).to(tl.int32)
    w3 = tl.zeros_like(w0) + ((seed >> _WORD_BITS) & _WORD_MASK).to(tl.int32)
    for number in tl.static_range(_ROUNDS):
        a0 = w0 ^ _ROUND_CONSTANTS[number]
        not1 = w1 ^ _WORD_MASK
        mixed = w2 ^ w3
        b0 = (a0 & not1) ^ mixed
        t6 = a0 ^ (w3 | not1)
        b1 = w2 ^ t6
        t8 = w1 ^ w2
        w0 = _rotated(b0, _ROTATIONS[0])
        w1 = _rotated(b1, _ROTATIONS[1])
        w2 = _rotated(t6 ^ (b0 | t8), _ROTATIONS[2])
        w3 = _rotated(t8 ^ (mixed & t6), _ROTATIONS[3])
    w4 = _rotated(w0, _SECOND_ROTATION) ^ w1
    w5 = _rotated(w1, _SECOND_ROTATION) ^ w2
    w6 = _rotated(w2, _SECOND_ROTATION) ^ w3
    w7 = _rotated(w3, _SECOND_ROTATION) ^ w0
    # The last axis of a join is the lowest bit of a number's place.
    even = tl.join(tl.join(w0, w4), tl.join(w2, w6))
    odd = tl.join(tl.join(w1, w5), tl.join(w3, w7))
    return tl.reshape(tl.join(even, odd), (beat.shape[0], LANES))


@triton.jit
def fractions(seed: tl.tensor, beat: tl.tensor, stochastic: tl.constexpr) -> tl.tensor:
    """Return the summands of quotients of beats (n,) before rounding down: random numbers, or one half."""
    if stochastic:
        return random_bits(seed, beat)
    else:
        return tl.full((beat.shape[0], LANES), NEAREST, tl.int32)


@triton.jit
def _bit_length(value: tl.tensor) -> tl.tensor:
    """Return the bit lengths of positive integers below 2**24."""
    return (value.to(tl.float32).to(tl.int32, bitcast=True) >> _FLOAT_FRACTION_BITS) - _FLOAT_HALF


@triton.jit
def found_step(spread: tl.tensor, bits: tl.constexpr) -> tl.tensor:
    """Return mantissa and exponent of the step for a spread, 0 to 65535, as :func:`actcodec.golden.affine.found_step` does."""
    levels: tl.constexpr = (1 << bits) - 1
    step = tl.maximum((spread + (levels - 1)) // levels, 1)
    exponent = tl.maximum(_bit_length(step) - MANTISSA_BITS, 0)
    mantissa = (step + (1 << exponent) - 1) >> exponent
    carry = mantissa >> MANTISSA_BITS
    return mantissa >> carry, exponent + carry


@triton.jit
def codes_of(
    x: tl.tensor, low: tl.tensor, mantissa: tl.tensor, exponent: tl.tensor, rho: tl.tensor, bits: tl.constexpr
) -> tl.tensor:
    """Return codes, int64, of integers as :func:`actcodec.golden.affine.codes_of` does."""
    spare = MANTISSA_BITS - _bit_length(mantissa)
    normalised = mantissa << spare
    inverse = (RECIPROCAL_ONE + normalised // 2) // normalised
    shift = RECIPROCAL_SHIFT - FRACTION_BITS + exponent - spare
    t = tl.minimum(tl.maximum(x - low, 0), MAX_SPREAD).to(tl.int64)
    return tl.minimum((((t * inverse) >> shift) + rho) >> FRACTION_BITS, (1 << bits) - 1)


@triton.jit
def store_codes(packed_ptr: tl.tensor, at: tl.tensor, codes: tl.tensor, mask: tl.tensor, bits: tl.constexpr) -> None:
    """Store rows of codes, int64 (n, 8), from the places ``at`` (n,) on, where the mask, (n, 1) or (n, 8), is true."""
    place = tl.arange(0, LANES)[None, :]
    words = tl.sum(codes << (place * bits), axis=1)[:, None]
    tl.store(packed_ptr + at[:, None] + place, (words >> (place * LANES)).to(tl.uint8), mask=mask & (place < bits))


@triton.jit
def load_codes(packed_ptr: tl.tensor, at: tl.tensor, mask: tl.tensor, bits: tl.constexpr) -> tl.tensor:
    """Return rows of codes, int32 (n, 8), zeros where the mask is false; inverse of :func:`store_codes`."""
    place = tl.arange(0, LANES)[None, :]
    parts = tl.load(packed_ptr + at[:, None] + place, mask=mask & (place < bits), other=0).to(tl.int64)
    words = tl.sum(parts << (place * LANES), axis=1)[:, None]
    return ((words >> (place * bits)) & ((1 << bits) - 1)).to(tl.int32)


@triton.jit
def store_head(packed_ptr: tl.tensor, low: tl.tensor, mask: tl.tensor) -> None:
    """Store the mean or least value of blocks, int32 (n,), at these pointers."""
    tl.store(packed_ptr, low.to(tl.uint8), mask=mask)
    tl.store(packed_ptr + 1, (low >> LANES).to(tl.uint8), mask=mask)


@triton.jit
def load_head(packed_ptr: tl.tensor, mask: tl.tensor) -> tl.tensor:
    """Return the mean or least value of blocks; inverse of :func:`store_head`."""
    upper = tl.load(packed_ptr + 1, mask=mask, other=0).to(tl.int8, bitcast=True).to(tl.int32)
    return (upper << LANES) | tl.load(packed_ptr, mask=mask, other=0).to(tl.int32)


@triton.jit
def store_step(packed_ptr: tl.tensor, mantissa: tl.tensor, exponent: tl.tensor, mask: tl.tensor) -> None:
    """Store the found steps of blocks after their heads, which begin at these pointers."""
    tl.store(packed_ptr + LOW_BYTES, mantissa.to(tl.uint8), mask=mask)
    tl.store(packed_ptr + LOW_BYTES + 1, exponent.to(tl.uint8), mask=mask)


@triton.jit
def load_step(packed_ptr: tl.tensor, mask: tl.tensor) -> tl.tensor:
    """Return the found steps ``mantissa << exponent`` after heads, int32 (n,)."""
    mantissa = tl.load(packed_ptr + LOW_BYTES, mask=mask, other=0).to(tl.int32)
    return mantissa << tl.load(packed_ptr + LOW_BYTES + 1, mask=mask, other=0).to(tl.int32)


@triton.jit
def per_row(of_blocks: tl.tensor, rows: tl.constexpr) -> tl.tensor:
    """Repeat numbers of blocks (n,) for each of their rows: (n * rows, 1)."""
    count: tl.constexpr = of_blocks.shape[0]
    return tl.reshape(tl.broadcast_to(of_blocks[:, None], (count, rows)), (count * rows, 1))

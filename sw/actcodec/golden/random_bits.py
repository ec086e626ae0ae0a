"""Random numbers of the stochastic rounding (:mod:`cdu_spec.randomness`): 16 bits per value from seed and position."""

from __future__ import annotations

import torch
from cdu_spec.geometry import LANES
from cdu_spec.randomness import ROTATIONS, ROUND_CONSTANTS, SECOND_ROTATION, STATE_WORDS, WORD_BITS
from torch import Tensor

_MASK = (1 << WORD_BITS) - 1


def random_bits(seed: int, first: int, beats: int, device: torch.device | str = "cpu") -> Tensor:
    """Return the random numbers of consecutive beats.

    Parameters
    ----------
    seed
        Seed, 0 to 2**32 - 1.
    first
        Number of the first beat in the order of the payload, ``8 * block + row``; counted modulo 2**32.
    beats
        Number of beats.
    device
        Device of the result.

    Returns
    -------
    int32 (beats, 8), each 0..65535.
    """
    counter = torch.arange(first, first + beats, dtype=torch.int64, device=device)
    # Conversion to 16 bits keeps the low bits.
    words = [counter.to(torch.int16), (counter >> WORD_BITS).to(torch.int16)]
    words += [counter.new_full((), half).to(torch.int16).expand(beats) for half in (seed & _MASK, seed >> WORD_BITS & _MASK)]
    for constant in ROUND_CONSTANTS:
        words = substitute([words[0] ^ constant, *words[1:]])
        words = [_rotated(word, places) for word, places in zip(words, ROTATIONS, strict=True)]
    second = [_rotated(words[i], SECOND_ROTATION) ^ words[(i + 1) % STATE_WORDS] for i in range(STATE_WORDS)]
    out = torch.empty(beats, LANES, dtype=torch.int32, device=device)
    for lane, word in enumerate((*words, *second)):
        out[:, lane] = word
    return out.bitwise_and_(_MASK)


def random_numbers(seed: int, first: int, count: int, device: torch.device | str = "cpu") -> Tensor:
    """Return the numbers of :func:`random_bits` for consecutive values, int32 (count,), from value ``first`` on."""
    beat, lane = divmod(first, LANES)
    return random_bits(seed, beat, -(-(lane + count) // LANES), device).flatten()[lane : lane + count]


def stochastically_rounded_(steps: Tensor, seed: int, first: int = 0) -> Tensor:
    """Round float32 or float64 values up with the probability of the fraction, to 2**-17; overwrites ``steps``.

    The values are number ``first`` and following of a tensor and use their random numbers of ``seed``, 0 to 2**32 - 1.
    """
    whole = steps.floor()
    drawn = random_numbers(seed, first, steps.numel(), steps.device).view_as(steps)
    # Thresholds are the middles of 2**16 equal parts of 0..1.
    thresholds = (drawn + 0.5) / (1 << WORD_BITS)
    return whole.add_(steps.sub_(whole) > thresholds)


def substitute(words: list[Tensor]) -> list[Tensor]:
    """Apply ``SBOX`` to every bit column of four words of integers, bit i of the nibble in word i.

    The sequence of 12 operations was published by the authors of RECTANGLE.
    """
    a0, a1, a2, a3 = words
    not1 = ~a1
    mixed = a2 ^ a3
    b0 = (a0 & not1) ^ mixed
    t6 = a0 ^ (a3 | not1)
    b1 = a2 ^ t6
    t8 = a1 ^ a2
    b3 = t8 ^ (mixed & t6)
    b2 = t6 ^ (b0 | t8)
    return [b0, b1, b2, b3]


def _rotated(word: Tensor, places: int) -> Tensor:
    """Rotate int16 words left."""
    if places == 0:
        return word
    return (word << places) | ((word >> (WORD_BITS - places)) & ((1 << places) - 1))

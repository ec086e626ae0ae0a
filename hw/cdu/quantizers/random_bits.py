"""Random numbers of the stochastic rounding (:mod:`cdu_spec.randomness`), as combinational steps that a pipeline divides up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_, xor

from amaranth.hdl import Const, Module, Signal, Value
from cdu_spec.randomness import (
    ROTATIONS,
    ROUND_CONSTANTS,
    SBOX,
    SECOND_ROTATION,
    STATE_WORDS,
    WORD_BITS,
)

#: Bits of the state.
STATE_BITS = STATE_WORDS * WORD_BITS


def after_rounds(m: Module, state: Value, rounds: Iterable[int], name: str) -> Value:
    """The state after some of the rounds; before the first one it is the counter with the seed above it."""
    for number in rounds:
        words = [state.word_select(place, WORD_BITS) for place in range(STATE_WORDS)]
        words[0] = words[0] ^ ROUND_CONSTANTS[number]
        next_state = Signal(STATE_BITS, name=f"{name}{number}")
        for place, (bit, rotation) in enumerate(zip(_substituted(words), ROTATIONS, strict=True)):
            m.d.comb += next_state.word_select(place, WORD_BITS).eq(bit.rotate_left(rotation))
        state = next_state
    return state


def numbers(state: Value) -> list[Value]:
    """The 8 numbers of a beat, 16 bits each, from the state after the last round."""
    words = [state.word_select(place, WORD_BITS) for place in range(STATE_WORDS)]
    others = words[1:] + words[:1]
    return words + [word.rotate_left(SECOND_ROTATION) ^ other for word, other in zip(words, others, strict=True)]


def _substituted(words: Sequence[Value]) -> list[Value]:
    """All columns through the substitution at once, each of its bits as a sum of products over GF(2)."""
    substituted = []
    for bit in range(STATE_WORDS):
        products = [
            reduce(and_, (word for place, word in enumerate(words) if monomial >> place & 1), Const(-1, WORD_BITS))
            for monomial in _monomials([value >> bit & 1 for value in SBOX])
        ]
        substituted.append(reduce(xor, products)[:WORD_BITS])
    return substituted


def _monomials(truth: Sequence[int]) -> list[int]:
    """The sets of inputs (as bit masks) whose products add up to a function given by its truth table (Moebius transform)."""
    return [
        monomial
        for monomial in range(len(truth))
        if sum(value for inputs, value in enumerate(truth) if inputs & ~monomial == 0) % 2
    ]

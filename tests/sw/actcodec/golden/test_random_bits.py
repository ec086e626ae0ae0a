"""Random numbers equal the specification step by step, and are good enough for stochastic rounding."""

import numpy as np
import pytest
import torch
from actcodec.codecs.tensor_seeds import TensorSeeds
from actcodec.golden.random_bits import random_bits, substitute
from cdu_spec.randomness import ROTATIONS, ROUND_CONSTANTS, SBOX
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_affine import BOX, random_row

SEEDS = [0, 1, 2, 0x80000000, 0xFFFFFFFF, 0x9E3779B9]
BEATS = 1 << 14
#: Range of chi-square with 255 degrees of freedom, left once in ten million times (Wilson and Hilferty).
CHI_SQUARE_255 = (150, 390)


def chi_square(samples):
    """Return chi-square of samples 0..255 against the uniform distribution."""
    counts = np.bincount(samples, minlength=256)
    expected = samples.size / 256
    return ((counts - expected) ** 2 / expected).sum()


def check_uniform(samples, what):
    low, high = CHI_SQUARE_255
    assert low < chi_square(samples) < high, what


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_the_specification_step_by_step(seed, first):
    mine = random_bits(seed, first, 3).tolist()
    assert mine == [random_row((first + i) % 2**32, seed) for i in range(3)]


def test_constants_are_the_ciphers():
    """Check RECTANGLE's S-box and rotations, and the round constants of a 5-bit shift register (x1 = x4 + x2)."""
    assert SBOX == BOX
    assert sorted(SBOX) == list(range(16))
    assert ROTATIONS == (0, 1, 12, 13)
    state, constants = 1, []
    for _ in ROUND_CONSTANTS:
        constants.append(state)
        state = (state << 1 | (state >> 4 ^ state >> 2) & 1) & 31
    assert tuple(constants) == ROUND_CONSTANTS


def test_the_sequence_of_operations_is_the_table():
    columns = [torch.tensor([n >> i & 1 for n in range(16)]) for i in range(4)]
    out = substitute(columns)
    assert [sum((int(word[n]) & 1) << i for i, word in enumerate(out)) for n in range(16)] == list(SBOX)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**20), st.integers(1, 50))
def test_numbers_belong_to_their_place(seed, first, beats):
    assert torch.equal(random_bits(seed, 0, 60)[:beats], random_bits(seed, 0, beats))
    assert torch.equal(random_bits(seed, first, 2 * beats)[beats:], random_bits(seed, first + beats, beats))


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_in_every_place(seed):
    drawn = random_bits(seed, 0, BEATS).numpy()
    for lane in range(8):
        check_uniform(drawn[:, lane] >> 8, f"high byte of value {lane}")
        check_uniform(drawn[:, lane] & 255, f"low byte of value {lane}")
        # The mean of n uniform numbers has the deviation 65536 / sqrt(12 n).
        assert abs(drawn[:, lane].mean() - 32767.5) < 5 * 65536 / np.sqrt(12 * BEATS)


@pytest.mark.parametrize("seed", SEEDS)
def test_values_of_a_row_are_independent_in_pairs(seed):
    high = random_bits(seed, 0, BEATS).numpy() >> 12
    for i in range(8):
        for j in range(i):
            check_uniform(high[:, i] * 16 + high[:, j], (i, j))


def normalised(drawn):
    centred = drawn.double() - drawn.double().mean(0)
    return centred / centred.std(0)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_uncorrelated(seed):
    """Check all 64 correlations of the values of two rows whose numbers are near each other, or differ in a bit."""
    mine = normalised(random_bits(seed, 0, BEATS))
    for distance in (1, 2, 4, 8, 16, 32, 64, 128):
        assert (mine.T @ mine.roll(distance, 0) / BEATS).abs().max() < 0.05, distance


def test_tensors_of_a_codec_are_uncorrelated():
    seeds = TensorSeeds(0, 1)
    drawn = [normalised(random_bits(seeds.next(), 0, BEATS)) for _ in range(12)]
    for i, mine in enumerate(drawn):
        for other in drawn[:i]:
            assert (mine.T @ other / BEATS).abs().max() < 0.05


def test_low_bits_of_pairs_are_independent():
    low = random_bits(7, 0, BEATS).numpy() & 15
    for i in range(8):
        for j in range(i):
            check_uniform(low[:, i] * 16 + low[:, j], (i, j))


@pytest.mark.parametrize("bit", [0, 5, 15, 16, 31])
@pytest.mark.parametrize("of", ["number", "seed"])
def test_one_changed_bit_changes_about_half_of_all(bit, of):
    changed = []
    for sample in range(200):
        number, seed = (sample, 12345) if of == "number" else (77, sample)
        here = random_bits(seed, number, 1)
        there = random_bits(seed ^ (1 << bit if of == "seed" else 0), number ^ (1 << bit if of == "number" else 0), 1)
        changed.append([f"{int(a) ^ int(b):016b}".count("1") for a, b in zip(here[0], there[0], strict=True)])
    mean = np.mean(changed, 0)
    # On average 8 of 16 fair coins fall on either side, and their mean has a deviation of 2 / sqrt(200).
    assert ((mean > 7.3) & (mean < 8.7)).all(), mean


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_draws_the_same():
    assert torch.equal(random_bits(99, 5, 1000, "cuda").cpu(), random_bits(99, 5, 1000))

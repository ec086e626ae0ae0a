"""Transforms against scipy's in double precision, and the IEEE 1180-1990 procedure."""

import numpy as np
import pytest
import torch
from actcodec.golden.dct import dct, idct
from cdu_spec.dct import LEAST, basis, pass_shifts
from cdu_verif.stimulus import ieee1180
from scipy.fft import dctn, idctn

PRECISIONS = [(12, 2), (13, 2), (13, 4)]


def extreme_blocks():
    """Return blocks that reach the largest coefficient of every place with either sign, constants, checkers and steps."""
    waves = dctn(np.eye(64).reshape(64, 8, 8), axes=(1, 2), norm="ortho")
    signs = np.where(idctn(np.eye(64).reshape(64, 8, 8), axes=(1, 2), norm="ortho") >= 0, 1, -1)
    positive = np.where(signs > 0, 127, -128)
    constants = np.stack([np.full((8, 8), value) for value in (-128, -1, 0, 1, 127)])
    return np.concatenate([positive, -1 - positive, constants, np.sign(waves).astype(int) * 127]).astype(np.int8)


def random_blocks(count, seed=0):
    return np.random.default_rng(seed).integers(-128, 128, (count, 8, 8)).astype(np.int8)


@pytest.mark.parametrize(("const_bits", "pass1_bits"), PRECISIONS)
def test_forward_is_within_one_of_the_exact_coefficient(const_bits, pass1_bits, record_property):
    samples = np.concatenate([extreme_blocks(), random_blocks(20000)])
    exact = dctn(samples.astype(float), axes=(1, 2), norm="ortho")
    mine = dct(torch.from_numpy(samples), const_bits, pass1_bits).numpy()
    error = mine - exact
    record_property("mean_square_error", float(np.mean(error**2)))
    # Rounding alone gives 1/12; the peak counts against the rounded exact coefficient, as in ITU-T T.83.
    assert np.abs(mine - np.rint(exact)).max() <= 1
    assert np.mean(error**2) < 0.10


def test_the_least_precision_is_within_three_units():
    """Check the figure of docs/user/hardware.md; rounding alone would give 1/12."""
    samples = np.concatenate([extreme_blocks(), random_blocks(20000)])
    exact = dctn(samples.astype(float), axes=(1, 2), norm="ortho")
    mine = dct(torch.from_numpy(samples), *LEAST)
    assert np.abs(mine.numpy() - np.rint(exact)).max() <= 3
    assert np.mean((mine.numpy() - exact) ** 2) < 0.11
    back = idct(mine, *LEAST).numpy().astype(int) - samples
    assert np.abs(back).max() <= 2
    assert np.mean(back**2) < 0.15


def test_forward_results_are_twelve_bits():
    coefficients = dct(torch.from_numpy(np.concatenate([extreme_blocks(), random_blocks(5000)])))
    assert coefficients.dtype == torch.int16
    assert -2048 <= coefficients.min() <= -1024
    assert 1000 <= coefficients.max() <= 2047


def test_orientation_is_vertical_then_horizontal_frequency():
    stripes = np.tile((np.cos((2 * np.arange(8) + 1) * np.pi / 16) * 100).astype(np.int8), (8, 1))
    coefficients = dct(torch.from_numpy(stripes[None]))[0]
    assert coefficients.abs().argmax() == 1
    assert torch.equal(dct(torch.from_numpy(stripes.T.copy()[None]))[0].abs().argmax(), torch.tensor(8))


def plain_integer_pass(matrix, vector, shift):
    return [(sum(m * x for m, x in zip(row, vector, strict=True)) + (1 << shift >> 1)) >> shift for row in matrix]


@pytest.mark.parametrize(("const_bits", "pass1_bits"), [(8, 0), (12, 2), (13, 4)])
def test_both_transforms_equal_plain_python_integers(const_bits, pass1_bits):
    first, second = pass_shifts(const_bits, pass1_bits)
    forward = basis(const_bits)
    backward = list(zip(*forward, strict=True))
    samples = np.concatenate([extreme_blocks()[:20], random_blocks(20)])
    for block, mine in zip(samples.tolist(), dct(torch.from_numpy(samples), const_bits, pass1_bits).tolist(), strict=True):
        rows = [plain_integer_pass(forward, row, first) for row in block]
        columns = [plain_integer_pass(forward, column, second) for column in zip(*rows, strict=True)]
        assert [list(row) for row in zip(*columns, strict=True)] == mine
    coefficients = np.random.default_rng(1).integers(-2048, 2048, (20, 8, 8)).astype(np.int16)
    for block, mine in zip(
        coefficients.tolist(), idct(torch.from_numpy(coefficients), const_bits, pass1_bits).tolist(), strict=True
    ):
        columns = [plain_integer_pass(backward, column, first) for column in zip(*block, strict=True)]
        rows = [plain_integer_pass(backward, row, second) for row in zip(*columns, strict=True)]
        assert [[max(-128, min(127, value)) for value in row] for row in rows] == mine


@pytest.mark.parametrize("const_bits", range(8, 14))
def test_intermediates_have_the_width_that_the_arithmetic_needs(const_bits):
    """Check the largest sums over all inputs, from the absolute sums of the matrix: at most 35 bits with sign."""
    forward = np.abs(np.array(basis(const_bits), dtype=object))
    for pass1_bits in range(5):
        first, second = pass_shifts(const_bits, pass1_bits)
        row_sum = 128 * forward.sum(1).max()
        assert row_sum + (1 << first >> 1) < 2**24
        column_sum = ((row_sum >> first) + 1) * forward.sum(1).max()
        assert column_sum + (1 << second >> 1) < 2**34
        inverse_column = 2048 * forward.sum(0).max()
        inverse_row = ((inverse_column >> first) + 1) * forward.sum(0).max()
        assert inverse_row + (1 << second >> 1) < 2**34


def test_round_trip_of_extremes_is_close():
    samples = np.concatenate([extreme_blocks(), random_blocks(2000)])
    back = idct(dct(torch.from_numpy(samples))).numpy().astype(int)
    assert np.abs(back - samples).max() <= 2


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="blocks has dtype float32"):
        dct(torch.zeros(1, 8, 8))
    with pytest.raises(ValueError, match=r"blocks has shape \(1, 64\)"):
        dct(torch.zeros(1, 64, dtype=torch.int8))
    with pytest.raises(ValueError, match="sample_bits = 10"):
        idct(torch.zeros(1, 8, 8, dtype=torch.int16), sample_bits=10)


# IEEE Std 1180-1990


def test_generator_jumps_as_it_steps():
    state, expected = 1, []
    for _ in range(100):
        state = (state * 1103515245 + 12345) % 2**32
        expected.append(int(float(state & 0x7FFFFFFE) / 0x7FFFFFFF * 512) - 256)
    assert ieee1180.random_samples(100, 256, 255).tolist() == expected


def inverse_errors(run, **precision):
    coefficients, reference = run.stimulus()
    samples = idct(torch.from_numpy(coefficients.astype(np.int16)), sample_bits=9, **precision)
    return ieee1180.Errors.of(samples.numpy().astype(np.int64), reference)


@pytest.mark.parametrize("run", list(ieee1180.runs()), ids=str)
def test_ieee_1180(run, record_property):
    errors = inverse_errors(run)
    record_property("overall_mean_square_error", errors.mean_square)
    assert errors.passed, errors


def test_ieee_1180_zero():
    assert not idct(torch.zeros(1, 8, 8, dtype=torch.int16), sample_bits=9).any()


def test_ieee_1180_would_notice_a_coarser_transform():
    assert not inverse_errors(next(ieee1180.runs()), const_bits=9, pass1_bits=0).passed

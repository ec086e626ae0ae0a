"""Zig-zag order, division, and the range of coefficients, against T.81's figure and exact arithmetic."""

import numpy as np
import pytest
import torch
from actcodec.golden import blocks, div_quantizer, jpeg_base
from actcodec.golden.dct import dct, idct, matrix
from actcodec.golden.zigzag import from_zigzag, to_zigzag
from cdu_spec import MatrixView, Mode, Rounding
from cdu_spec.jpeg import ZIGZAG
from hypothesis import given
from hypothesis import strategies as st
from scipy.fft import dctn

#: Place of each coefficient, row by row, from ITU-T T.81, figure A.6.
FIGURE_A6 = """
     0  1  5  6 14 15 27 28    2  4  7 13 16 26 29 42    3  8 12 17 25 30 41 43    9 11 18 24 31 40 44 53
    10 19 23 32 39 45 52 54   20 22 33 38 46 51 55 60   21 34 37 47 50 56 59 61   35 36 48 49 57 58 62 63"""


def test_zigzag_is_the_figure():
    places = torch.tensor([int(word) for word in FIGURE_A6.split()]).view(8, 8)
    assert torch.equal(to_zigzag(places), torch.arange(64))
    assert torch.equal(from_zigzag(torch.arange(64)), places)
    assert sorted(ZIGZAG) == list(range(64))


@pytest.mark.parametrize("rounding", Rounding)
def test_division_is_exact_for_every_coefficient_and_divisor(rounding):
    c = torch.arange(-2048, 2048, dtype=torch.int16)[:, None]
    d = torch.arange(1, 256)
    mine = div_quantizer.quantize(c, d, rounding).numpy().astype(np.int64)
    numerator, denominator = c.numpy().astype(np.int64), d.numpy()
    remainder = numerator - mine * denominator
    if rounding is Rounding.TRUNC:  # the remainder has the sign of the coefficient and is below the divisor
        assert (np.abs(remainder) < denominator).all()
        assert (remainder * np.sign(numerator) >= 0).all()
    else:  # at most half a divisor away; a tie went away from zero, so what is left of it points back to zero
        assert (2 * np.abs(remainder) <= denominator).all()
        tie = 2 * np.abs(remainder) == denominator
        assert tie.any()
        assert (np.sign(remainder) == -np.sign(numerator))[tie].all()


def test_division_by_powers_of_two_is_the_shift_quantiser():
    from actcodec.golden import shift_quantizer

    c = torch.arange(-1000, 1001, dtype=torch.int16)[:, None]
    shifts = torch.arange(3, 8)
    for rounding in Rounding:
        assert torch.equal(
            div_quantizer.quantize(c, 1 << shifts, rounding), shift_quantizer.quantize(c, shifts, rounding).to(torch.int16)
        )


def test_the_inverse_saturates_to_twelve_bits():
    q = torch.tensor([-2048, -1024, -9, 0, 8, 9, 1023], dtype=torch.int16)
    assert div_quantizer.inverse(q, torch.tensor(255)).tolist() == [-2048, -2048, -2048, 0, 2040, 2047, 2047]
    assert div_quantizer.inverse(q, torch.tensor(1)).tolist() == q.tolist()


@pytest.mark.parametrize("const_bits", range(8, 14))
@pytest.mark.parametrize("pass1_bits", range(5))
def test_coefficients_of_bytes_have_codes(const_bits, pass1_bits):
    """Check each coefficient's two extreme blocks of bytes; rounding cannot add two to their coefficients."""
    basis = matrix(const_bits)
    waves = torch.einsum("vy,ux->vuyx", basis, basis)
    highest = torch.where(waves >= 0, 127, -128).to(torch.int8)
    for drive in (highest, torch.where(waves >= 0, -128, 127).to(torch.int8)):
        coefficients = dct(drive.view(64, 8, 8), const_bits, pass1_bits).view(64, 64).long()
        reached = coefficients.diagonal()
        exact = (waves * drive).sum((2, 3)).flatten() / (8 * 4**const_bits)
        assert (reached - exact).abs().max() < 2
        assert exact[1:].abs().max() + 2 <= 1023
        assert -1024 <= int(reached[0]) <= 1016
        assert (coefficients[:, 1:].abs() <= 1023).all()


@given(st.integers(1, 3), st.integers(1, 4), st.sampled_from(list(Rounding)), st.integers(0, 2**31), st.booleans())
def test_matrices_are_transformed_block_by_block(strips, row_beats, rounding, seed, extreme):
    random = np.random.default_rng(seed)
    low = (
        random.choice([-128, 127], (8 * strips, 8 * row_beats))
        if extreme
        else random.integers(-128, 128, (8 * strips, 8 * row_beats))
    )
    samples = torch.from_numpy(low.astype(np.int8))
    natural = random.integers(1, 256, 64)
    divisors = [int(natural[index]) for index in ZIGZAG]
    mine = jpeg_base.forward(samples, divisors, 12, 2, rounding)
    assert mine.shape == (strips * row_beats, 64)
    for number in range(strips * row_beats):
        y, x = divmod(number, row_beats)
        block = low[8 * y : 8 * y + 8, 8 * x : 8 * x + 8]
        quotients = dctn(block.astype(float), norm="ortho") / natural.reshape(8, 8)
        rounded = np.trunc(quotients) if rounding is Rounding.TRUNC else np.sign(quotients) * np.floor(np.abs(quotients) + 0.5)
        got = from_zigzag(mine[number]).numpy()
        # The integer transform is within 0.6 of the exact one, so that a quotient near a decision may fall on the other side.
        assert (np.abs(got - quotients) <= (1 if rounding is Rounding.TRUNC else 0.5) + 0.6 / natural.reshape(8, 8)).all()
        assert (np.abs(got - rounded) <= 1).all()

    view = MatrixView(8 * strips, 8 * row_beats, 1, 1, Mode.JPEG_ACT)
    back = blocks.untiled(jpeg_base.inverse(mine, divisors, 12, 2), view)
    expected = idct((from_zigzag(mine) * torch.from_numpy(natural.reshape(8, 8))).clamp(-2048, 2047).to(torch.int16))
    assert torch.equal(back, blocks.untiled(expected, view))

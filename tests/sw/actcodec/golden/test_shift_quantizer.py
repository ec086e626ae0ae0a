"""Every coefficient with every shift, against the rule written with fractions."""

from fractions import Fraction
from math import floor, trunc

import pytest
import torch
from actcodec.golden.shift_quantizer import inverse, quantize
from cdu_spec import Rounding

RULES = {
    Rounding.TRUNC: trunc,
    Rounding.HALF_AWAY: lambda value: floor(abs(value) + Fraction(1, 2)) * (1 if value >= 0 else -1),
}


@pytest.mark.parametrize("rounding", list(Rounding))
@pytest.mark.parametrize("shift", range(8))
def test_all_coefficients(shift, rounding):
    coefficients = list(range(-2048, 2048))
    expected = [max(-128, min(127, RULES[rounding](Fraction(c, 1 << shift)))) for c in coefficients]
    mine = quantize(torch.tensor(coefficients, dtype=torch.int16), torch.tensor(shift, dtype=torch.uint8), rounding)
    assert mine.dtype == torch.int8
    assert mine.tolist() == expected


@pytest.mark.parametrize("shift", range(8))
def test_inverse_of_all_values(shift):
    values = list(range(-128, 128))
    mine = inverse(torch.tensor(values, dtype=torch.int8), torch.tensor([shift], dtype=torch.int64))
    assert mine.dtype == torch.int16
    assert mine.tolist() == [max(-2048, min(2047, value * 2**shift)) for value in values]


@pytest.mark.parametrize("point", range(5))
@pytest.mark.parametrize("shift", range(8))
def test_inverse_with_a_reconstruction_point(shift, point):
    """Check that values other than 0 move whole eighths of a step beyond |q| * 2**shift."""
    values = list(range(-128, 128))
    mine = inverse(torch.tensor(values, dtype=torch.int8), torch.tensor([shift]), point)
    expected = [
        (abs(value) * 2**shift + (point * 2**shift // 8 if value else 0)) * (1 if value > 0 else -1) for value in values
    ]
    assert mine.tolist() == [max(-2048, min(2047, value)) for value in expected]


def test_shifts_broadcast_over_blocks():
    c = torch.full((3, 64), 100, dtype=torch.int32)
    shifts = torch.arange(64) % 8
    assert quantize(c, shifts, Rounding.TRUNC)[2].tolist() == [100 >> (i % 8) for i in range(64)]


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="coefficients has dtype float32"):
        quantize(torch.zeros(64), torch.zeros(64, dtype=torch.int64))
    with pytest.raises(TypeError, match="shifts has dtype float32"):
        inverse(torch.zeros(64, dtype=torch.int8), torch.zeros(64))

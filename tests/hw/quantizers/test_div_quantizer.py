"""The quantiser with divisors and its inverse: reciprocals for all numbers, and their cases in Amaranth's simulator."""

import pytest
import torch
from actcodec.golden import div_quantizer as golden
from cdu.quantizers import div_quantizer
from cdu_spec.config import CduConfig
from cdu_spec.rounding import Rounding
from cdu_verif.benches.in_amaranth import assert_passes
from parameter_sets import one_at_once


@pytest.mark.parametrize("rounding", list(Rounding))
def test_every_quotient_of_every_divisor(rounding):
    """All 4,096 coefficients, divided as the hardware does it."""
    coefficients = torch.arange(-2048, 2048)
    for divisor in range(1, 256):
        half = divisor // 2 if rounding is Rounding.HALF_AWAY else 0
        found = coefficients.sign() * div_quantizer.quotient(coefficients.abs() + half, divisor)
        assert torch.equal(
            found, golden.quantize(coefficients.to(torch.int32), torch.tensor(divisor), rounding).to(torch.int64)
        )


def test_fewer_bits_would_not_do(monkeypatch):
    monkeypatch.setattr(div_quantizer, "RECIPROCAL_SHIFT", div_quantizer.RECIPROCAL_SHIFT - 1)
    wrong = [
        (dividend, divisor)
        for divisor in range(1, 256)
        for dividend in range(2049 + divisor // 2)
        if div_quantizer.quotient(dividend, divisor) != dividend // divisor
    ]
    assert wrong


@one_at_once({}, {"rounding": "half_away"})
def test_cases(options):
    assert_passes("div_quantizer", CduConfig(**options))


def test_cases_of_the_inverse():
    assert_passes("inverse_div_quantizer", CduConfig())

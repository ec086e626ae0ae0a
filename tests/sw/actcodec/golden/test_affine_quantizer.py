"""Steps, codes and decoded values against exact arithmetic and probability."""

import numpy as np
import pytest
import torch
from actcodec.golden import division
from actcodec.golden.affine import Ranges, codes_of, dequantize, found_step, quantize
from actcodec.golden.codes import pack_codes, pack_tight, unpack_codes, unpack_tight
from actcodec.golden.random_bits import random_bits
from cdu_spec import BitstreamError, UserError
from cdu_spec.affine import CODE_BITS, AffineSettings, reciprocal
from hypothesis import given
from hypothesis import strategies as st
from plain_affine import code, pack_row, step_of

ALL_SPREADS = torch.arange(65536, dtype=torch.int32)


def distinct_steps(bits):
    """Return all steps that spreads have, with the greatest spread of each: (m, e, spread)."""
    mantissa, exponent = found_step(ALL_SPREADS, bits)
    greatest = {}
    for spread, pair in enumerate(zip(mantissa.tolist(), exponent.tolist(), strict=True)):
        greatest[pair] = spread
    return [(*pair, spread) for pair, spread in greatest.items()]


@pytest.mark.parametrize("bits", CODE_BITS)
def test_steps_of_all_spreads(bits):
    """Check that the step covers the spread, no smaller one of 8 bits does, and it is 1 if codes suffice for integers."""
    mantissa, exponent = found_step(ALL_SPREADS, bits)
    assert (mantissa.min(), exponent.min()) == (1, 0)
    assert mantissa.max() <= 255
    assert exponent.max() <= 9
    levels = 2**bits - 1
    step = mantissa << exponent
    assert (levels * step >= ALL_SPREADS).all()
    assert (step[: levels + 1] == 1).all()
    # next smaller number of 8 significant bits
    smaller = torch.where((mantissa == 128) & (exponent > 0), 255 << (exponent - 1).clamp_min(0), (mantissa - 1) << exponent)
    assert (levels * smaller < ALL_SPREADS)[levels + 1 :].all()
    for spread in (*range(600), *range(600, 65536, 97), 65535):
        assert (mantissa[spread], exponent[spread]) == step_of(spread, bits)


@pytest.mark.parametrize("bits", CODE_BITS)
def test_error_is_at_most_a_step_for_every_spread_and_value(bits):
    """Check the error with the least and greatest random number, and half a step to nearest, plus the reciprocal's rounding."""
    for m, e, spread in distinct_steps(bits):
        step = m << e
        t = torch.arange(spread + 1, dtype=torch.int32)
        x, low = (t - 32768).to(torch.int16), torch.tensor(-32768, dtype=torch.int32)
        ranges = Ranges(low, torch.tensor(m, dtype=torch.int32), torch.tensor(e, dtype=torch.int32))
        for rho, most in ((0, step), (65535, step), (32768, step / 2 + 1)):
            y = dequantize(codes_of(x, ranges, bits, rho), ranges)
            error = (y - x.to(torch.int32)).abs().max()
            assert error <= most, (m, e, rho)
            if step == 1:
                assert error == 0


@pytest.mark.parametrize("bits", CODE_BITS)
def test_expectation_of_every_value(bits):
    """Check that the mean over all 65536 random numbers, v / 65536 steps, is within 2 integers of 65536 of the value."""
    for m, e, spread in distinct_steps(bits):
        s = 8 - m.bit_length()
        t = torch.arange(spread + 1, dtype=torch.int64)
        v = (t * reciprocal(m << s)) >> (7 + e - s)
        # Beyond the greatest code there is nothing; the step's upper end is reached only when it does not exceed the spread.
        mean = v.clamp_max((2**bits - 1) << 16).double() / 65536 * (m << e)
        assert (mean - t).abs().max() <= 2, (m, e)


def test_stochastic_rounding_is_unbiased():
    """Check the mean over 600 seeds; a value at the fraction f of a step has the deviation D * sqrt(f (1 - f) / 600)."""
    seeds = 600
    x = torch.randint(-32768, 32768, (256, 64), dtype=torch.int16, generator=torch.Generator().manual_seed(1))
    settings = [AffineSettings(2, block_range=True, seed=1 + 0x9E3779B1 * i % 2**32) for i in range(seeds)]
    decoded = torch.stack([division.decode(division.encode(x, one), len(x), one) for one in settings]).double()
    low, step = decoded.amin((0, 2)), None
    ranges = Ranges.found(x.amin(1).int(), x.amax(1).int(), 2)
    step = (ranges.mantissa << ranges.exponent)[:, None]
    assert (low >= ranges.low).all()
    fraction = ((x.double() - ranges.low[:, None]) / step) % 1
    deviation = step * (fraction * (1 - fraction) / seeds).sqrt()
    error = decoded.mean(0) - x
    inside = deviation > step * 0.2 / np.sqrt(seeds)
    z = (error / deviation)[inside]
    assert z.numel() > 10000
    assert abs(z.mean()) < 5 / np.sqrt(z.numel())
    assert abs(z.square().mean() - 1) < 5 * np.sqrt(2 / z.numel())
    # The mean of all errors, relative to a step, shows no bias from the reciprocal or the saturation either.
    assert abs((error / step).mean()) < 5 * 0.41 / np.sqrt(seeds * x.numel()) + 2.0**-12


def test_nearest_is_nearest():
    x = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16).view(-1, 8)
    ranges = Ranges.found(torch.tensor([[-32768]], dtype=torch.int32), torch.tensor([[32767]], dtype=torch.int32), 4)
    y = dequantize(quantize(x, ranges, AffineSettings(4, stochastic=False)), ranges)
    step = int(ranges.mantissa << ranges.exponent)
    assert (y - x).abs().max() <= step / 2 + 1
    assert (y - x).double().mean().abs() < 20


@given(
    st.lists(st.integers(-32768, 32767), min_size=8, max_size=8),
    st.integers(-65536, 32767),
    st.integers(1, 255),
    st.integers(0, 9),
    st.sampled_from(CODE_BITS),
    st.integers(0, 65535),
)
def test_codes_are_the_formulas_for_any_range(values, low, m, e, bits, rho):
    ranges = Ranges(*(torch.tensor(value, dtype=torch.int32) for value in (low, m, e)))
    mine = codes_of(torch.tensor(values, dtype=torch.int16), ranges, bits, rho)
    assert mine.tolist() == [code(x, low, m, e, bits, rho) for x in values]
    assert dequantize(mine, ranges).tolist() == [low + c * (m << e) for c in mine.tolist()]


@given(st.integers(0, 15), st.sampled_from(CODE_BITS), st.lists(st.integers(-32768, 32767), min_size=8, max_size=8))
def test_a_step_of_a_power_of_two_is_a_shift(step_log2, bits, values):
    low = torch.full((1, 1), -(1 << (bits - 1 + step_log2)), dtype=torch.int32)
    codes = quantize(torch.tensor([values], dtype=torch.int16), Ranges.fixed(low, step_log2), AffineSettings(bits), down=True)
    expected = [max(0, min(2**bits - 1, min(65535, max(0, x - int(low))) >> step_log2)) for x in values]
    assert codes[0].tolist() == expected


def test_random_numbers_are_those_of_the_row():
    """Check random numbers also beyond the pieces in which long jobs are processed."""
    rows = 3 * (1 << 13) + 5
    x = torch.full((rows, 8), 77, dtype=torch.int16)
    ranges = Ranges.fixed(torch.zeros(1, 1, dtype=torch.int32), 8)
    codes = quantize(x, ranges, AffineSettings(8, seed=5))
    assert torch.equal(codes, ((77 * 256 + random_bits(5, 0, rows)) >> 16).to(torch.uint8))


@pytest.mark.parametrize("bits", range(1, 9))
def test_rows_of_codes(bits):
    codes = torch.randint(0, 2**bits, (500, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(bits))
    packed = pack_codes(codes, bits)
    assert [bytes(row.tolist()) for row in packed] == [pack_row(row, bits) for row in codes.tolist()]
    assert torch.equal(unpack_codes(packed, bits), codes)


@given(st.integers(1, 8), st.integers(1, 70), st.integers(0, 2**31))
def test_any_number_of_codes_without_gaps(bits, count, seed):
    codes = torch.randint(0, 2**bits, (count,), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    number = sum(code << (bits * place) for place, code in enumerate(codes.tolist()))
    packed = pack_tight(codes, bits)
    assert bytes(packed.tolist()) == number.to_bytes(-(-count * bits // 8), "little")
    assert torch.equal(unpack_tight(packed, bits, count), codes)


@pytest.mark.parametrize(
    ("low", "m", "e", "good"),
    [
        (0, 0, 0, False),
        (0, 255, 10, False),
        (32767, 1, 0, True),
        (-1, 128, 9, True),
        (0, 128, 9, False),
        (-32768, 128, 9, True),
    ],
)
def test_steps_that_no_encoder_makes(low, m, e, good):
    payload = torch.tensor([low & 255, low >> 8 & 255, m, e, *[255] * 8], dtype=torch.uint8)
    settings = AffineSettings(1, block_range=True)
    if good:
        assert division.decode(payload, 1, settings).abs().max() <= 65536
    else:
        with pytest.raises(BitstreamError, match="step of a block"):
            division.decode(payload, 1, settings)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"bits": 3}, "bits = 3 is not allowed: use 1, 2, 4, 8"),
        ({"bits": 8, "step_log2": 9}, "step_log2 = 9 is not allowed with 8 bits: use 0 to 8"),
        ({"step_log2": -1}, "step_log2 = -1"),
        ({"seed": 1 << 32}, "seed = 4294967296"),
        ({"seed": -1}, "seed = -1"),
    ],
)
def test_impossible_settings(values, message):
    with pytest.raises(UserError, match=message):
        AffineSettings(**values)

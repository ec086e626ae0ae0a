"""SFPR against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from actcodec.golden.sfpr import FLOATS, NonFiniteError, channel_maxima, inverse_sfpr, scales, sfpr
from cdu_spec import UserError
from cdu_spec.sfpr import SCALE_BITS
from hypothesis import given, settings
from hypothesis import strategies as st

floats32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


def round_half_even(value: Fraction) -> int:
    return round(value)  # Python rounds a Fraction half to even


def round_to_significand(value: Fraction, bits: int) -> Fraction:
    exponent = 0
    while value >= 1 << bits:
        value, exponent = value / 2, exponent + 1
    while value < 1 << (bits - 1):
        value, exponent = value * 2, exponent - 1
    return round_half_even(value) * Fraction(2) ** exponent


def channel(*values, dtype=torch.float32):
    return torch.tensor([[values]], dtype=dtype)


@given(st.lists(floats32, min_size=1, max_size=8), st.sampled_from([24, 11, 8]), st.sampled_from([1.125, 1.0, 0.3]))
def test_scale_is_the_rounded_quotient(values, scale_bits, target):
    k, r = scales(channel(*values), target, scale_bits)
    largest = max(abs(Fraction(float(np.float32(value)))) for value in values)
    # The quotient is taken in double, which is part of the definition.
    quotient = 128.0 * target / float(largest) if largest else 128.0
    limit = Fraction(2) ** 120
    exact = limit if quotient == float("inf") else max(min(Fraction(quotient), limit), 1 / limit)
    expected = round_to_significand(exact, scale_bits)
    assert Fraction(k.item()) == expected
    assert Fraction(r.item()) == round_to_significand(Fraction(1 / float(expected)), 12)


@given(floats32, st.floats(2.0**-120, 2.0**120, width=32))
def test_quantising_rounds_the_exact_product_half_to_even(value, k):
    exact = Fraction(float(np.float32(value))) * Fraction(k)
    assert sfpr(torch.tensor([value]), torch.tensor([k])).item() == max(-128, min(127, round_half_even(exact)))


@given(st.integers(-128, 127), st.integers(2**15, 2**16 - 1), st.integers(-12, 12), st.booleans())
def test_quantising_at_and_beside_ties(integer, odd, exponent, above):
    """Check products a hair above and below n + 1/2, which float32 arithmetic would round twice."""
    k = Fraction(odd) / 2**15 * Fraction(2) ** exponent
    near = np.float32(float((integer + Fraction(1, 2)) / k))
    value = np.nextafter(near, np.float32(np.inf if above else -np.inf))
    for candidate in (near, value):
        exact = Fraction(float(candidate)) * k
        q = sfpr(torch.tensor([candidate]), torch.tensor([float(k)], dtype=torch.float32)).item()
        assert q == max(-128, min(127, round_half_even(exact)))


@given(st.integers(-128, 127), st.floats(2.0**-120, 2.0**120, width=32))
def test_dequantising_rounds_once(q, r):
    exact = q * Fraction(r)
    assert inverse_sfpr(torch.tensor([q], dtype=torch.int8), torch.tensor([r])).item() == float(
        np.longdouble(q) * np.longdouble(r).astype(np.float64)
        if exact == 0
        else np.float32(float(exact))  # at most 32 bits: exact in double
    )


def test_zero_channel_has_scale_one():
    k, r = scales(channel(0.0, -0.0), 1.125, 8)
    assert (k.item(), r.item()) == (128.0, 1 / 128)


def test_scales_span_outer_and_inner_axes_only():
    x = torch.arange(24, dtype=torch.float32).view(2, 3, 4)
    k, _ = scales(x, 1.0, 24)
    assert k.tolist() == [np.float32(128 / 15), np.float32(128 / 19), np.float32(128 / 23)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_extremes_stay_finite(dtype):
    info = torch.finfo(dtype)
    for largest in (info.max, info.tiny, info.smallest_normal / 4):
        x = channel(largest, -largest, largest / 2, 0.0, -0.0, dtype=dtype)
        k, r = scales(x, 1.125, 8)
        assert k.isfinite().all()
        assert r.isfinite().all()
        q = sfpr(x[0], k[:, None])
        assert q[0, 3:].tolist() == [0, 0]
        assert inverse_sfpr(q, r[:, None]).isfinite().all()
        if 2.0**-110 < largest < 2.0**110:
            assert q[0, :2].tolist() == [127, -128]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_nonfinite_raises_with_channel_and_counts(bad):
    x = torch.ones(2, 3, 4)
    x[0, 2, 1] = bad
    x[1, 2, 3] = bad
    with pytest.raises(NonFiniteError, match=r"2 of 24 values are NaN or infinite \(channel 2 has 2\)"):
        scales(x, 1.125, 8)


def test_nonfinite_saturates_on_request():
    x = channel(float("nan"), float("inf"), -float("inf"), 2.0, -1.0)
    k, _ = scales(x, 1.0, 24, "saturate")
    assert k.item() == 64.0
    assert sfpr(x[0], k[:, None]).tolist() == [[0, 127, -128, 127, -64]]
    only = channel(float("nan"), float("inf"))
    assert scales(only, 1.0, 24, "saturate")[0].item() == 128.0


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="values has dtype int8"):
        sfpr(torch.zeros(1, dtype=torch.int8), torch.ones(1))
    with pytest.raises(TypeError, match="q has dtype float32: use int8"):
        inverse_sfpr(torch.zeros(1), torch.ones(1))
    for target in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UserError, match="S = "):
            scales(channel(1.0), target, 8)
    with pytest.raises(UserError, match="scale_bits = 12"):
        scales(channel(1.0), 1.0, 12)
    with pytest.raises(UserError, match="nonfinite = 'ignore'"):
        scales(channel(1.0), 1.0, 8, "ignore")


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_every_float32_bit_pattern_class(seed):
    """Check random bit patterns, subnormals and huge numbers included, against numpy's 80-bit arithmetic."""
    bits = np.random.default_rng(seed).integers(0, 2**32, 500, dtype=np.uint32)
    values = bits.view(np.float32)
    values = values[np.isfinite(values)]
    for k in (np.float32(2.0**-120), np.float32(1.0), np.float32(181.0), np.float32(2.0**120)):
        exact = values.astype(np.longdouble) * np.longdouble(k)
        expected = np.clip(np.rint(exact), -128, 127).astype(np.int8)
        assert np.array_equal(sfpr(torch.from_numpy(values), torch.tensor(k)).numpy(), expected)


@pytest.mark.parametrize("zeros", [(0.0, 0.0), (-0.0, 0.0), (0.0, -0.0), (-0.0, -0.0)])
def test_the_largest_magnitude_of_zeros_is_positive_zero(zeros):
    found = channel_maxima(torch.tensor(zeros).view(1, 1, 2).repeat(4, 3, 4))
    assert not torch.signbit(found).any()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("scale_bits", SCALE_BITS)
@pytest.mark.parametrize("factor", [1, 1.125])
def test_the_largest_numbers_of_a_format_stay_finite(dtype, scale_bits, factor):
    x = negative_numbers_up_to_the_largest(dtype)
    k, r = scales(x, factor, scale_bits)
    assert inverse_sfpr(sfpr(x, k[:, None]), r[:, None]).to(dtype).isfinite().all()


@pytest.mark.parametrize("scale_bits", SCALE_BITS)
def test_the_largest_numbers_of_float16_lose_no_more_than_rounding(scale_bits):
    x = negative_numbers_up_to_the_largest(torch.float16)
    k, r = scales(x, 1, scale_bits)
    y = inverse_sfpr(sfpr(x, k[:, None]), r[:, None]).to(torch.float16)
    assert ((y.double() - x.double()).abs() <= 1.5 / k.double()[:, None]).all()  # half a step, and one for k's own rounding


def negative_numbers_up_to_the_largest(dtype):
    largest = torch.finfo(dtype).max * torch.linspace(0.9, 1, 4001, dtype=torch.float64)
    return -largest.to(dtype)[None, :, None]

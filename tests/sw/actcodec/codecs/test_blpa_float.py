"""BLPA's copies in floating point: the paper's formula in exact fractions, and exact signs."""

from fractions import Fraction
from math import floor

import actcodec
import numpy as np
import pytest
import torch
from actcodec.codecs.blpa.blpa_float import BlpaForm, FixedPoint
from cdu_spec import UserError
from cdu_spec.affine import CODE_BITS
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

FLOATS = [torch.float32, torch.bfloat16, torch.float16]


def copy_of(x, beta, gamma, bits):
    """Return the copy of a tensor whose channels all have one range."""
    channels = x.shape[1]
    grid = FixedPoint.around(torch.full((channels,), float(beta)), torch.full((channels,), float(gamma)), bits, x.dtype)
    return BlpaForm.of(x, grid)


def published(a, beta, gamma, bits):
    """Return code and a' of the paper in exact fractions, and whether a value lies on the border of two steps."""
    steps = Fraction(2**bits) / (6 * gamma)
    offset = floor(beta * steps)
    code = floor(a * steps) + 2 ** (bits - 1) - offset
    code = min(max(code, 0), 2**bits - 1)
    return (code + Fraction(1, 2) - 2 ** (bits - 1) + offset) / steps, a * steps == floor(a * steps)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("beta", "gamma"), [(0.0, 1.0), (0.75, 1.0), (-0.25, 0.25), (1.0, 2.0), (-0.01, 0.5), (0.3, 0.7)])
def test_the_papers_formula(bits, beta, gamma):
    x = torch.randn(3, 1, 100, generator=torch.Generator().manual_seed(bits)) * 2 * gamma + beta
    y = copy_of(x, beta, gamma, bits).decompress()
    beta, gamma = (Fraction(float(torch.tensor(value))) for value in (beta, gamma))
    for a, got in zip(x.flatten().tolist(), y.flatten().tolist(), strict=True):
        want, border = published(Fraction(a), beta, gamma, bits)
        assert not border
        assert abs(got - want) <= abs(want) * Fraction(1, 2**22)


def test_a_value_on_a_border_belongs_to_the_step_below():
    """Check steps of 1: zero is not positive, as for ReLU."""
    x = torch.tensor([[[-2.0, -1.0, -0.0, 0.0, 1.0, 2.0, 1.5, -1.5]]])
    y = copy_of(x, 0.0, 16 / 6, 4).decompress()
    torch.testing.assert_close(y.flatten(), torch.tensor([-2.5, -1.5, -0.5, -0.5, 0.5, 1.5, 1.5, -1.5]))


@pytest.mark.parametrize("bits", CODE_BITS)
@pytest.mark.parametrize("dtype", FLOATS)
@settings(max_examples=40)
@given(
    st.integers(0, 2**31),
    st.sampled_from([0.0, 1e-30, 1e-3, -0.5, 1.0, 40.0, -1e4, 1e15]),
    st.sampled_from([0.0, -0.0, 1e-30, 0.3, -3.1, 5.0, -100.0, 3e4]),
)
def test_signs_are_kept_whatever_the_range(bits, dtype, seed, gamma, beta):
    x = torch.randn(2, 3, 16, generator=torch.Generator().manual_seed(seed)) * max(abs(gamma), 1e-3) + beta
    small, large = torch.finfo(dtype).smallest_normal, torch.finfo(dtype).max
    x.view(-1)[:8] = torch.tensor([0.0, -0.0, small, -small, large, -large, small / 4, -small / 4])
    x = x.to(dtype)
    y = copy_of(x, beta, gamma, bits).decompress()
    assert y.dtype == dtype
    assert y.isfinite().all()
    assert torch.equal(y > 0, x > 0)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("beta", [0.0, 2.0, -2.9, 3.0, -3.0, 3.5, -20.0, 100.0])
def test_values_within_the_range_are_off_by_half_a_step(bits, beta):
    x = torch.linspace(beta - 3, beta + 3, 1001).view(1, 1, -1)
    packed = copy_of(x, beta, 1.0, bits)
    step = float(packed.grid.step)
    # A range that has to be extended across zero is just wide enough for that.
    reaches = 6 / 2**bits - 3 <= beta < 3
    assert step == pytest.approx(6 / 2**bits if reaches else (abs(beta) + 3) / (2**bits - 1), rel=1e-6)
    # The offset is rounded down to whole steps: up to one step is missing above.
    assert (packed.decompress() - x).abs().max() <= step * 1.5 + 1e-5
    assert ((packed.decompress() - x).abs() <= step / 2 + 1e-5)[x <= beta + 3 - step].all()


@pytest.mark.parametrize("bits", CODE_BITS)
def test_codes_are_limited_at_both_ends(bits):
    """Check that values above the range do not wrap around, as they do in the published code."""
    x = torch.tensor([[[-1e6, -10.0, 10.0, 1e6]]])
    y = copy_of(x, 0.0, 1.0, bits).decompress().flatten()
    end = 3 - 6 / 2**bits / 2
    torch.testing.assert_close(y, torch.tensor([-end, -end, end, end]))


@pytest.mark.parametrize("bits", CODE_BITS)
def test_bytes_are_codes_steps_and_offsets(bits):
    packed = actcodec.codec("blpa-float", bits=bits).compress(torch.randn(3, 5, 7, 11))
    assert packed.nbytes == -(-3 * 5 * 7 * 11 * bits // 8) + 5 * (4 + 2)


@pytest.mark.parametrize("kind", ["normal", "skewed"])
@pytest.mark.parametrize("shape", [(3000,), (400, 6), (80, 3, 20), (40, 3, 9, 9), (20, 3, 4, 5, 6)])
def test_range_of_the_tensors_own_channels(shape, kind):
    """Check the range, three standard deviations around the mean or to the last value, against numpy in double precision."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 2 - 1
    if kind == "skewed":
        x = nn.functional.leaky_relu(x, 0.1)
    channels = x.double().numpy().reshape(1, 1, -1) if len(shape) == 1 else x.double().numpy().reshape(*shape[:2], -1)
    packed = actcodec.codec("blpa-float", bits=8).compress(x)
    mean, deviation = channels.mean(axis=(0, 2)), channels.std(axis=(0, 2))
    low = np.maximum(mean - 3 * deviation, channels.min(axis=(0, 2)))
    high = np.minimum(mean + 3 * deviation, channels.max(axis=(0, 2)))
    assert (low > mean - 2 * deviation).all() == (kind == "skewed")
    torch.testing.assert_close(packed.grid.step.double(), torch.from_numpy((high - low) / 256), rtol=1e-6, atol=0)
    middle = (packed.grid.first + 128) * packed.grid.step
    assert (middle - torch.from_numpy((low + high) / 2)).abs().max() <= packed.grid.step.max()


@pytest.mark.parametrize("bits", CODE_BITS)
def test_what_has_no_negative_values_is_decoded_without(bits):
    """Check results of ReLU: zeros are decoded as zeros, and all other values as more than zero."""
    x = torch.randn(40, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    x[:, 2] += 4
    x = x.relu()
    x[:, 1] = 0.0
    packed = actcodec.codec("blpa-float", bits=bits).compress(x)
    y = packed.decompress()
    assert torch.equal(y > 0, x > 0)
    assert (y[x == 0] == 0).all()
    # Channel 0 is half a normal distribution of deviation 1; channel 2, nearly all above zero, ends at its greatest value.
    end = packed.grid.step * (2**bits - 1)
    assert float(end[0]) == pytest.approx(3, rel=0.05)
    assert float(end[2]) == pytest.approx(float(x[:, 2].max()), rel=1e-6)
    inside = (x > 0) & (x <= end.view(1, -1, 1, 1))
    assert inside.double().mean() > 0.4
    assert ((y - x).abs() <= packed.grid.step.view(1, -1, 1, 1) / 2 + 1e-6)[inside].all()


def test_limits():
    with pytest.raises(UserError, match="bits = 3 is not allowed: use 1, 2, 4, 8"):
        actcodec.codec("blpa-float", bits=3)
    with pytest.raises(UserError, match="no bitstream"):
        actcodec.codec("blpa-float").compress(torch.ones(9)).to_bytes()

"""The analysis of frequencies against scipy's DCT."""

import numpy as np
import pytest
import scipy.fft
import torch
from actcodec.study.frequency import Lambdas, dct_maps, idct_maps, lambdas, low_mask, split
from cdu_spec import UserError
from hypothesis import given
from hypothesis import strategies as st

SHAPES = [(2, 3, 8, 8), (2, 2, 7, 7), (1, 4, 14, 14), (3, 30, 17), (1, 1, 1, 1), (5, 1, 9), (4, 28, 56)]


def maps(shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_transform_is_scipys(shape, dtype):
    x = maps(shape).to(dtype)
    want = scipy.fft.dctn(x.double().numpy(), axes=(-2, -1), norm="ortho")
    np.testing.assert_allclose(dct_maps(x).numpy(), want, atol=1e-12 * max(shape) ** 2)
    torch.testing.assert_close(idct_maps(dct_maps(x)), x.double(), rtol=0, atol=1e-12)


@given(st.integers(1, 40), st.integers(1, 40), st.one_of(st.floats(0.01, 1.0), st.integers(1, 45)), st.integers(0, 2**31))
def test_parseval_and_the_parts(height, width, corner, seed):
    x = maps((2, height, width), seed) * 3 + 1
    found = lambdas(x, corner)
    assert found.low**2 + found.high**2 == pytest.approx(float(x.double().norm() ** 2), rel=1e-12)
    low, high = split(x, corner)
    torch.testing.assert_close(low + high, x.double(), rtol=0, atol=1e-12)
    assert float(low.norm()) == pytest.approx(found.low, rel=1e-9)
    assert float(high.norm()) == pytest.approx(found.high, rel=1e-9, abs=1e-9)
    assert float((low * high).sum()) == pytest.approx(0, abs=1e-9 * float(x.norm() ** 2))


def test_lambdas_are_those_of_scipys_coefficients():
    x = maps((4, 5, 30, 17))
    coefficients = scipy.fft.dctn(x.double().numpy(), axes=(-2, -1), norm="ortho")
    low = coefficients[..., :8, :4]  # a quarter of 30 and of 17, rounded
    found = lambdas(x, 0.25)
    assert found.low == pytest.approx(np.linalg.norm(low), rel=1e-12)
    assert found.high == pytest.approx(np.sqrt(np.linalg.norm(coefficients) ** 2 - np.linalg.norm(low) ** 2), rel=1e-9)


def test_constant_maps_are_low_and_waves_are_high():
    assert lambdas(torch.ones(2, 3, 14, 14), 1).high < 1e-12
    assert lambdas(torch.ones(2, 3, 14, 14), 1).low == pytest.approx((2 * 3 * 14 * 14) ** 0.5)
    fastest = torch.cos(torch.pi / 8 * (torch.arange(8, dtype=torch.float64) + 0.5) * 7).expand(1, 8, 8)
    assert lambdas(fastest, 7).low < 1e-12
    assert lambdas(fastest, 7).high == pytest.approx(32**0.5)
    assert lambdas(torch.zeros(1, 4, 4)) == Lambdas(0.0, 0.0)
    assert Lambdas(0.0, 0.0).share == 0.0
    assert Lambdas(3.0, 4.0).share == pytest.approx(9 / 25)


@pytest.mark.parametrize(
    ("corner", "ones"), [(0.25, (8, 4)), (1.0, (30, 17)), (0.01, (1, 1)), (1, (1, 1)), (20, (20, 17)), (100, (30, 17))]
)
def test_the_mask(corner, ones):
    mask = low_mask(30, 17, corner)
    want = torch.zeros(30, 17, dtype=torch.bool)
    want[: ones[0], : ones[1]] = True
    assert torch.equal(mask, want)


@pytest.mark.parametrize("corner", [0, 0.0, -1, 1.5, True, float("nan")])
def test_other_corners_are_refused(corner):
    with pytest.raises(UserError, match=r"corner = .* is not allowed"):
        low_mask(8, 8, corner)


@pytest.mark.parametrize("x", [torch.ones(8), torch.ones(2, 0, 8), torch.ones(2, 8, 8, dtype=torch.int32)])
def test_what_has_no_maps(x):
    with pytest.raises(UserError, match="has no maps to transform"):
        lambdas(x)

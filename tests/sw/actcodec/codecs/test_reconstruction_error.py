"""Errors of reconstructions, beside numpy."""

import math

import numpy as np
import pytest
import torch
from actcodec.codecs.reconstruction_error import reconstruction_error


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("count", [1, 1000, (1 << 20) + 3])
def test_numpy_computes_the_same(dtype, count):
    generator = torch.Generator().manual_seed(0)
    x = (torch.randn(count, generator=generator) * 9).to(dtype)
    y = x.float() + torch.randn(count, generator=generator)
    found = reconstruction_error(x, y)
    a, b = x.double().numpy(), y.double().numpy()
    rms = np.sqrt(np.mean((b - a) ** 2))
    assert found.largest == np.abs(b - a).max()
    assert found.rms == pytest.approx(rms, rel=1e-12)
    assert found.value_range == a.max() - a.min()
    if count > 1:
        assert found.psnr == pytest.approx(20 * np.log10((a.max() - a.min()) / rms), rel=1e-12)


def test_values_that_are_no_numbers():
    x = torch.tensor([math.nan, math.inf, 1.0, 3.0])
    same = reconstruction_error(x, x.clone())
    assert (same.largest, same.rms, same.value_range, same.psnr) == (0, 0, 2, math.inf)
    saturated = reconstruction_error(x, torch.tensor([0.0, 3.0, 1.0, 3.0]))
    assert (saturated.largest, saturated.rms, saturated.psnr) == (math.inf, math.inf, -math.inf)


def test_a_constant_tensor_with_an_error_has_no_ratio():
    assert reconstruction_error(torch.ones(4), torch.zeros(4)).psnr == -math.inf


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint64])
def test_integers_of_64_bits_are_compared_exactly(dtype):
    x = torch.tensor([2**53 + 1, 2**62 + 1], dtype=dtype)
    assert reconstruction_error(x, x).largest == 0
    assert reconstruction_error(x, x.float()).largest == 1
    assert reconstruction_error(x, torch.tensor([2**53 + 1, 2**62 + 4], dtype=dtype)).largest == 3

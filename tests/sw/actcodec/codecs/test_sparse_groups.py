"""Codec ``sparse-sample``: zeros exact, the others within a step of their group, unbiased, every byte counted."""

import math

import numpy as np
import pytest
import torch
from actcodec import codec
from actcodec.codecs.actnn.sparse_groups import SparseSampleCodec
from cdu_tools.errors import UserError
from hypothesis import given
from hypothesis import strategies as st

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def relu_like(seed, shape, density=0.4, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator).abs() + 1e-3
    return torch.where(torch.rand(shape, generator=generator) < density, x, torch.zeros(())).to(dtype)


@given(st.integers(0, 99), st.integers(1, 8), st.integers(1, 300), st.sampled_from([1, 3, 64, 256]), st.sampled_from(DTYPES))
def test_zeros_stay_and_nothing_else_becomes_zero(seed, bits, size, group, dtype):
    x = relu_like(seed, (2, size), dtype=dtype)
    y = SparseSampleCodec(bits=bits, group=group).compress(x).decompress()
    assert (y.shape, y.dtype) == (x.shape, x.dtype)
    assert torch.equal(y == 0, x == 0)
    assert bool((y >= 0).all())


@given(st.integers(0, 99), st.integers(1, 8), st.sampled_from([7, 256]))
def test_error_is_below_one_step_of_the_values_group(seed, bits, group):
    x = relu_like(seed, (3, 5, 11, 4))
    y = SparseSampleCodec(bits=bits, group=group).compress(x).decompress()
    values, found = x.numpy().ravel(), y.numpy().ravel()
    there = values != 0
    for first in range(0, int(there.sum()), group):
        mine, its = values[there][first : first + group], found[there][first : first + group]
        # bfloat16 keeps 8 significant bits: Z is at most 2**-7 of itself lower, and R covers that and its own rounding.
        reach = (mine.max() - mine.min() * (1 - 2**-7)) * (1 + 2**-7)
        assert np.abs(mine - its).max() <= reach / (2**bits - 1) * (1 + 1e-5) + 1e-7


def test_bytes_are_mask_codes_and_ranges():
    x = torch.zeros(4, 100)
    x[:, :25] = torch.rand(4, 25) + 0.5
    packed = SparseSampleCodec(bits=3, group=64).compress(x)
    mask, codes, groups = 400 // 8, math.ceil(100 * 3 / 8), math.ceil(100 / 64)
    assert packed.nbytes == mask + codes + 4 * groups + 1
    assert SparseSampleCodec().compress(torch.zeros(4, 100)).nbytes == mask
    assert torch.equal(SparseSampleCodec().compress(torch.zeros(4, 100)).decompress(), torch.zeros(4, 100))


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_reconstruction_is_unbiased(bits):
    x, sparse = relu_like(1, (8, 64)), SparseSampleCodec(bits=bits)
    draws = 400
    mean = sum(sparse.compress(x).decompress().double() for _ in range(draws)) / draws
    step = float(x.max()) / (2**bits - 1)
    # A value's draws deviate by at most half a step; the limit is six standard errors.
    assert float((mean - x).abs().max()) < 6 * 0.5 * step / math.sqrt(draws)


def test_random_numbers_differ_by_call_and_repeat_by_run():
    x, sparse = relu_like(2, (4, 200)), codec("sparse-sample", bits=2)
    first, second = sparse.compress(x).decompress(), sparse.compress(x).decompress()
    assert not torch.equal(first, second)
    sparse.restart(0)
    assert torch.equal(sparse.compress(x).decompress(), first)
    sparse.restart(1)
    assert not torch.equal(sparse.compress(x).decompress(), first)


def test_subnormal_values_are_not_lost():
    x = torch.tensor([[0.0, 1e-42, 1.0, 2e-42]])
    y = SparseSampleCodec(bits=1, rounding="nearest").compress(x).decompress()
    assert torch.equal(y != 0, x != 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 0}, "bits = 0"),
        ({"bits": 9}, "bits = 9"),
        ({"bits": torch.tensor([2, 2])}, "use one number"),
        ({"group": 0}, "group = 0"),
        ({"rounding": "up"}, "rounding = 'up'"),
        ({"seed": -1}, "seed = -1"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(UserError, match=message):
        SparseSampleCodec(**options)


def test_what_cannot_be_taken():
    for x in (torch.tensor([[1.0, float("nan")]]), torch.tensor([[float("inf"), 0.0]]), torch.zeros(2, 2, dtype=torch.int32)):
        with pytest.raises(UserError):
            SparseSampleCodec().compress(x)
    with pytest.raises(UserError, match="no bitstream"):
        SparseSampleCodec().compress(torch.ones(2, 2)).to_bytes()

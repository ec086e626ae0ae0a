"""Copies in unlimited steps: errors in exact fractions, signs, and bytes compared with the entropy."""

from fractions import Fraction
from math import sqrt

import actcodec
import numpy as np
import pytest
import torch
from actcodec.codecs.blpa.blpa_coded import BlpaCodedCodec
from actcodec.golden.predicted_integers import LEAST_VALUES
from cdu_spec import UserError
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy

FLOATS = [torch.float32, torch.bfloat16, torch.float16]


def copy_of(x, gamma, bits, **options):
    """Return the copy of a tensor whose channels all have one gamma."""
    gammas = torch.full((x.shape[1] if x.ndim > 1 else 1,), float(gamma))
    return BlpaCodedCodec(bits).copy(x, torch.zeros_like(gammas), gammas, **options)


@pytest.mark.parametrize("bits", [1, 2.5, 4, 8])
def test_every_value_is_the_middle_of_its_step(bits):
    x = torch.randn(2, 3, 9, 11, generator=torch.Generator().manual_seed(0)) * 2
    packed = copy_of(x, 0.7, bits)
    step = Fraction(float(packed.step[0]))
    assert float(step) == pytest.approx(6 * 0.7 / 2**bits, rel=1e-6)
    for value, got in zip(x.flatten().tolist(), packed.decompress().flatten().tolist(), strict=True):
        below = -(-Fraction(value) // step) - 1
        assert abs(Fraction(got) - (below + Fraction(1, 2)) * step) <= abs(Fraction(got)) * Fraction(1, 2**22)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(FLOATS),
    st.sampled_from([1, 3.5, 12]),
    st.sampled_from([0.0, 1e-30, 1e-3, 1.0, 1e4]),
    st.sampled_from([1e-30, 1e-4, 1.0, 300.0]),
    st.integers(0, 2**31),
)
def test_signs_and_errors_whatever_the_values_are(dtype, bits, gamma, scale, seed):
    random = torch.Generator().manual_seed(seed)
    x = (torch.randn(3, 2, 7, 5, generator=random) * scale).to(dtype)
    x[0, 0, 0] = 0.0
    packed = copy_of(x, gamma, bits)
    y = torch.empty(3, 2, 35)

    def before_rounding(values, box):
        y[box] = values
        return values

    packed.rebuilt(before_rounding)
    y = y.view(x.shape)
    assert torch.equal(y > 0, x > 0)
    assert y.isfinite().all()
    step = packed.step.view(1, -1, 1, 1).double()
    error = (y.double() - x.double()).abs()
    assert (error <= step * 0.5 * (1 + 2**-20) + x.double().abs() * 2**-22).all()
    again = copy_of(x.relu(), gamma, bits, rectified=True).decompress()
    assert torch.equal(again == 0, x <= 0)


def test_what_relu_made_is_decoded_without_negative_values():
    x = torch.randn(4, 8, 16, 16, generator=torch.Generator().manual_seed(2)).relu()
    y = actcodec.codec("blpa-coded", bits=3).compress(x).decompress()
    assert torch.equal(y > 0, x > 0)
    assert not (y < 0).any()


def test_bits_say_how_fine_steps_are_and_neighbours_what_they_cost():
    """Check that independent normal values cost their entropy, and smooth ones of the same distribution a part of it."""
    random = torch.Generator().manual_seed(3)
    rough = torch.randn(16, 4, 32, 32, generator=random)
    smooth = torch.nn.functional.interpolate(torch.randn(16, 4, 6, 6, generator=random), 32, mode="bicubic")
    smooth = smooth / smooth.std()
    for bits in (3, 4):
        cost = {}
        for name, x in (("rough", rough), ("smooth", smooth)):
            packed = copy_of(x, 1.0, bits)
            cost[name] = 8 * packed.nbytes / x.numel()
            error = (packed.decompress() - x).square().mean().sqrt()
            assert error == pytest.approx(6 / 2**bits / sqrt(12), rel=0.05)
        codes = torch.ceil(rough / (6 / 2**bits))
        _, counts = np.unique(codes.numpy(), return_counts=True)
        assert 0.97 < cost["rough"] / entropy(counts, base=2) < 1.1
        assert cost["smooth"] < 0.6 * cost["rough"]


def test_bytes_are_all_that_is_kept():
    packed = actcodec.codec("blpa-coded").compress(torch.randn(4, 8, 16, 16))
    streams = (*packed.coded.codes, *packed.coded.planes)
    assert packed.nbytes == 32 + 4 * 4 + 4 * 8 + sum(stream.numel() for stream in streams)
    with pytest.raises(UserError, match="bitstream"):
        packed.to_bytes()


@pytest.mark.parametrize("name", ["blpa-coded", "feature-coded", "feature-klt"])
@pytest.mark.parametrize("backend", ["torch", "native"])
def test_coders_keep_the_same_values(name, backend):
    for shape in ((300, 8), (2, 3, 9, 11), (700,)):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(4))
        found = [
            actcodec.codec(name, coder=coder, backend=backend).compress(x).decompress() for coder in ("deflate", "contexts")
        ]
        assert torch.equal(*found)


@pytest.mark.parametrize("name", ["blpa-coded", "feature-coded", "feature-klt"])
def test_coder_auto_is_the_one_that_kernels_have(name):
    """Contexts by native kernels, if there are values enough to pay for their tables; deflate by torch's operations."""
    x = torch.randn(LEAST_VALUES // 8, 8, generator=torch.Generator().manual_seed(5))

    def size(x, **options):
        return actcodec.codec(name, **options).compress(x).nbytes

    assert size(x, backend="native") == size(x, backend="native", coder="contexts")
    assert size(x[1:], backend="native") == size(x[1:], backend="native", coder="deflate")
    assert size(x, backend="torch") == size(x, backend="torch", coder="deflate")


@pytest.mark.parametrize("coder", ["zlib", "", None, 3])
def test_coders_that_are_not_allowed(coder):
    with pytest.raises(UserError, match="use auto, deflate or contexts"):
        actcodec.codec("blpa-coded", coder=coder)


@pytest.mark.parametrize("bits", [0, 0.9, 12.1, float("nan"), "4", True])
def test_bits_that_are_not_allowed(bits):
    with pytest.raises(UserError, match="use a number from 1 to 12"):
        actcodec.codec("blpa-coded", bits=bits)

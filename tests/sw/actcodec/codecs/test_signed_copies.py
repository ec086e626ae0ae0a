"""Exact signs beside lossy streams: a decoder written from the text reads them for any values; ReLU's zeros stay zeros."""

import actcodec
import numpy as np
import pytest
import torch
from actcodec.backends.named import backend
from actcodec.codecs import compressed
from actcodec.codecs.sign_corrections import correct_signs, corrections, signs_of
from actcodec.codecs.signed_copies import SignedCodec
from actcodec.golden.floating.steps import Line
from actcodec.golden.sfpr import NonFiniteError
from cdu_spec.bitstream import BitstreamError
from cdu_tools.errors import UserError
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_stream import decode
from torch.nn import functional as F

FORMATS = (torch.float32, torch.bfloat16, torch.float16)
CODECS = (("jpeg-gmc", {}), ("jpeg-gmc", {"dqt": "optH", "rec": 0}), ("jpeg-act", {}), ("sfpr", {}), ("sfpr+zvc", {"S": 2.0}))


def signed(name="jpeg-gmc", **options):
    return SignedCodec(actcodec.codec(name, **options))


def smooth(*shape, seed=0):
    """Return maps in which neighbours are alike."""
    n, c, h, w = shape
    coarse = torch.randn(n, c, -(-h // 4) + 1, -(-w // 4) + 1, generator=torch.Generator().manual_seed(seed))
    return F.interpolate(coarse, (h, w), mode="bilinear", align_corners=True)


def positive_by_the_text(copy):
    """Return the signs from the bytes of both streams alone, by the module's docstring, in numpy."""
    _, values = decode(copy.form.to_bytes())
    _, numbers = decode(copy.corrections.to_bytes())
    data = np.asarray(numbers, np.float64).astype(np.int8).view(np.uint8)
    bits = np.unpackbits(data[1:], bitorder="little")
    assert not bits[values.size :].any()
    wrong = bits[: values.size].reshape(values.shape)
    unit = np.asarray(copy.form.reciprocals, np.float32)
    if unit.size > 1:
        unit = unit.reshape(-1, *[1] * (values.ndim - 2))
    steps = np.round(np.asarray(values, np.float32) / unit)
    return (steps > data[0]) != wrong.astype(bool)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(("name", "options"), CODECS)
@pytest.mark.parametrize("relu", [False, True])
def test_streams_are_read_by_the_text(name, options, dtype, relu):
    x = smooth(3, 5, 13, 21).to(dtype)
    x = x.relu() if relu else x
    copy = signed(name, **options).compress(x)
    assert np.array_equal(positive_by_the_text(copy), (x > 0).numpy())
    assert copy.nbytes == len(copy.form.to_bytes()) + len(copy.corrections.to_bytes())
    assert torch.equal(copy.decompress() > 0, x > 0)


@st.composite
def tensors(draw):
    """Draw tensors of any shape that the codec takes, with subnormal to large magnitudes, zeros, and constants."""
    dtype = draw(st.sampled_from(FORMATS))
    shape = draw(st.tuples(*[st.integers(1, most) for most in (3, 4, 11, 19)]))
    random = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    least, most = (-24, 15) if dtype is torch.float16 else (-126, 100)
    x = torch.randn(shape, generator=random) * 2.0 ** draw(st.integers(least, most))
    x = x * (torch.rand(shape, generator=random) < draw(st.sampled_from((0.1, 0.7, 1.0))))
    x = x + draw(st.sampled_from((0.0, 1.0, -3.0))) * 2.0 ** draw(st.integers(least, most))
    kind = draw(st.sampled_from(("both", "not negative", "not positive", "constant")))
    x = {"both": x, "not negative": x.relu(), "not positive": -x.relu(), "constant": x[:1, :1, :1, :1].expand(shape)}[kind]
    return x.to(dtype).nan_to_num()


@given(tensors(), st.sampled_from(CODECS), st.sampled_from(("torch", "native")))
@settings(max_examples=150, deadline=None)
def test_signs_are_exact_whatever_the_values(x, codec, which):
    name, options = codec
    copy = signed(name, backend=which, **options).compress(x)
    got = copy.decompress()
    assert (got.shape, got.dtype) == (x.shape, x.dtype)
    assert got.isfinite().all()
    assert torch.equal(got > 0, x > 0)
    if not bool((x < 0).any()):
        assert torch.equal(got != 0, x != 0)
    channels = x.shape[1] if x.ndim > 1 else 1
    doubled = Line(torch.full((channels,), 2.0), torch.zeros(channels))
    assert torch.equal(copy.rebuilt(doubled) > 0, x > 0)


@given(st.integers(1, 300), st.integers(0, 2**32), st.floats(0, 1), st.sampled_from(("torch", "native")))
@settings(max_examples=60, deadline=None)
def test_corrections_of_any_signs(count, seed, density, which):
    """Check signs that are unrelated to the values, too, and equal bytes of both backends."""
    random = torch.Generator().manual_seed(seed)
    decoded = torch.randint(-200, 200, (1, 1, count), generator=random).float()
    original = torch.where(torch.rand(decoded.shape, generator=random) < density, 1.0, -1.0)
    unit = torch.ones(1)
    stream = corrections(decoded.clone(), unit, original, backend(which))
    assert stream.to_bytes() == corrections(decoded.clone(), unit, original, backend("torch")).to_bytes()
    signs = signs_of(compressed.from_bytes(stream.to_bytes()), count, backend(which))
    correct_signs(decoded, unit, signs, None, backend(which), rectified=False)
    assert torch.equal(decoded > 0, original > 0)
    blocks = -(-(1 + -(-count // 8)) // 64)
    assert stream.header.payload_bytes <= 8 * blocks + 1 + -(-count // 8)


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 300)),
    st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
    st.integers(0, 2**32),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_kernels_give_the_same_signs_and_values(shape, dtype, seed, rectified, with_line):
    random = torch.Generator().manual_seed(seed)
    unit = torch.exp(4 * torch.randn(shape[1], generator=random))
    steps = torch.randint(-140, 140, shape, generator=random) * (torch.rand(shape, generator=random) < 0.7)
    decoded = (steps * unit[:, None]).to(dtype)
    original = (decoded.float() + 0.4 * unit[:, None] * torch.randn(shape, generator=random)).to(dtype)
    line = Line(torch.randn(shape[1], generator=random), torch.randn(shape[1], generator=random)) if with_line else None
    found, values = [], []
    for which in ("torch", "native"):
        computes = backend(which)
        signs = signs_of(corrections(decoded.clone(), unit, original, computes), decoded.numel(), computes)
        found.append((signs.limit, signs.wrong.tolist()))
        for known in (signs, None):
            values.append(decoded.clone())
            correct_signs(values[-1], unit, known, line, computes, rectified=rectified)
    assert found[0] == found[1]
    for one, other in ((values[0], values[2]), (values[1], values[3])):
        assert torch.equal(one.view(torch.uint8), other.view(torch.uint8))
    if line is None:
        assert torch.equal(values[0] > 0, original > 0)


def test_the_limit_is_the_one_with_the_fewest_corrections():
    random = torch.Generator().manual_seed(0)
    steps = torch.randint(-128, 200, (1, 1, 4000), generator=random).float()
    positive = steps + 20 * torch.randn(steps.shape, generator=random) > 9
    errors = [int(((steps > limit) != positive).sum()) for limit in range(128)]
    stream = corrections(steps, torch.ones(1), positive.float(), backend("torch"))
    _, numbers = decode(stream.to_bytes())
    assert int(numbers[0]) == errors.index(min(errors)) > 0
    assert np.unpackbits(numbers[1:].astype(np.int8).view(np.uint8)).sum() == min(errors)


def test_corrections_of_smooth_maps_take_less_than_bits():
    """Check a map and its ReLU: corrections are small, and the error is no greater than without them."""
    x = smooth(8, 16, 32, 32)
    for values, most in ((x, 0.4), (x.relu(), 0.7)):
        copy = signed().compress(values)
        plain = actcodec.codec("jpeg-gmc").compress(values)
        assert copy.form.nbytes == plain.nbytes
        assert copy.corrections.nbytes < x.numel() / 8 * most
        errors = [float((one.decompress() - values).norm()) for one in (copy, plain)]
        assert errors[0] <= errors[1]


def test_signs_come_when_they_are_asked_for():
    x = smooth(4, 8, 16, 16)
    copy = signed().copy(x, torch.zeros(8), torch.ones(8))
    before, plain = copy.nbytes, actcodec.codec("jpeg-gmc").compress(x)
    assert before == plain.nbytes
    assert torch.equal(copy.decompress(), plain.decompress())
    copy.keep_signs(x.relu())
    assert copy.nbytes > before
    once = copy.nbytes
    copy.keep_signs(x)
    assert copy.nbytes == once
    got = copy.decompress()
    assert torch.equal(got > 0, x > 0)
    same = (got == plain.decompress()).float().mean()
    assert 0.8 < same < 1  # values with the right sign are unchanged
    assert (got < 0).any()


def test_channels_that_are_far_from_zero_have_centres_and_signs():
    x = smooth(4, 8, 16, 16)
    x[:, ::2] += 300
    copy = signed().compress(x)
    got = copy.decompress()
    assert torch.equal(got > 0, x > 0)
    assert float((got - x)[:, ::2].norm() / (x[:, ::2] - 300).norm()) < 0.3


@pytest.mark.parametrize("name", ["sfpr", "jpeg-gmc"])
def test_which_inputs_follow(name):
    """Check inputs that follow where the result is as near to beta as its scale requires."""
    deviation = torch.ones(6, dtype=torch.float64)
    middle = torch.tensor([0.0, 2.0, 5.0, -20.0, 1e9, 0.0], dtype=torch.float64)
    x = (smooth(4, 6, 16, 16).clamp(-2, 2).double() + middle.view(1, 6, 1, 1)).float()
    x[:, 5] = 0
    codec = signed(name)
    found = codec.follows(codec.copy(x, middle, deviation), x, middle, deviation)
    # The fourth is centred; there are no numbers next to the fifth's middle; the last has no values.
    assert found.tolist() == [True, True, False, True, False, False]


def test_what_is_refused():
    with pytest.raises(NonFiniteError):
        signed().compress(torch.full((1, 1, 8, 8), float("nan")))
    copy = signed().compress(smooth(1, 2, 8, 8))
    with pytest.raises(UserError, match="no single stream"):
        copy.to_bytes()
    with pytest.raises(BitstreamError, match="does not correct 100 signs"):
        signs_of(copy.corrections, 100, backend("torch"))

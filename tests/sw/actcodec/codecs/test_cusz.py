"""Codec cusz: no error beyond the bound in any format; prediction and coding by plain definitions; bytes."""

import itertools
import math
import zlib
from fractions import Fraction

import actcodec
import numpy as np
import pytest
import torch
from actcodec.golden import integer_coder, lorenzo
from actcodec.golden.sfpr import NonFiniteError
from actcodec.study.data import load
from cdu_spec import UserError
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy

FLOATS = [torch.float32, torch.bfloat16, torch.float16]
shapes = st.one_of(
    st.tuples(st.integers(1, 300)),
    st.tuples(st.integers(1, 4), st.integers(1, 60)),
    st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 13), st.integers(1, 13)),
)
kinds = st.sampled_from(["normal", "relu", "far from zero", "zero", "subnormal", "huge range", "extremes", "two numbers"])


def values_of(kind, shape, dtype, seed):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=random)
    info = torch.finfo(dtype)
    change = {
        "normal": lambda: x,
        "relu": x.relu,
        "far from zero": lambda: 1000 + x,
        "zero": lambda: x * 0,
        "subnormal": lambda: torch.randint(-20, 21, shape, generator=random).double() * info.smallest_normal / 64,
        "huge range": lambda: x * 2.0 ** torch.randint(-14, 14, shape, generator=random),
        "extremes": lambda: torch.where(x > 1, info.max, torch.where(x < -1, info.min, x)),
        "two numbers": lambda: torch.where(x > 0, 0.7, 0.25),
    }
    return change[kind]().to(dtype)


def channel_axes(x):
    return [axis for axis in range(x.ndim) if axis != 1]


@settings(max_examples=300)
@given(shapes, st.sampled_from(FLOATS), kinds, st.floats(-12, 4), st.sampled_from([0, 1, 2, 3, None]), st.integers(0, 2**31))
def test_no_value_is_beyond_an_absolute_bound(shape, dtype, kind, exponent, dimensions, seed):
    x, bound = values_of(kind, shape, dtype, seed), 2.0**exponent
    y = actcodec.codec("cusz", bound=bound, mode="abs", dimensions=dimensions).compress(x).decompress()
    assert (y.shape, y.dtype) == (x.shape, x.dtype)
    # Differences of two numbers of these formats need more digits than float64 has if one is much smaller.
    pairs = zip(x.flatten().tolist(), y.flatten().tolist(), strict=True)
    assert all(abs(Fraction(before) - Fraction(after)) <= Fraction(bound) for before, after in pairs)
    assert not y[x == 0].any()


@settings(max_examples=150)
@given(shapes, st.sampled_from(FLOATS), kinds, st.floats(-45, 1), st.integers(0, 2**31))
def test_no_value_is_beyond_a_relative_bound(shape, dtype, kind, exponent, seed):
    x, bound = values_of(kind, shape, dtype, seed), 2.0**exponent
    y = actcodec.codec("cusz", bound=bound).compress(x).decompress()
    extent = float(x.double().max() - x.double().min()) or float(x.double().abs().max()) or 1.0
    pairs = zip(x.flatten().tolist(), y.flatten().tolist(), strict=True)
    assert all(abs(Fraction(before) - Fraction(after)) <= Fraction(bound) * Fraction(extent) for before, after in pairs)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bound", [0.3, 0.49, 0.5, 0.51, 0.7, 0.99, 1.0, 1.01, 1.5, 2.7])
def test_bounds_near_the_precision_of_the_format(dtype, bound):
    unit = torch.finfo(dtype).eps
    # The values are all numbers of the format from 1/2 to 2 and their negatives, or many of them.
    x = torch.arange(1 << 11, dtype=torch.float64) if dtype != torch.float32 else torch.arange(1 << 14, dtype=torch.float64)
    x = torch.cat([1 + x * unit, 0.5 + x * unit / 2]).to(dtype).double().clamp_max(2)
    x = torch.cat([x, -x]).to(dtype)
    packed = actcodec.codec("cusz", bound=bound * unit, mode="abs").compress(x)
    error = (packed.decompress().double() - x.double()).abs().max()
    assert error <= bound * unit
    assert packed.outliers.numel() == 0


@settings(max_examples=150)
@given(shapes, kinds, st.floats(-10, 3), st.booleans(), st.integers(0, 2**31))
def test_rms_error_of_each_channel(shape, kind, exponent, by_channel, seed):
    x = values_of(kind, shape, torch.float32, seed)
    count = shape[1] if by_channel and len(shape) > 1 else 1
    error = 2.0**exponent * torch.rand(count, generator=torch.Generator().manual_seed(seed)).add(0.5)
    y = actcodec.codec("cusz").compress_within(x, error).decompress()
    squares = (y.double() - x.double()).square()
    rms = squares.mean(channel_axes(x)).sqrt() if count > 1 else squares.mean().sqrt()
    # float32 rounds the results.
    assert (rms <= error * (1 + 1e-12) + torch.finfo(torch.float32).eps / 2 * x.abs().max().double()).all()


def test_steps_use_what_an_error_allows():
    x = torch.rand(8, 3, 32, 32, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 10.0, 100.0])[:, None, None]
    error = torch.tensor([0.01, 0.01, 3.0])
    packed = actcodec.codec("cusz").compress_within(x, error)
    assert torch.allclose(packed.steps, error * math.sqrt(12), rtol=0.02)
    # Nonzero values may have larger errors if most values are zeros.
    sparse = torch.where(torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) < 0.75, 0.0, x)
    wide = actcodec.codec("cusz").compress_within(sparse, error)
    assert torch.allclose(wide.steps, error * math.sqrt(12) * 2, rtol=0.06)
    # Half-way values all have the greatest possible error: the uniform guess would be wrong.
    worst = torch.full((4, 3, 8, 8), math.sqrt(3))
    off = actcodec.codec("cusz").compress_within(worst, torch.ones(3)).decompress() - worst
    assert off.abs().max() <= 1


def test_outliers_come_back_exactly():
    x = torch.tensor([[1e30, -3e38, 0.5, -0.25, 2.0**40, 1e-40]])
    packed = actcodec.codec("cusz", bound=2.0**-10, mode="abs").compress(x)
    assert packed.places.tolist() == [0, 1, 4]
    y = packed.decompress()
    assert torch.equal(y[0, packed.places], x[0, packed.places])
    assert packed.nbytes >= 3 * (8 + 4)


def plain_differences(values, axes):
    """Compute inclusion and exclusion over the neighbours, each value by itself, from the definition."""
    out = np.zeros_like(values)
    for place in np.ndindex(values.shape):
        for steps in itertools.product((0, 1), repeat=len(axes)):
            other = list(place)
            for axis, step in zip(axes, steps, strict=True):
                other[axis] -= step
            if min(other) >= 0:
                out[place] += (-1) ** sum(steps) * values[tuple(other)]
    return out


@settings(max_examples=60)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 3), st.integers(0, 2**31))
def test_lorenzo_prediction(shape, dimensions, seed):
    most = lorenzo.MAX_MAGNITUDE
    values = torch.randint(-most, most + 1, shape, generator=torch.Generator().manual_seed(seed), dtype=torch.int32)
    axes = list(range(len(shape)))[-dimensions:] if dimensions else []
    if len(shape) > 1:
        axes = [axis for axis in axes if axis]
    left = lorenzo.differences(values, dimensions)
    assert left.tolist() == plain_differences(values.numpy().astype(np.int64), axes).tolist()
    assert torch.equal(lorenzo.sums(left, dimensions), values)


def inflated(stream):
    return zlib.decompress(bytes(stream.tolist()), -15) if stream.numel() else b""


def plain_decode(coded, count):
    """Decode one integer at a time: deflate by the standard library, codes from the low bits of each byte on."""
    streams = []
    for width, part in zip((2, 4, 8), coded.codes, strict=True):
        raw = inflated(part)
        streams.append((width, iter([byte >> bit & (1 << width) - 1 for byte in raw for bit in range(0, 8, width)])))
    folded = [
        sum(byte << 8 * place for place, byte in enumerate(four)) for four in zip(*map(inflated, coded.planes), strict=True)
    ]
    rest, out = iter([number // 2 if number % 2 == 0 else -(number + 1) // 2 for number in folded]), []
    for _ in range(count):
        for width, codes in streams:
            code = next(codes)
            if code != (1 << width) - 1:
                out.append(code - ((1 << (width - 1)) - 1))
                break
        else:
            out.append(next(rest))
    return out


integers = st.one_of(
    st.integers(-2, 2),
    st.integers(-9, 9),
    st.integers(-130, 130),
    st.sampled_from([-(2**30), 2**30]),
    st.integers(-(2**30), 2**30),
)


@settings(max_examples=150)
@given(st.lists(integers, min_size=1, max_size=200))
def test_coded_integers(numbers):
    values = torch.tensor(numbers, dtype=torch.int32)
    coded = integer_coder.encode(values)
    assert plain_decode(coded, len(numbers)) == numbers
    assert integer_coder.decode(coded, len(numbers)).tolist() == numbers
    assert coded.nbytes == sum(stream.numel() for stream in (*coded.codes, *coded.planes))


@pytest.mark.parametrize(
    ("deviation", "most"), [(0.3, 1.06), (0.5, 1.02), (1.0, 1.01), (4.0, 1.01), (20.0, 1.02), (60.0, 1.045), (3000.0, 1.025)]
)
def test_bytes_are_near_the_entropy(deviation, most):
    random = torch.Generator().manual_seed(5)
    values = (torch.randn(1 << 18, generator=random) * deviation).round().to(torch.int32)
    least = entropy(np.unique(values.numpy(), return_counts=True)[1], base=2) * values.numel()
    bits = 8 * integer_coder.encode(values).nbytes
    # Independent values allow no fewer bits, except for what the counts of this sample reveal.
    assert least * 0.995 <= bits <= least * most


def test_what_is_constant_costs_next_to_nothing():
    assert integer_coder.encode(torch.zeros(1 << 20, dtype=torch.int32)).nbytes < 500
    flat = actcodec.codec("cusz").compress(torch.full((16, 8, 32, 32), 3.25))
    assert flat.nbytes < 1000
    assert (flat.decompress() - 3.25).abs().max() <= 3.25 / 256


def test_dimensions_fit_the_tensor():
    random = torch.Generator().manual_seed(0)
    noise = torch.randn(8, 4, 32, 32, generator=random)
    codec = actcodec.codec("cusz", bound=0.01, mode="abs")
    assert codec.compress(noise).dimensions == 0
    assert codec.compress(noise.cumsum(3)).dimensions == 1
    assert codec.compress(noise.cumsum(3).cumsum(2)).dimensions == 2
    assert codec.compress(noise.cumsum(3).cumsum(2).cumsum(1)).dimensions == 3
    assert codec.compress(torch.randn(1, 4, 256, 256, generator=random).cumsum(3).cumsum(2)).dimensions == 2


def test_bytes_count_everything():
    x = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    x[0, 0, 0, 0] = 1e30
    packed = actcodec.codec("cusz").compress_within(x, torch.tensor([1e-4, 1e-3, 1e-2]))
    streams = sum(stream.numel() for stream in (*packed.differences.codes, *packed.differences.planes))
    assert packed.outliers.numel() == 1
    assert packed.nbytes == streams + 3 * 4 + (8 + 4) + 4 * 4 + 32


def test_real_images_and_their_features():
    images = load("digits").train_inputs[:64]
    with torch.no_grad():
        torch.manual_seed(0)
        x = torch.nn.functional.conv2d(images, torch.randn(8, 1, 3, 3), padding=1).relu()
    error = x.std((0, 2, 3)) * 0.1
    packed = actcodec.codec("cusz").compress_within(x, error)
    y = packed.decompress()
    assert ((y - x).double().square().mean((0, 2, 3)).sqrt() <= error).all()
    assert not y[x == 0].any()
    assert 4 * x.numel() / packed.nbytes > 10


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bound": 0.0}, "use a positive finite number"),
        ({"bound": math.inf}, "use a positive finite number"),
        ({"bound": "small"}, "use a positive finite number"),
        ({"mode": "pw_rel"}, "use abs or rel"),
        ({"dimensions": 4}, "use 0 to 3, or None"),
        ({"dimensions": True}, "use 0 to 3, or None"),
    ],
)
def test_refused_options(options, words):
    with pytest.raises(UserError, match=words):
        actcodec.codec("cusz", **options)


def test_any_finite_bound():
    x = torch.tensor([1.0, -3e38, 0.0])
    for bound, mode in ((1e308, "abs"), (1e308, "rel"), (5e-324, "abs"), (5e-324, "rel")):
        y = actcodec.codec("cusz", bound=bound, mode=mode).compress(x).decompress()
        assert y.isfinite().all()
        assert bound > 1 or torch.equal(y, x)


def test_refused_tensors():
    codec = actcodec.codec("cusz")
    with pytest.raises(NonFiniteError):
        codec.compress(torch.tensor([1.0, math.nan]))
    with pytest.raises(NonFiniteError):
        codec.compress_within(torch.tensor([1.0, math.inf]), torch.tensor([0.1]))
    with pytest.raises(UserError, match="positive finite"):
        codec.compress_within(torch.ones(2, 3), torch.tensor([0.0]))
    with pytest.raises(UserError, match=r"\(1,\) or \(3,\)"):
        codec.compress_within(torch.ones(2, 3), torch.ones(2))
    with pytest.raises(UserError, match="no bitstream"):
        codec.compress(torch.ones(3)).to_bytes()

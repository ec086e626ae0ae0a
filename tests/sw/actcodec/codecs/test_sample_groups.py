"""ActNN as published: groups within samples, 1 to 8 bits, unbiased, with the variance of the paper."""

from fractions import Fraction

import actcodec
import pytest
import torch
from cdu_spec import UserError
from hypothesis import given, settings
from hypothesis import strategies as st

shapes = st.one_of(
    st.tuples(st.integers(1, 300)),
    st.tuples(st.integers(1, 4), st.integers(1, 300)),
    st.tuples(st.integers(1, 3), st.integers(1, 4), st.sampled_from([7, 14, 28, 30]), st.sampled_from([7, 14, 28, 17])),
)
kinds = st.sampled_from(["normal", "relu", "far from zero", "constant", "subnormal", "huge"])


def values_of(kind, shape, seed):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    change = {
        "normal": lambda: x,
        "relu": x.relu,
        "far from zero": lambda: 1000 + x,
        "constant": lambda: torch.full(shape, -3.3),
        "subnormal": lambda: x * 1e-41,
        "huge": lambda: x * 1e36,
    }
    return change[kind]()


def groups_of(x, group):
    """Return every group as a vector, sample by sample, by plain slicing."""
    rows = x.reshape(x.shape[0] if x.ndim > 1 else 1, -1)
    return [[row[i : i + group] for i in range(0, len(row), group)] for row in rows]


def plain_decode(packed):
    """Decode by the definition, one value at a time: bits of one integer, exact fractions."""
    samples = packed.bits.numel()
    size = torch.Size(packed.shape).numel() // samples
    stream, first, out = packed.codes, 0, [[] for _ in range(samples)]
    for width in range(1, 9):
        chosen = [n for n in range(samples) if int(packed.bits[n]) == width]
        after = first + -(-len(chosen) * size * width // 8)
        number = int.from_bytes(bytes(stream[first:after].tolist()), "little")
        first = after
        for n in chosen:
            for place in range(size):
                code, number = number & (2**width - 1), number >> width
                low, extent = (Fraction(float(part[n, place // packed.group])) for part in (packed.low, packed.extent))
                out[n].append(float(low + extent * code / (2**width - 1)))
    assert first == stream.numel()
    return torch.tensor(out, dtype=torch.float64)


@settings(max_examples=60)
@given(shapes, kinds, st.sampled_from([1, 3, 32, 256, 1000]), st.integers(0, 2**31), st.data())
def test_error_bytes_and_ranges(shape, kind, group, seed, data):
    x = values_of(kind, shape, seed)
    groups = groups_of(x, group)
    bits = torch.tensor(data.draw(st.lists(st.integers(1, 8), min_size=len(groups), max_size=len(groups))))
    packed = actcodec.codec("actnn-sample", bits=bits, group=group).compress(x)
    counts = {width: int((bits == width).sum()) for width in range(1, 9)}
    size = x.numel() // len(groups)
    expected = sum(-(-n * size * width // 8) for width, n in counts.items())
    assert packed.nbytes == expected + 4 * sum(map(len, groups)) + len(groups)
    y = packed.decompress()
    for n, (mine, back) in enumerate(zip(groups, groups_of(y, group), strict=True)):
        for g, (before, after) in enumerate(zip(mine, back, strict=True)):
            low, extent = float(packed.low[n, g]), float(packed.extent[n, g])
            least, greatest = float(before.min()), float(before.max())
            spread = (greatest - least) * (1 + 2**-6) + abs(least) * 2**-6 + 2e-38
            # No other group and no padding enters: R is that of the values themselves, except for its 16 bits.
            assert low <= least
            assert 0 < extent <= spread
            assert low + extent >= greatest - extent * 2**-20
            step = extent / (2 ** int(bits[n]) - 1)
            error = (after.double() - before.double()).abs().max()
            assert error <= step * (1 + 1e-5) + 2**-22 * max(abs(low), abs(greatest)) + 1e-44


@settings(max_examples=25)
@given(st.tuples(st.integers(1, 5), st.integers(1, 40)), st.integers(0, 2**31), st.data())
def test_packed_bytes_decode_by_the_definition(shape, seed, data):
    bits = torch.tensor(data.draw(st.lists(st.integers(1, 8), min_size=shape[0], max_size=shape[0])))
    packed = actcodec.codec("actnn-sample", bits=bits, group=16).compress(values_of("normal", shape, seed))
    torch.testing.assert_close(packed.decompress().double(), plain_decode(packed), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bits", range(1, 9))
def test_greatest_value_keeps_the_greatest_code(bits):
    """Check C1: over many draws the greatest value is never decoded as the least, as a code beyond the range would be."""
    x = torch.cat([torch.zeros(255), torch.ones(1)]).repeat(64, 1)
    y = actcodec.codec("actnn-sample", bits=bits).compress(x).decompress()
    assert torch.equal(y, x)


@pytest.mark.parametrize("bits", range(1, 9))
def test_unbiased_with_the_papers_variance(bits):
    """Check values spread evenly, in groups of 256 and a rest: mean error 0, variance ``G R**2 / (6 B**2)``."""
    draws, size = 100, 600
    x = torch.rand(3, size, generator=torch.Generator().manual_seed(bits)) * torch.tensor([[1.0], [30.0], [0.01]]) + 7
    codec = actcodec.codec("actnn-sample", bits=bits)
    errors = torch.stack([codec.compress(x).decompress().double() - x.double() for _ in range(draws)])
    packed = codec.compress(x)
    levels = 2**bits - 1
    sizes = torch.tensor([256.0, 256.0, 88.0], dtype=torch.float64)
    per_group = sizes * packed.extent.double().square() / (6 * levels**2)
    torch.testing.assert_close(packed.unit_variance / levels**2, per_group.sum(1))
    for row, step in enumerate(packed.extent.double().amax(1) / levels):
        # p (1 - p) <= 1/4 for every value and draw: five deviations of the mean of all, plus the 24 bits of decoding.
        assert abs(errors[:, row].mean()) < 5 * step / 2 / (draws * size) ** 0.5 + 7 * 2**-24
        assert errors[:, row].mean(0).abs().max() < 6 * step / 2 / draws**0.5 + 7 * 2**-22
    found = torch.stack([part.sum(1) for part in errors.square().mean(0).split(256, dim=1)], 1)
    # The fractions p of 88 or more values are not exactly even.
    torch.testing.assert_close(found, per_group, rtol=0.2, atol=0.0)


def test_unbiased_for_parameters_that_need_rounding():
    """Check Z = 1001.3 and R = 3.21, which are no bfloat16 numbers: their rounding errors would be 1000 times the limit."""
    x = 1001.3 + 3.21 * torch.linspace(0, 1, 256, dtype=torch.float64).float()[None]
    codec = actcodec.codec("actnn-sample", bits=2)
    mean = torch.stack([codec.compress(x).decompress().double() for _ in range(400)]).mean(0)
    assert abs((mean - x.double()).mean()) < 0.01


def test_samples_do_not_share_groups():
    x = torch.stack([torch.zeros(10), torch.full((10,), 1e6)])
    y = actcodec.codec("actnn-sample", bits=1).compress(x).decompress()
    assert not y[0].any()
    assert (y[1] - 1e6).abs().max() <= 1e6 * 2**-7


def test_the_papers_account():
    """Check groups of 256: 2 bits and 32 / 256 for Z and R, and a byte for a sample's bits."""
    x = torch.randn(8, 4, 32, 32)
    assert actcodec.codec("actnn-sample").compress(x).nbytes * 8 == pytest.approx(x.numel() * 2.125 + 8 * 8)


def test_decoding_does_not_overflow_float16():
    x = torch.tensor([[65504.0, -65504.0, 100.0, 0.0]], dtype=torch.float16)
    y = actcodec.codec("actnn-sample", bits=8).compress(x).decompress()
    assert y.dtype == torch.float16
    assert y.isfinite().all()


def test_more_than_65535_groups():
    x = torch.randn(3, 70000, generator=torch.Generator().manual_seed(1))
    packed = actcodec.codec("actnn-sample", bits=8, group=2).compress(x)
    assert packed.low.shape == (3, 35000)
    assert (packed.decompress() - x).abs().max() < 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 0}, "bits = 0 is not allowed: use 1 to 8"),
        ({"bits": 9}, "bits = 9 is not allowed: use 1 to 8"),
        ({"bits": True}, "bits = True"),
        ({"bits": 2.5}, "bits = 2.5 is not allowed: use 1 to 8, or a tensor"),
        ({"bits": torch.tensor([1, 9])}, "is not allowed: use 1 to 8"),
        ({"bits": torch.tensor([1.0])}, r"bits of dtype torch.float32 and shape \(1,\): use integers \(samples,\)"),
        ({"bits": torch.ones(2, 2, dtype=torch.int64)}, r"shape \(2, 2\): use integers"),
        ({"group": 0}, "group = 0 is not allowed: use 1 to 2147483648 values"),
        ({"group": 2.0}, "group = 2.0"),
        ({"rounding": "up"}, "rounding = 'up' is not allowed: use stochastic or nearest"),
        ({"seed": -1}, "seed = -1"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(UserError, match=message):
        actcodec.codec("actnn-sample", **options)


def test_bad_tensors():
    codec = actcodec.codec("actnn-sample", bits=torch.tensor([1, 2, 3]))
    with pytest.raises(UserError, match=r"bits for 3 samples do not go with shape \(2, 5\): give 2"):
        codec.compress(torch.ones(2, 5))
    with pytest.raises(UserError, match="does not fit bf16: use codec actnn"):
        codec.compress(torch.full((3, 5), torch.finfo(torch.float32).max) * torch.tensor([1, 1, 1, 1, -1]))
    with pytest.raises(UserError, match="no bitstream: use division or actnn"):
        codec.compress(torch.ones(3, 5)).to_bytes()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_gives_the_same_bytes():
    x = torch.randn(5, 16, 17, 19, generator=torch.Generator().manual_seed(3))
    codec = actcodec.codec("actnn-sample", bits=torch.tensor([1, 2, 3, 5, 8]))
    there = codec.compress(x.cuda())
    codec.restart(0)
    here = codec.compress(x)
    assert torch.equal(there.codes.cpu(), here.codes)
    assert torch.equal(there.extent.cpu(), here.extent)


@pytest.mark.parametrize("backend", ["torch", "native"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_every_value_that_is_not_finite_is_seen(backend, value):
    """Values lie at every place of two groups, the last of which is smaller than a vector of the processor."""
    codec = actcodec.codec("actnn-sample", group=33, backend=backend)
    for place in range(38):
        x = torch.randn(1, 38)
        x[0, place] = value
        with pytest.raises(UserError, match="1 of 38 values are NaN or infinite"):
            codec.compress(x)

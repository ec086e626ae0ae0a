"""Every codec with backend triton gives the bytes and the values of the torch version on the CPU, for any tensor."""

import actcodec
import pytest
import torch
from actcodec.codecs import TorchBackend, codec_options
from actcodec.golden import block_statistics, channel_statistics, sfpr
from actcodec.golden.floating import groups
from backend_cases import FLOATS, KINDS, OPTIONS, parts, refusal, same_bits, settings_of
from cdu_spec import UserError
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from cdu_spec.mx import MX_FORMATS, NVFP4
from example_values import values_of
from guarded_tensors import guarded_tensors
from hypothesis import given, settings
from hypothesis import strategies as st
from triton_here import DEVICE, MORE, needs_kernels

pytestmark = needs_kernels
KERNELS = [
    *("sfpr", "sfpr+zvc", "jpeg-act", "jpeg-gmc", "brc", "division", "actnn", "blpa", "autoquant"),
    *("actnn-sample", "sparse-sample", "int8-rows", *MX_FORMATS, NVFP4),
]
#: Shapes of less than a kernel's tile, which has 1024 values, and of several tiles with a remainder.
shapes = st.one_of(
    st.lists(st.integers(1, 5), min_size=1, max_size=5).map(tuple),
    st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 12), st.integers(1, 40)),
    st.tuples(st.integers(1, 2), st.integers(1, 3), st.sampled_from([7, 8, 16]), st.sampled_from([7, 8, 32, 72])),
    st.tuples(st.integers(1, 2500)),
)


def both(name, options):
    """Return the same codec with the torch backend and with the kernels."""
    return actcodec.codec(name, **options), actcodec.codec(name, backend="triton", **options)


def check(golden, kernels, x):
    """Check that the forms are equal on any device, and so are the values on the device and on the host."""
    there = x.to(DEVICE)
    expected = golden.compress(x)
    with guarded_tensors():
        found = kernels.compress(there)
        y = kernels.decompress(found)
    assert parts(found) == parts(expected)
    assert y.device.type == DEVICE
    assert same_bits(y.cpu(), golden.decompress(expected))
    assert same_bits(there.cpu(), x)


@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=8 * MORE, deadline=None)
@given(st.data(), shapes, st.sampled_from(FLOATS), st.sampled_from(KINDS), st.integers(0, 2**31))
def test_same_bytes_and_same_values(name, data, shape, dtype, kind, seed):
    _, options = data.draw(settings_of([name]))
    golden, kernels = both(name, options)
    x = values_of(kind, shape, dtype, seed)
    if not golden.takes(shape):
        return
    if name in ("actnn-sample", "sparse-sample") and kind == "max":  # beyond bfloat16
        said = [refusal(golden, x), refusal(kernels, x.to(DEVICE))]
        assert said[0] == said[1]
        if said[0]:
            return
    check(golden, kernels, x)


@pytest.mark.parametrize("name", sorted(OPTIONS))
@pytest.mark.parametrize("shape", [(1, 1, 8, 8), (3, 5, 9, 33)])
def test_every_codec(name, shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).relu()
    check(*both(name, {}), x)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compute(name, monkeypatch):
    """Check that the golden model, which would give the same, is not called."""
    from actcodec.backends.triton.backend import TritonBackend

    kernels = actcodec.codec(name, backend="triton")
    x = torch.randn(2, 3, 9, 11).to(DEVICE)

    def refused(*arguments):
        raise AssertionError("the golden model was asked")

    monkeypatch.setattr(TorchBackend, "compress_tensor", refused)
    monkeypatch.setattr(TorchBackend, "decompress_tensor", refused)
    run = TritonBackend.run

    def by_a_kernel(self, function, *given, **options):
        # Scales are a number per channel, on the tensor's device.
        per_channel = function.__module__ == channel_statistics.__name__ or function is sfpr.scales_of
        assert function in self.implementations or per_channel
        return run(self, function, *given, **options)

    monkeypatch.setattr(TritonBackend, "run", by_a_kernel)
    assert kernels.decompress(kernels.compress(x)).shape == x.shape


@pytest.mark.parametrize("name", KERNELS)
def test_strided_input(name):
    x = torch.randn(16, 12, 4, 3).permute(3, 2, 1, 0)
    expected = actcodec.codec(name).compress(x)
    assert parts(actcodec.codec(name, backend="triton").compress(x.to(DEVICE))) == parts(expected)


@settings(max_examples=12 * MORE, deadline=None)
@given(st.sampled_from([name for name in KERNELS if not name.endswith("-sample")]), st.data())
def test_nan_and_infinity(name, data):
    _, options = data.draw(settings_of([name]))
    x = torch.randn(2, 3, 9, 11).to(data.draw(st.sampled_from(FLOATS)))
    for place in data.draw(st.lists(st.integers(0, x.numel() - 1), min_size=1, max_size=4)):
        x.view(-1)[place] = data.draw(st.sampled_from([float("nan"), float("inf"), -float("inf")]))
    errors = []
    for codec, at in zip(both(name, options), ("cpu", DEVICE), strict=True):
        with pytest.raises(UserError, match="NaN or infinite") as error:
            codec.compress(x.to(at))
        errors.append(str(error.value))
    assert errors[0] == errors[1]
    if "nonfinite" in codec_options(name):
        check(*both(name, {**options, "nonfinite": "saturate"}), x)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("place", [0, 36, 37, 256, 291])
def test_groups_see_every_value_that_is_not_finite(value, place):
    x = torch.randn(1, 292)
    x[0, place] = value
    with pytest.raises(UserError, match="1 of 292 values are NaN or infinite"):
        actcodec.codec("actnn-sample", backend="triton").compress(x.to(DEVICE))


@pytest.mark.parametrize(
    "values", [(1.0, -1.0), (1.0, 1.0), (1.0, 0.5), (0.4, -0.4), (0.5, -0.5), (0.0, -1.0), (2e-38, -1e-38)]
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_ranges_beyond_bfloat16_are_seen(values, dtype):
    """Values are parts of the greatest number of their format."""
    from actcodec.backends.triton.groups import ranges

    x = torch.tensor([values], dtype=torch.float64).mul(torch.finfo(dtype).max).to(dtype)
    for found, expected in zip(ranges(x.to(DEVICE), 7), groups.ranges(x, 7), strict=True):
        assert same_bits(found.cpu(), expected) if expected.ndim else bool(found) == bool(expected)


def test_bits_of_every_sample():
    check(*both("actnn-sample", {"bits": torch.tensor([1, 8, 3, 4, 4, 7, 1, 2])}), torch.randn(8, 3, 37))


@pytest.mark.parametrize("seed", [0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1])
@pytest.mark.parametrize("name", ["actnn", "actnn-sample"])
def test_any_seed(name, seed):
    check(*both(name, {"seed": seed}), torch.randn(2, 3, 37))


@settings(max_examples=15 * MORE, deadline=None)
@given(
    st.tuples(*[st.integers(1, 4)] * 2, st.integers(1, 20), st.integers(7, 20)), st.sampled_from(FLOATS), st.integers(0, 999)
)
def test_residuals_and_maxima(shape, dtype, seed):
    """Check maxima against the definition, and residuals against the golden model, whose order of additions is required."""
    from actcodec.backends.triton.backend import TritonBackend

    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
    view, k = MatrixView.of(shape, Mode.DIVISION), torch.rand(shape[1]) + 0.5
    there, kernels = x.to(DEVICE), TritonBackend()
    found = kernels.run(sfpr.channel_maxima, there.reshape(shape[0], shape[1], -1))
    assert torch.equal(found.cpu(), x.double().abs().amax((0, 2, 3)))
    residuals = kernels.run(block_statistics.residual_maxima, there, view, k.to(DEVICE))
    assert torch.equal(residuals.cpu(), block_statistics.residual_maxima(x, view, k))


@settings(max_examples=20 * MORE, deadline=None)
@given(
    st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(1, 1100)),
    st.sampled_from(FLOATS),
    st.sampled_from([(1.0, 0.0), (1.0, 100.0), (0.0, -3.0), (0.0, 0.0), (1e-41, 0.0), (3e4, -2e4)]),
    st.integers(0, 999),
)
def test_statistics_of_channels(shape, dtype, spread, seed):
    from actcodec.backends.triton.backend import TritonBackend

    factor, middle = spread
    x = (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * factor + middle).clamp(-6e4, 6e4).to(dtype)
    there, run = x.to(DEVICE), TritonBackend().run
    edges = run(channel_statistics.channel_edges, there)
    expected = channel_statistics.channel_edges(x)
    assert all(torch.equal(mine.cpu(), golden) for mine, golden in zip(edges, expected, strict=True))
    moments = run(channel_statistics.channel_moments, there, *edges)
    expected = channel_statistics.channel_moments(x, *expected)
    assert all(same_bits(mine.cpu(), golden) for mine, golden in zip(moments, expected, strict=True))

"""Every codec through backend native: the bytes and the values of the torch version, whatever the tensor."""

import actcodec
import pytest
import torch
from actcodec.backends.native.backend import NativeBackend
from actcodec.codecs import Backend, TorchBackend
from backend_cases import FLOATS, KINDS, OPTIONS, parts, refusal, same_bits, settings_of, shapes
from cdu_spec import UserError
from example_values import values_of
from hypothesis import given, settings
from hypothesis import strategies as st

KERNELS = [
    *("sfpr", "sfpr+zvc", "jpeg-act", "jpeg-gmc", "jpeg-base", "brc", "division", "actnn", "actnn-sample", "sparse-sample"),
]
CHOSEN = settings_of(KERNELS * 3 + sorted(OPTIONS))


@settings(max_examples=500)
@given(CHOSEN, shapes, st.sampled_from(FLOATS), st.sampled_from(KINDS), st.integers(0, 2**31))
def test_same_bytes_and_same_values(chosen, shape, dtype, kind, seed):
    name, options = chosen
    golden, native = actcodec.codec(name, **options), actcodec.codec(name, backend="native", **options)
    x = values_of(kind, shape, dtype, seed)
    if not golden.takes(shape):
        return
    before = x.clone()
    if name in ("actnn-sample", "sparse-sample") and kind == "max":  # beyond bfloat16
        said = [refusal(codec, x) for codec in (golden, native)]
        assert said[0] == said[1]
        if said[0]:
            return
    expected, found = golden.compress(x), native.compress(x)
    assert parts(found) == parts(expected)
    assert same_bits(native.decompress(found), golden.decompress(expected))
    assert same_bits(x, before)


@settings(max_examples=100)
@given(CHOSEN, st.tuples(*[st.integers(1, 3)] * 2, st.integers(8, 12), st.integers(8, 20)), st.data())
def test_nan_and_infinity(chosen, shape, data):
    name, options = chosen
    if name in ("bypass", "actnn-sample", "sparse-sample"):
        return
    dtype = data.draw(st.sampled_from(FLOATS))
    x = torch.randn(shape).to(dtype)
    for place in data.draw(st.lists(st.integers(0, x.numel() - 1), min_size=1, max_size=4)):
        x.view(-1)[place] = data.draw(st.sampled_from([float("nan"), float("inf"), -float("inf")]))
    errors = []
    for backend in ("torch", "native"):
        with pytest.raises(UserError, match="NaN or infinite") as error:
            actcodec.codec(name, backend=backend, **options).compress(x)
        errors.append(str(error.value))
    assert errors[0] == errors[1]
    golden, native = (actcodec.codec(name, backend=backend, nonfinite="saturate", **options) for backend in ("torch", "native"))
    expected, found = golden.compress(x), native.compress(x)
    assert parts(found) == parts(expected)
    assert same_bits(native.decompress(found), golden.decompress(expected))


def test_nan_in_samples():
    x = torch.randn(2, 3, 4)
    x[1, 2, 0] = float("nan")
    with pytest.raises(UserError, match=r"1 of 24 values are NaN or infinite \(channel 2 has 1\)"):
        actcodec.codec("actnn-sample", backend="native").compress(x)


def test_bits_of_every_sample():
    x = torch.randn(8, 3, 37)
    bits = torch.tensor([1, 8, 3, 4, 4, 7, 1, 2])
    golden, native = (actcodec.codec("actnn-sample", bits=bits, backend=name) for name in ("torch", "native"))
    expected, found = golden.compress(x), native.compress(x)
    assert parts(found) == parts(expected)
    assert same_bits(native.decompress(found), golden.decompress(expected))


@pytest.mark.parametrize("name", KERNELS)
def test_any_number_of_threads(name):
    x = torch.randn(3, 5, 72, 264)
    golden = actcodec.codec(name)
    expected = golden.compress(x)
    torch.set_num_threads(3)
    native = actcodec.codec(name, backend="native")
    found = native.compress(x)
    assert parts(found) == parts(expected)
    assert same_bits(native.decompress(found), golden.decompress(expected))


@pytest.mark.parametrize("name", KERNELS)
def test_strided_input(name):
    x = torch.randn(16, 24, 8, 6).permute(3, 2, 1, 0)
    expected = actcodec.codec(name).compress(x)
    found = actcodec.codec(name, backend="native").compress(x)
    assert parts(found) == parts(expected)


@settings(max_examples=100)
@given(
    st.tuples(*[st.integers(1, 5)] * 2, st.integers(1, 20), st.integers(7, 20)), st.sampled_from(FLOATS), st.integers(0, 999)
)
def test_residuals_and_maxima(shape, dtype, seed):
    """Maxima against the definition; residuals, whose means are rounded, within the error of float32 sums."""
    from cdu_spec.bitstream import MatrixView, Mode

    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
    view, k = MatrixView.of(shape, Mode.DIVISION), torch.rand(shape[1]) + 0.5
    native, golden = NativeBackend(), TorchBackend()
    channels = x.reshape(shape[0], shape[1], -1)
    assert torch.equal(native.channel_maxima(channels), x.double().abs().amax((0, 2, 3)))
    found = native.residual_maxima(x, view, k)
    assert torch.equal(found, golden.residual_maxima(x, view, k))
    n, c, h, w = shape
    if h % 8 == 0 and w % 8 == 0:
        tiled = (x.double() * k.double()[:, None, None]).view(n, c, h // 8, 8, w // 8, 8)
        exact = (tiled - tiled.mean((3, 5), keepdim=True)).abs().amax((0, 2, 3, 4, 5))
        torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["sfpr", "actnn-sample", "division"])
def test_other_devices_are_refused(name):
    with pytest.raises(UserError, match="backend 'native' computes on the CPU, and a tensor is on meta: use backend 'torch'"):
        actcodec.codec(name, backend="native").compress(torch.empty(1, 1, 8, 8, device="meta"))


def test_hardware_computes_no_groups_of_samples():
    class Other(Backend):
        compress = decompress = None

    with pytest.raises(UserError, match="groups within samples are computed by backend 'torch', 'native' or 'triton'"):
        actcodec.codec("actnn-sample", backend=Other())

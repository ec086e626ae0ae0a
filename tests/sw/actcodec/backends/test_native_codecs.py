"""Every codec with backend native gives the bytes and the values of the torch version, for any tensor."""

import actcodec
import pytest
import torch
from actcodec.backends.native import statistics
from actcodec.backends.native.host import host
from actcodec.codecs import Backend, codec_options
from actcodec.golden import block_statistics, channel_statistics
from backend_cases import FLOATS, KINDS, OPTIONS, parts, refusal, same_bits, settings_of, shapes
from cdu_spec import UserError
from cdu_spec.mx import MX_FORMATS, NVFP4
from example_values import values_of
from hypothesis import given, settings
from hypothesis import strategies as st

KERNELS = [
    *("sfpr", "sfpr+zvc", "jpeg-act", "jpeg-gmc", "jpeg-base", "brc", "division", "actnn", "actnn-sample", "sparse-sample"),
    *("blpa", "autoquant", "autoquantz", "acgc-quant", "acgc-quantz", "cusz", "blpa-float", "blpa-coded", "division-float"),
    *("actnn-float", "int8-rows", *MX_FORMATS, NVFP4),
]
#: Codecs whose forms raise for NaN and infinity, whatever an option says.
STRICT = [name for name in sorted(OPTIONS) if "nonfinite" not in codec_options(name)]
CHOSEN = settings_of(KERNELS * 3 + sorted(OPTIONS))
#: Options for equal bytes on all backends, where the default depends on them.
SAME_BYTES = {"blpa-coded": {"coder": "contexts"}}


@settings(max_examples=500)
@given(CHOSEN, shapes, st.sampled_from(FLOATS), st.sampled_from(KINDS), st.integers(0, 2**31))
def test_same_bytes_and_same_values(chosen, shape, dtype, kind, seed):
    name, options = chosen
    golden, native = actcodec.codec(name, **options), actcodec.codec(name, backend="native", **options)
    x = values_of(kind, shape, dtype, seed)
    if not golden.takes(shape):
        return
    before = x.clone()
    if kind == "max":  # beyond bfloat16
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
    if name in STRICT:
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
    golden = actcodec.codec(name, **SAME_BYTES.get(name, {}))
    expected = golden.compress(x)
    torch.set_num_threads(3)
    native = actcodec.codec(name, backend="native", **SAME_BYTES.get(name, {}))
    found = native.compress(x)
    assert parts(found) == parts(expected)
    assert same_bits(native.decompress(found), golden.decompress(expected))


@pytest.mark.parametrize("name", KERNELS)
def test_strided_input(name):
    x = torch.randn(16, 24, 8, 6).permute(3, 2, 1, 0)
    expected = actcodec.codec(name, **SAME_BYTES.get(name, {})).compress(x)
    found = actcodec.codec(name, backend="native", **SAME_BYTES.get(name, {})).compress(x)
    assert parts(found) == parts(expected)


@settings(max_examples=100)
@given(
    st.tuples(*[st.integers(1, 5)] * 2, st.integers(1, 20), st.integers(7, 20)), st.sampled_from(FLOATS), st.integers(0, 999)
)
def test_residuals_and_maxima(shape, dtype, seed):
    """Check maxima against the definition, and residuals, whose means are rounded, within the error of float32 sums."""
    from cdu_spec.matrix_view import MatrixView
    from cdu_spec.modes import Mode

    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
    view, k = MatrixView.of(shape, Mode.DIVISION), torch.rand(shape[1]) + 0.5
    channels = x.reshape(shape[0], shape[1], -1)
    assert torch.equal(statistics.channel_maxima(channels), x.double().abs().amax((0, 2, 3)))
    found = statistics.residual_maxima(x, view, k)
    assert torch.equal(found, block_statistics.residual_maxima(x, view, k))
    n, c, h, w = shape
    if h % 8 == 0 and w % 8 == 0:
        tiled = (x.double() * k.double()[:, None, None]).view(n, c, h // 8, 8, w // 8, 8)
        exact = (tiled - tiled.mean((3, 5), keepdim=True)).abs().amax((0, 2, 3, 4, 5))
        torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-6)


@settings(max_examples=100)
@given(
    st.sampled_from(["acgc-quant", "acgc-quantz", "autoquant", "autoquantz", "cusz", "acgc-sfpr+zvc"]),
    st.tuples(*[st.integers(1, 4)] * 2, st.integers(1, 20), st.integers(1, 20)),
    st.sampled_from(FLOATS),
    st.sampled_from(["normal", "relu", "one channel zero"]),
    st.floats(1e-4, 10),
    st.booleans(),
)
def test_within_errors(name, shape, dtype, kind, part, by_channel):
    x = values_of(kind, shape, dtype, 7)
    error = torch.full((shape[1] if by_channel else 1,), part) * torch.linspace(1, 2, shape[1] if by_channel else 1)
    golden, native = actcodec.codec(name), actcodec.codec(name, backend="native")
    expected, found = golden.compress_within(x, error), native.compress_within(x, error)
    assert parts(found) == parts(expected)
    assert same_bits(native.decompress(found), golden.decompress(expected))


@settings(max_examples=100)
@given(
    st.tuples(st.integers(1, 5), st.integers(1, 9), st.integers(1, 3000)),
    st.sampled_from(FLOATS),
    st.sampled_from([0.0, 1.0, 1e3]),
    st.integers(0, 999),
)
def test_statistics_of_channels(shape, dtype, middle, seed):
    """Check statistics against the golden model, to the last bit, and against the definition, within their precision."""
    x = (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) + middle).to(dtype)
    edges = statistics.channel_edges(x)
    exact = x.double()
    assert all(map(torch.equal, edges, channel_statistics.channel_edges(x)))
    assert all(map(torch.equal, edges, (exact.amin((0, 2)), exact.amax((0, 2)))))
    moments = statistics.channel_moments(x, *edges)
    assert all(map(torch.equal, moments, channel_statistics.channel_moments(x, *edges)))
    torch.testing.assert_close(moments[0], exact.mean((0, 2)), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(moments[1], exact.var((0, 2), correction=0), rtol=1e-6, atol=1e-8)
    steps = torch.rand(shape[1], dtype=torch.float64) + 1e-3
    errors = statistics.squared_errors(x, steps)
    assert torch.equal(errors, channel_statistics.squared_errors(x, steps))
    quotient = exact / steps[:, None]
    wanted = (quotient - quotient.round()).square().sum((0, 2))
    assert ((errors.double() * 2.0**-32 - wanted) >= -1e-12).all()
    assert ((errors.double() * 2.0**-32 - wanted) <= 2.0**-32 * shape[0] * shape[2] + 1e-12).all()


def test_integers_of_every_size():
    """Check outliers, values of all code widths and values that fit none, in samples that do not begin at a byte."""
    x = torch.randn(5, 3, 7, 9) * torch.logspace(-3, 5, 7)[:, None]
    x[2, 1, 0, 3] = 1e30
    for options in ({"bound": 1e-2, "mode": "abs", "dimensions": dimensions} for dimensions in (0, 1, 2, 3)):
        golden, native = (actcodec.codec("cusz", **options, backend=name) for name in ("torch", "native"))
        expected, found = golden.compress(x), native.compress(x)
        assert found.places.tolist() == [2 * 189 + 63 + 3]
        assert all(stream.numel() for stream in (*found.differences.codes, *found.differences.planes))
        assert parts(found) == parts(expected)
        assert same_bits(native.decompress(found), golden.decompress(expected))


@pytest.mark.parametrize("bits", [3.5, 10])
def test_coded_copies_of_many_chunks(bits):
    """Check 16,777,216 values and a few more: many chunks, the last one not full."""
    x = torch.randn(4099, 16, 16, 16, generator=torch.Generator().manual_seed(2))
    x = (x + x.roll(1, 3)).relu() if bits < 4 else x
    contexts, deflate = (
        actcodec.codec("blpa-coded", bits=bits, coder=coder, backend="native") for coder in ("contexts", "deflate")
    )
    assert same_bits(contexts.decompress(contexts.compress(x)), deflate.decompress(deflate.compress(x)))


@pytest.mark.parametrize("name", ["sfpr", "actnn-sample", "division", "blpa-float", "cusz", "acgc-quant", "division-float"])
def test_tensors_without_values_are_refused(name):
    with pytest.raises(UserError, match="cannot compress tensors on the device meta: give a tensor that has values"):
        actcodec.codec(name, backend="native").compress(torch.empty(1, 1, 8, 8, device="meta"))


def test_other_devices_are_refused():
    with pytest.raises(UserError, match="backend 'native' computes on the CPU, and a tensor is on meta: use backend 'torch'"):
        host(torch.empty(1, device="meta"))


def test_hardware_computes_no_groups_of_samples():
    class Other(Backend):
        compress = decompress = None

    with pytest.raises(UserError, match="groups within samples are computed by backend 'torch', 'native' or 'triton'"):
        actcodec.codec("actnn-sample", backend=Other())

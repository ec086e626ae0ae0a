"""Promises of every codec: shape, dtype, values left unchanged, bounded error, clear refusals."""

import actcodec
import pytest
import torch
from actcodec.codecs import CODEC_NAMES, codec_options
from actcodec.golden.sfpr import NonFiniteError
from cdu_spec import UserError, dqt
from cdu_spec.modes import AFFINE_MODES
from cdu_spec.mx import NVFP4
from cdu_spec.sfpr import SFPR_RECIPROCAL_BITS
from example_values import values_of
from hypothesis import given, settings
from hypothesis import strategies as st

FLOATS = [torch.float32, torch.bfloat16, torch.float16]
CODED = [name for name in CODEC_NAMES if name != "none"]
FLOAT_FORMS = [
    "division-float",
    "actnn-float",
    "actnn-sample",
    "sparse-sample",
    "blpa-float",
    "blpa-coded",
    "feature-coded",
    "feature-klt",
    "acgc-quant",
    "acgc-quantz",
]
#: Codecs whose bytes test_baseline_codecs.py tests.
BASELINES = ["gist", "gist-csr", "cdma", "vdnn", "bf16", "int8-rows"]
AFFINE = [mode.label for mode in AFFINE_MODES]
#: Codecs without a bitstream.
NO_STREAM = [*FLOAT_FORMS, *BASELINES, NVFP4, "cusz"]
STREAMS = [name for name in CODED if name not in NO_STREAM]
LOSSY = [name for name in CODED if name not in ("bypass", "cdma", "vdnn")]
OTHER = {
    "jpeg-act": "use sfpr",
    "jpeg-gmc": "use sfpr",
    "jpeg-base": "use sfpr",
    "acgc-jpeg": "use sfpr",
    "division": "use actnn",
    "division-float": "use actnn-float",
}
shapes = st.one_of(
    st.just((1, 1, 1, 1)),
    st.lists(st.integers(1, 6), min_size=1, max_size=5).map(tuple),
    st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 17), st.integers(1, 70)),
)
kinds = st.sampled_from(["normal", "relu", "zero", "negative zero", "max", "subnormal", "huge range", "one channel zero"])


def channel_maxima(x):
    """Return the largest magnitude per scale, broadcastable to x."""
    x = x.double().abs()
    if x.ndim >= 3 and x[0, 0].numel() >= 8:
        return x.amax([0, *range(2, x.ndim)], keepdim=True)
    return x.amax()


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(CODEC_NAMES), shapes, st.sampled_from(FLOATS), kinds, st.integers(0, 2**31))
def test_conformance(name, shape, dtype, kind, seed):
    codec = actcodec.codec(name)
    x = values_of(kind, shape, dtype, seed)
    if not codec.takes(shape):
        with pytest.raises(UserError, match=OTHER[name]):
            codec.compress(x)
        return
    before = x.clone()
    if name in FLOAT_FORMS and kind == "max":
        return  # values may exceed the 16-bit formats; test_float_forms.py tests those
    packed = codec.compress(x)
    y = codec.decompress(packed)
    assert torch.equal(x.view(torch.uint8), before.view(torch.uint8))
    assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)
    # Codes reach slightly beyond the greatest value, which here is the greatest number of float16.
    assert not y.isnan().any() if kind == "max" and name in (*AFFINE, *FLOAT_FORMS, "acgc-jpeg") else y.isfinite().all()
    if name in NO_STREAM:
        return
    if name == "none":
        assert torch.equal(y.view(torch.uint8), x.view(torch.uint8))
        assert packed.nbytes == x.numel() * x.element_size()
        return
    assert len(packed.to_bytes()) == packed.nbytes
    assert torch.equal(actcodec.from_bytes(packed.to_bytes()).decompress(), y)
    if name == "brc":
        assert torch.equal(y, (x > 0).to(dtype))
    elif name == "bypass":
        assert torch.equal(y.view(torch.uint8), x.view(torch.uint8))
        assert packed.payload.numel() == -(-x.numel() // 8) * 8 * x.element_size()
    elif name.startswith("sfpr") and kind not in ("subnormal", "max"):
        # The error is half a step of 1/128 of the maximum, up to saturation at 127/128, plus the rounding of the scale to 8
        # bits, of its reciprocal to 12, and of the dtype.
        largest = channel_maxima(x)
        error = (y.double() - x.double()).abs()
        inside = x.double().abs() < largest * 126 / 128
        eps = torch.finfo(dtype).eps + 2.0**-SFPR_RECIPROCAL_BITS
        rounding = eps * (x.double().abs() + largest / 256) + torch.finfo(dtype).smallest_normal
        assert (error <= largest / 128 * 0.505 + rounding)[inside].all()
        assert (error <= largest * 0.013 + rounding).all()
    if kind in ("zero", "negative zero"):
        # Division has no code for zero: half the smallest step takes its place.
        assert y.double().abs().max() < 2.0**-100 if name == "division" else not y.any()


@pytest.mark.parametrize("name", STREAMS)
def test_layouts_and_gradients_do_not_matter(name):
    codec = actcodec.codec(name)
    x = torch.randn(2, 8, 9, 11, generator=torch.Generator().manual_seed(3))
    stream = codec.compress(x).to_bytes()
    same = (
        x.to(memory_format=torch.channels_last),
        x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
        x.clone().requires_grad_(),
    )
    for other in same:
        codec.restart(0)
        assert codec.compress(other).to_bytes() == stream
    wide = torch.randn(2, 8, 9, 1).expand(2, 8, 9, 11)
    assert codec.decompress(codec.compress(wide)).shape == wide.shape


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", STREAMS)
def test_cuda_gives_the_same_bytes(name, dtype):
    x = torch.randn(5, 16, 17, 19, generator=torch.Generator().manual_seed(3)).relu().to(dtype)
    codec = actcodec.codec(name)
    there = codec.compress(x.cuda())
    codec.restart(0)
    assert there.payload.is_cuda
    assert there.to_bytes() == codec.compress(x).to_bytes()
    assert torch.equal(codec.decompress(there).cpu(), actcodec.decompress(actcodec.from_bytes(there.to_bytes())))


@pytest.mark.parametrize("name", CODED)
def test_decoding_does_not_depend_on_the_codec(name):
    x = torch.randn(1, 4, 8, 16, generator=torch.Generator().manual_seed(3))
    packed = actcodec.codec(name).compress(x)
    other = actcodec.codec("jpeg-act", dqt="image10", const_bits=9, pass1_bits=0, scale_bits=24, S=3.0)
    assert torch.equal(other.decompress(packed), actcodec.decompress(packed))


def test_schedule_switches_at_its_epoch_and_old_streams_stay_readable():
    x = torch.randn(1, 4, 8, 16, generator=torch.Generator().manual_seed(3))
    schedule = actcodec.codec("jpeg-act", dqt="optLH")
    early = schedule.compress(x)
    assert early.to_bytes() == actcodec.codec("jpeg-act", dqt="optL").compress(x).to_bytes()
    schedule.set_epoch(dqt.LH_SWITCH_EPOCH - 1)
    assert schedule.compress(x).shifts == early.shifts
    schedule.set_epoch(dqt.LH_SWITCH_EPOCH)
    assert schedule.compress(x).to_bytes() == actcodec.codec("jpeg-act", dqt="optH").compress(x).to_bytes()
    assert torch.equal(schedule.decompress(early), actcodec.codec("jpeg-act").decompress(early))


def test_optl_and_optsl_are_one_for_the_shift_quantiser():
    x = torch.randn(1, 4, 8, 16, generator=torch.Generator().manual_seed(3))
    for published, shift_form in dqt.PUBLISHED_SHIFT_FORM.items():
        streams = [actcodec.codec("jpeg-act", dqt=name).compress(x).to_bytes() for name in (published, shift_form)]
        assert streams[0] == streams[1]


@pytest.mark.parametrize(("rounding", "bound"), [("half_away", 0.03), ("trunc", 0.05)])
def test_smooth_maps_compress_and_come_back_closely(rounding, bound):
    grid = torch.linspace(0, 3, 32)
    x = (grid[:, None] + torch.sin(grid)[None]).expand(4, 8, 32, 32)
    packed = actcodec.codec("jpeg-act", rounding=rounding).compress(x)
    assert x.numel() * 4 / packed.nbytes > 15
    assert (packed.decompress() - x).abs().max() < 0.15 * x.max()  # saturation above 127/144 of the maximum
    assert (packed.decompress() - x)[x < 0.85 * x.max()].abs().max() < bound * x.max()


def test_best_ratio_is_32():
    packed = actcodec.codec("jpeg-act").compress(torch.zeros(16, 1, 256, 256))
    assert packed.payload.numel() * 32 == 16 * 256 * 256 * 4


@pytest.mark.parametrize("name", LOSSY)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_nonfinite(name, bad):
    x = torch.ones(2, 3, 8, 8)
    x[1, 2, 3, 4] = bad
    with pytest.raises(NonFiniteError, match=r"1 of 384 values are NaN or infinite \(channel 2 has 1\)"):
        actcodec.codec(name).compress(x)
    if "nonfinite" not in codec_options(name):
        return
    y = actcodec.codec(name, nonfinite="saturate").compress(x).decompress()
    assert y.isfinite().all()
    if name.startswith("sfpr"):
        expected = {"inf": 1.0, "-inf": -1.0}.get(str(bad), 0.0)
        assert y[1, 2, 3, 4].sign() == expected
    if name == "brc":
        assert y[1, 2, 3, 4] == (bad > 0)


@pytest.mark.parametrize("name", ["sfpr", "sfpr+zvc", "jpeg-act", "jpeg-base", "division", "actnn", "blpa", "autoquantz"])
def test_a_refusal_counts_the_values_and_channels_of_the_tensor(name):
    """Check maps of so few values that padding completes them, and rows that several channels share."""
    for shape in ((1, 1, 1, 1), (2, 3, 2, 2)):
        x = torch.zeros(shape)
        x[0, -1, 0, 0] = torch.nan
        with pytest.raises(NonFiniteError, match=rf"^1 of {x.numel()} values .* \(channel {shape[1] - 1} has 1\)"):
            actcodec.codec(name).compress(x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_bypass_keeps_every_bit(dtype):
    size = dtype.itemsize
    patterns = torch.randint(0, 256, (3, 5, 7, 11 * size), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    x = patterns.view(dtype)
    x[0, 0, 0, :3] = torch.tensor([float("nan"), float("inf"), -float("inf")])
    packed = actcodec.codec("bypass").compress(x)
    for y in (packed.decompress(), actcodec.from_bytes(packed.to_bytes()).decompress()):
        assert torch.equal(y.view(torch.uint8), patterns)
    packed.decompress().zero_()
    x.zero_()
    assert packed.decompress().isnan().any()


@pytest.mark.parametrize("name", CODEC_NAMES)
def test_codec_takes_each_of_its_options(name):
    actcodec.codec(name, **codec_options(name))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: actcodec.codec("jpg"),
            "unknown codec 'jpg': use jpeg-act, jpeg-gmc, sfpr, sfpr\\+zvc, brc, bypass, division, .*, none",
        ),
        (lambda: actcodec.codec("sfpr", dqt="optL"), "codec 'sfpr' has no option 'dqt': use S, scale_bits"),
        (lambda: actcodec.codec("none", S=1.0), "codec 'none' has no option 'S': it has none"),
        (lambda: actcodec.codec("jpeg-act", dqt="optX"), "unknown quantisation table 'optX': did you mean optL"),
        (lambda: actcodec.codec("jpeg-act", dqt="image0"), "unknown quantisation table 'image0'"),
        (lambda: actcodec.codec("jpeg-act", dqt=3), "unknown quantisation table '3'"),
        (lambda: actcodec.codec("jpeg-act", S=0), "S = 0"),
        (lambda: actcodec.codec("sfpr", S="1"), "S = '1'"),
        (lambda: actcodec.codec("sfpr", scale_bits=9), "scale_bits = 9 is not allowed: use 24, 11, 8"),
        (lambda: actcodec.codec("jpeg-act", const_bits=14), "const_bits = 14"),
        (lambda: actcodec.codec("jpeg-act", rounding="up"), "rounding = 'up'"),
        (lambda: actcodec.codec("brc", nonfinite="ok"), "nonfinite = 'ok'"),
        (lambda: actcodec.codec("brc", backend="fpga"), "unknown backend 'fpga'"),
        (lambda: actcodec.codec("bypass", nonfinite="raise"), "codec 'bypass' has no option 'nonfinite': use backend"),
        (lambda: actcodec.codec("none").compress(torch.ones(1)).to_bytes(), "codec 'none' has no bitstream"),
    ],
)
def test_bad_options(call, message):
    with pytest.raises(UserError, match=message):
        call()


@pytest.mark.parametrize("name", CODED)
@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.ones(1, 1, 8, 8, dtype=torch.float64), "dtype float64: use float32, bfloat16 or float16"),
        (torch.ones(1, 1, 8, 8, dtype=torch.int8), "dtype int8"),
        (torch.ones(0, 1, 8, 8), r"empty tensor of shape \(0, 1, 8, 8\)"),
        (torch.tensor(1.0), "rank 0"),
        (torch.ones([1] * 8 + [8]), "rank 9"),
        ([1.0], "cannot compress a list"),
    ],
)
def test_bad_tensors(name, x, message):
    with pytest.raises(UserError, match=message):
        actcodec.codec(name).compress(x)


BLOCK_CODECS = ("jpeg-act", "jpeg-base", "division")


@pytest.mark.parametrize("name", BLOCK_CODECS)
@pytest.mark.parametrize("shape", [(8,), (8, 8), (1, 8, 8), (1, 1, 1, 8, 8)])
def test_codecs_of_blocks_take_four_axes(name, shape):
    codec = actcodec.codec(name)
    assert not codec.takes(shape)
    assert not codec.fits(shape)
    with pytest.raises(UserError, match=rf"{name} does not take .*: use (sfpr|actnn), or shape \(N, C, H, W\)"):
        codec.compress(torch.ones(shape))
    assert actcodec.codec("sfpr").takes(shape)


@pytest.mark.parametrize("backend", ["torch", "native"])
@pytest.mark.parametrize("name", BLOCK_CODECS)
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (1, 1, 1, 9), (9, 1, 1, 1), (1, 8, 8, 6), (1, 6, 1, 64), (2, 3, 2, 2)])
def test_codecs_of_blocks_take_small_maps_that_policies_leave_to_others(name, shape, backend):
    codec = actcodec.codec(name, backend=backend)
    assert codec.takes(shape)
    assert not codec.fits(shape)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    y = actcodec.from_bytes(codec.compress(x).to_bytes()).decompress(backend)
    assert y.shape == x.shape
    assert y.isfinite().all()
    # A constant map is its own mean, and the padding is not in it.
    if shape[3] >= 6:
        constant = torch.full(shape, 3.0)
        assert (codec.decompress(codec.compress(constant)) - constant).abs().max() < 1

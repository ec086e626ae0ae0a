"""Scales by two kernels are the golden model's, payloads remember where blocks begin, launches and questions are few."""

import actcodec
import pytest
import torch
from actcodec.codecs.centring import Centres, compress_centred, decompress_centred
from actcodec.golden import sfpr
from actcodec.study.launches import LaunchCounter
from backend_cases import FLOATS, same_bits
from cdu_spec.modes import Coder
from example_values import values_of
from triton_here import DEVICE, needs_kernels

pytestmark = needs_kernels
#: Maps of one piece and of several, columns of one piece and of several, and one row.
SHAPES = [(1, 1, 5), (3, 5, 1), (300, 5, 1), (7, 1100, 1), (2, 3, 4096), (2, 3, 4097), (1, 1, 9000), (4, 70, 50)]


@pytest.mark.parametrize(
    ("shape", "factor"), [*((shape, 1.0) for shape in SHAPES), *(((3, 5, 70), f) for f in (0.0, 1e-40, 1e-6, 3e4, 1e37))]
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_scales_are_the_golden_models(shape, dtype, factor):
    from actcodec.backends.triton.scales import scales

    x = (torch.randn(shape, generator=torch.Generator().manual_seed(0)) * factor).clamp(-3e38, 3e38).to(dtype)
    x[:, 0] = 0
    for target, scale_bits in ((1.125, 8), (1.0, 24), (3.7, 11)):
        found = scales(x.to(DEVICE), target, scale_bits)
        assert found.hold(near_zero=False) == bool(x.isfinite().all())
        if x.isfinite().all():
            k, r = sfpr.scales(x, target, scale_bits)
            assert same_bits(found.k.cpu(), k)
            assert same_bits(found.r.cpu(), r)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ratio", [0.0, 3.0, 7.9, 8.1, 1e4])
def test_no_channel_far_from_zero_is_overlooked(shape, ratio):
    from actcodec.backends.triton.scales import near_zero

    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    x[:, -1] += ratio
    certain = near_zero(x.to(DEVICE))
    assert not certain or Centres._of_maps(x, shape) is None
    assert certain or ratio


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 3e38, 1e-30, 1.0])
def test_nothing_is_certain_of_channels_that_may_be_far(value):
    from actcodec.backends.triton.scales import near_zero

    x = torch.zeros(2, 3, 40, device=DEVICE)
    assert near_zero(x)
    x[:, 1] = value
    assert not near_zero(x)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *((name, (1, 1, 8, 8)) for name in ("sfpr+zvc", "jpeg-act", "jpeg-gmc")),
        *((name, (2, 3, 24, 40)) for name in ("jpeg-act", "jpeg-gmc")),
        pytest.param("sfpr+zvc", (1, 1100 * 64), marks=pytest.mark.campaign),
    ],
)
def test_a_payload_remembers_its_blocks_until_it_is_changed(name, shape, monkeypatch):
    """Payloads have one block, some, and more than a program follows; changed in place they are walked through anew."""
    from actcodec.backends.triton import block_starts

    codec = actcodec.codec(name, backend="triton")
    x = values_of("relu", shape, torch.float32, 0).to(DEVICE)
    x.view(-1)[1 << 13 :] = 0  # the interpreter is slow
    packed = codec.compress(x)
    expected = codec.decompress(packed)
    walked = []
    walk = block_starts._walked
    monkeypatch.setattr(block_starts, "_walked", lambda *arguments: walked.append(1) or walk(*arguments))
    assert same_bits(codec.decompress(packed), expected)
    assert not walked
    assert block_starts.block_starts(packed.payload, len(packed.payload), Coder.ZVC) is None, "as many blocks as bytes"
    walked.clear()
    packed.payload.add_(0)
    assert same_bits(codec.decompress(packed), expected)
    assert walked
    with torch.inference_mode():
        packed = codec.compress(x)
        assert same_bits(codec.decompress(packed), expected)


@pytest.mark.parametrize(
    ("name", "packing", "unpacking", "questions"),
    [("sfpr", 3, 1, 1), ("sfpr+zvc", 9, 4, 2), ("jpeg-act", 8, 4, 2), ("jpeg-gmc", 8, 4, 2), ("actnn-sample", 8, 2, 2)],
)
def test_launches_and_questions_are_few(name, packing, unpacking, questions):
    codec = actcodec.codec(name, backend="triton")
    x = torch.randn(4, 8, 16, 16, generator=torch.Generator().manual_seed(2)).to(DEVICE)
    decompress_centred(compress_centred(x, codec), codec)  # makes tables
    with LaunchCounter() as pack:
        packed = compress_centred(x, codec)
    with LaunchCounter(forbid=True) as unpack:
        decompress_centred(packed, codec)
    if DEVICE == "cpu":  # compiled kernels are not counted
        assert (pack.counted.launches, unpack.counted.launches) == (packing, unpacking)
    assert pack.counted.questions.total() == questions

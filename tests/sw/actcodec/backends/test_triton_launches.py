"""Scales by kernels are the golden model's, payloads remember where blocks begin, launches and questions are few."""

from dataclasses import replace
from functools import partial

import actcodec
import pytest
import torch
from actcodec.backends.job import compression_job
from actcodec.codecs.centring import Centres, compress_centred, decompress_centred
from actcodec.golden import gmc as golden_gmc
from actcodec.golden import sfpr
from actcodec.golden import zvc as golden_zvc
from actcodec.golden.block_starts import block_starts, mask_chain
from actcodec.study.launches import LaunchCounter
from backend_cases import FLOATS, same_bits
from cdu_spec.bitstream import BitstreamError
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Coder, Dtype, Mode
from example_values import values_of
from guarded_tensors import guarded_tensors
from triton_here import DEVICE, needs_kernels

pytestmark = needs_kernels
#: Maps of one piece and of several, columns of one piece and of several, and one row.
SHAPES = [(1, 1, 5), (3, 5, 1), (300, 5, 1), (7, 1100, 1), (2, 3, 4096), (2, 3, 4097), (1, 1, 9000), (4, 70, 50)]


@pytest.mark.parametrize(
    ("shape", "factor"), [*((shape, 1.0) for shape in SHAPES), *(((3, 5, 70), f) for f in (0.0, 1e-40, 1e-6, 3e4, 1e37))]
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_scales_are_the_golden_models(shape, dtype, factor):
    from actcodec.backends.triton.scales import size_of, statistics

    x = (torch.randn(shape, generator=torch.Generator().manual_seed(0)) * factor).clamp(-3e38, 3e38).to(dtype)
    x[:, 0] = 0
    for target, scale_bits in ((1.125, 8), (1.0, 24), (3.7, 11)):
        found = statistics(x.to(DEVICE), target, scale_bits)
        assert (size_of(found.marks.tolist(), near_zero=False) is not None) == bool(x.isfinite().all())
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
    from actcodec.backends.triton import block_starts as kernels

    codec = actcodec.codec(name, backend="triton")
    x = values_of("relu", shape, torch.float32, 0).to(DEVICE)
    x.view(-1)[1 << 13 :] = 0  # the interpreter is slow
    packed = codec.compress(x)
    expected = codec.decompress(packed)
    walked = []
    walk = kernels._walked
    monkeypatch.setattr(kernels, "_walked", lambda *arguments: walked.append(1) or walk(*arguments))
    assert same_bits(codec.decompress(packed), expected)
    assert not walked
    assert kernels.unit_offsets(packed.payload, len(packed.payload), Coder.ZVC) is None, "as many blocks as bytes"
    walked.clear()
    packed.payload.add_(0)
    assert same_bits(codec.decompress(packed), expected)
    assert walked
    with torch.inference_mode():
        packed = codec.compress(x)
        assert same_bits(codec.decompress(packed), expected)


@pytest.mark.parametrize(("name", "options"), [("division", {}), ("actnn", {"bits": 4})])
def test_heads_are_checked_unless_they_are_known(name, options):
    codec = actcodec.codec(name, backend="triton", **options)
    packed = codec.compress(torch.randn(1, 2, 16, 16, generator=torch.Generator().manual_seed(5)).to(DEVICE))
    with LaunchCounter(forbid=True):
        codec.decompress(packed)
    packed.payload[2] = 1  # a mantissa without its leading bit, and an exponent that goes with greater ones
    packed.payload[3] = 200
    with pytest.raises(BitstreamError):
        codec.decompress(packed)


@pytest.mark.parametrize("bits", [24, 11, 8])
@pytest.mark.parametrize("down", [False, True])
def test_rounded_scales_are_the_golden_models(bits, down):
    """Check ties of both kinds, numbers beside them, and numbers out of range."""
    from actcodec.backends.triton.backend import TritonBackend

    whole = torch.arange(1 << bits - 1, (1 << bits - 1) + 300, dtype=torch.float64)
    near = torch.cat([whole + part for part in (0, 0.5, 0.5 - 2.0**-20, 0.5 + 2.0**-20, 1 - 2.0**-20)])
    exact = torch.cat([near * 2.0**power for power in (-160, -137, -24, 0, 97, 150)] + [torch.tensor([torch.inf, 5e-324])])
    run = TritonBackend().run
    for limit in (111, 120):
        rule = {"down": down, "exponent_limit": limit}
        found = run(sfpr.rounded_scales, exact.to(DEVICE), bits, **rule)
        assert same_bits(found.cpu(), sfpr.rounded_scales(exact, bits, **rule))
    k = sfpr.rounded_scales(exact, 24)
    assert same_bits(run(sfpr.reciprocals, k.to(DEVICE)).cpu(), sfpr.reciprocals(k))


#: Coefficients whose blocks are the longest, the shortest, or neither.
_EXTREMES = {"full": [-128, 127, -127, 126], "zeros": [0], "sparse": [0, 0, 0, 1, 0, -128, 0]}


@pytest.mark.parametrize("extreme", _EXTREMES)
@pytest.mark.parametrize("blocks", [1, 16, 17, 65, 200])
@pytest.mark.parametrize("coder", list(Coder))
def test_payloads_and_offsets_are_the_golden_models(coder, blocks, extreme, monkeypatch):
    """Sums have one group of units, a part of it, and several; payloads of ZVC have the greatest size and the least."""
    from actcodec.backends.triton import lengths, zvc
    from actcodec.backends.triton import sfpr as kernels
    from actcodec.backends.triton.block_starts import UNIT_BLOCKS, unit_offsets
    from triton_gmc import decoded, encoded

    monkeypatch.setattr(lengths, "_LEAST_GROUP", 4)
    pattern = torch.tensor(_EXTREMES[extreme], dtype=torch.int8)
    q = pattern.repeat(-(-blocks * 64 // len(pattern)))[: blocks * 64]
    there = q.to(DEVICE)
    sums = lengths.Lengths.of(coder, blocks, there.device, None)
    view = MatrixView(1, blocks * 64, 1, 1, Mode.SFPR_ZVC)
    job = compression_job(view, Dtype.FP32, torch.ones(1))
    if coder is Coder.GMC:
        expected, chain = golden_gmc.encode(q.view(-1, 64))[0], golden_gmc.CHAIN
        payload = encoded(there.view(-1, 64), sums)
    else:
        expected, chain = golden_zvc.encode(q.view(-1, 64)), mask_chain()
        found = kernels.encode(there.to(torch.float32), view, job, sums)
        payload = lengths.Measured(sums, partial(zvc.pack, found, sums)).payload()
    assert torch.equal(payload.cpu(), expected)
    least, most = coder.block_bounds
    assert extreme != "full" or coder is not Coder.ZVC or len(payload) == blocks * most
    assert extreme != "zeros" or len(payload) == blocks * least
    offsets = unit_offsets(payload, blocks, coder)
    assert offsets.dtype == torch.int32, "they are remembered"
    assert torch.equal(offsets.cpu().to(torch.int64), block_starts(expected, blocks, chain)[:: UNIT_BLOCKS.value])
    if coder is Coder.GMC:
        assert torch.equal(decoded(payload, offsets, blocks).cpu(), q.view(-1, 64))
    else:
        y = torch.empty(1, blocks * 64, device=DEVICE)
        kernels.decode(payload, view, job, y, offsets)
        assert torch.equal(y.cpu().view(-1), q.to(torch.float32))


@pytest.mark.parametrize("name", ["sfpr+zvc", "jpeg-act", "jpeg-gmc"])
@pytest.mark.parametrize("shape", [(1, 1, 64, 64), (2, 2, 40, 64)])
def test_sums_begin_at_zero(name, shape, monkeypatch):
    """Memory is not zero before, several tensors share a cleared piece, and sums have several groups."""
    from actcodec.backends.triton import lengths, zeros

    monkeypatch.setattr(lengths, "_LEAST_GROUP", 4)
    monkeypatch.setattr(zeros, "_PIECE", 64)
    monkeypatch.setattr(zeros, "_left", {})
    for seed in range(3):
        x = values_of("relu", shape, torch.float32, seed)
        with guarded_tensors():
            found = actcodec.codec(name, backend="triton").compress_near_zero(x.to(DEVICE))
        assert torch.equal(found.payload.cpu(), actcodec.codec(name).compress(x).payload)


def test_cleared_memory_is_given_once(monkeypatch):
    from actcodec.backends.triton import zeros

    monkeypatch.setattr(zeros, "_PIECE", 10)
    monkeypatch.setattr(zeros, "_left", {})
    device = torch.device(DEVICE)
    parts = [zeros.zeros(words, device) for words in (4, 4, 4, 11)]
    assert [part.numel() for part in parts] == [4, 4, 4, 11]
    for number, part in enumerate(parts, 1):
        assert not part.any()
        part += number
    assert [set(part.tolist()) for part in parts] == [{1}, {2}, {3}, {4}]
    with torch.inference_mode():
        zeros.zeros(9, device)
    assert not zeros.zeros(9, device).is_inference(), "memory of an inference serves a training step"


def test_offsets_beyond_32_bits_are_not_remembered(monkeypatch):
    from actcodec.backends.triton import block_starts as kernels
    from actcodec.backends.triton.known_payloads import recalled

    monkeypatch.setattr(kernels, "_MOST_BYTES", 1 << 10)
    codec = actcodec.codec("jpeg-act", backend="triton")
    packed = codec.compress(torch.randn(1, 1, 32, 64, generator=torch.Generator().manual_seed(0)).to(DEVICE))
    assert len(packed.payload) >= 1 << 10
    assert recalled(packed.payload, (8 * 4, Coder.ZVC)) is None
    on_host = replace(packed, payload=packed.payload.cpu(), reciprocals=packed.reciprocals.cpu())
    assert same_bits(codec.decompress(packed).cpu(), actcodec.codec("jpeg-act").decompress(on_host))


@pytest.mark.parametrize("name", ["sfpr", "actnn"])
@pytest.mark.parametrize("shape", [(16, 4, 3), (2, 3, 1000)])
def test_channels_that_share_a_scale_have_marks_of_their_own(name, shape):
    codec, x = actcodec.codec(name, backend="triton"), torch.randn(shape, generator=torch.Generator().manual_seed(6))
    at_once = codec.compress_near_zero(x.to(DEVICE))
    assert torch.equal(at_once.payload.cpu(), actcodec.codec(name).compress(x).payload)
    x[:, 2] += 100
    assert codec.compress_near_zero(x.to(DEVICE)) is None


@pytest.mark.parametrize(
    ("name", "packing", "unpacking", "questions"),
    [
        ("sfpr", 2, 1, 0),
        ("sfpr+zvc", 3, 1, 1),
        ("jpeg-act", 3, 1, 1),
        ("jpeg-gmc", 3, 1, 1),
        ("int8-rows", 2, 1, 0),
        ("actnn-sample", 2, 1, 0),
        ("division", 2, 1, 0),
        ("actnn", 2, 1, 0),
        *((name, 2, 1, 0) for name in ("mxint8", "mxfp6-e3m2", "nvfp4")),
        ("brc", 2, 1, 1),
        ("blpa", 30, 1, 2),
    ],
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

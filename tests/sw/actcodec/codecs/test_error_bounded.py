"""Codecs that keep an error: its size for any values, no more bits than needed, bytes decoded by hand."""

from math import ceil, log2

import actcodec
import pytest
import torch
from actcodec.codecs.acgc.error_bounded import along_channels, checked_error, default_error
from actcodec.codecs.acgc.fixed_point import MOST_BITS, AcgcQuantCodec
from cdu_spec import UserError
from hypothesis import given, settings
from hypothesis import strategies as st

FREE, HARDWARE = ["acgc-quant", "acgc-quantz"], ["autoquant", "autoquantz"]
shapes = st.one_of(
    st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple),
    st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 9), st.integers(1, 40)),
)
kinds = st.sampled_from(["normal", "relu", "negative", "halves", "zero", "huge range"])


def values(kind, shape, seed=0):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    if kind == "halves":  # middles between two steps of one, where the error is largest
        return x.mul(4).floor().add(0.5)
    if kind == "huge range":
        return x * 2.0 ** torch.randint(-12, 13, shape, generator=torch.Generator().manual_seed(seed))
    return {"normal": x, "relu": x.relu(), "negative": -x.abs(), "zero": x * 0}[kind]


def of_channels(x, count):
    """Return (count, values), float64: one row, or one for each place of axis 1."""
    return (x.transpose(0, 1) if count > 1 else x).reshape(count, -1).double()


def least_bits(row, step):
    """Return the bits of two's complement, unsigned where nothing is negative, for these steps, in plain numbers."""
    up, down = max(row.max().item(), 0) / step, max(-row.min().item(), 0) / step
    bits = ceil(log2(up + 1))
    if down > 0:
        bits = 1 + max(bits, ceil(log2(down)), 0)
    return min(max(bits, 1), MOST_BITS)


@settings(max_examples=100)
@given(st.sampled_from(FREE), kinds, shapes, st.booleans(), st.integers(-10, 3), st.integers(0, 2**31))
def test_every_value_keeps_to_its_step_with_the_fewest_bits(name, kind, shape, by_channel, power, seed):
    x = values(kind, shape, seed)
    count = shape[1] if by_channel and len(shape) > 1 else 1
    error = 2.0**power * (1 + torch.arange(count, dtype=torch.float32))
    form = actcodec.codec(name, seed=seed % 1000).compress_within(x, error)
    rows, back = of_channels(x, count), of_channels(form.decompress(), count)
    for row, got, allowed, bits, step in zip(rows, back, error.tolist(), form.bits.tolist(), form.steps.tolist(), strict=True):
        assert bits == least_bits(row, 2 * allowed)
        assert (got - row).abs().max() < step * (1 + 1e-6) + 1e-38
        if bits < MOST_BITS or least_bits(row, 1.99 * allowed) < MOST_BITS:
            assert step <= 2 * allowed * (1 + 1e-6)
        if name == "acgc-quantz" and bits < MOST_BITS:
            assert step == pytest.approx(2 * allowed)
    assert form.decompress().dtype == x.dtype


@pytest.mark.parametrize("name", FREE + HARDWARE)
@pytest.mark.parametrize("kind", ["normal", "relu", "halves"])
def test_mean_squared_error_is_within_the_bound_and_errors_average_out(name, kind):
    codec = actcodec.codec(name)
    assert codec.independent_errors
    x = values(kind, (2, 3, 16, 16))
    for error in (torch.tensor([0.5]), torch.tensor([0.05, 0.2, 0.5])):
        draws = torch.stack([codec.compress_within(x, error).decompress() - x for _ in range(30)]).double()
        allowed = along_channels(error.double(), 4).square()
        squared = (draws.square() / allowed).mean((0, 1, 3, 4))
        assert (squared < 1.05).all()
        # The square of the mean of 30 errors with mean zero is a thirtieth of their variance.
        mean, variance = draws.mean(0), draws.var(0)
        assert 0.85 < float(30 * mean.square().sum() / variance.sum()) < 1.15
        assert abs(float(mean.sum())) < 5 * float(variance.sum() / 30) ** 0.5


def test_halves_reach_the_bound():
    """Check that halves have the error of half a step: no other size of step would do for all values."""
    x = values("halves", (2, 3, 16, 16))
    form = actcodec.codec("acgc-quantz").compress_within(x, torch.tensor([0.5]))
    assert form.steps.tolist() == pytest.approx([1.0], rel=1e-6)
    assert float((form.decompress() - x).double().square().mean().sqrt()) == pytest.approx(0.5, rel=1e-4)


def bits_of(data):
    return [byte >> place & 1 for byte in data.tolist() for place in range(8)]


def by_hand(form):
    """Return codes from bytes, with nothing but Python's integers: rows of whole numbers."""
    per_row = torch.Size(form.shape).numel() // len(form.steps)
    present = bits_of(form.mask) if form.mask.numel() else [1] * (per_row * len(form.steps))
    rows = [[0] * per_row for _ in form.steps]
    data, first = form.codes.tolist(), 0
    widths = [width & 127 for width in form.widths.tolist()]
    for width in sorted(set(widths)):
        places = [
            (row, place)
            for row, mine in enumerate(widths)
            if mine == width
            for place in range(per_row)
            if present[row * per_row + place]
        ]
        codes = [0] * len(places)
        for low, planes in ((0, min(width, 8)), (8, max(width - 8, 0))):
            size = -(-len(places) * planes // 8)
            stream = int.from_bytes(bytes(data[first : first + size]), "little")
            first += size
            for number in range(len(places)):
                codes[number] |= (stream >> number * planes & (1 << planes) - 1) << low
        for (row, place), code in zip(places, codes, strict=True):
            signed = form.widths[row] >= 128 and code >> (width - 1)
            rows[row][place] = code - (1 << width) if signed else code
    assert first == len(data)
    return rows


@pytest.mark.parametrize("name", FREE)
def test_bytes_decode_by_hand(name):
    x = values("normal", (2, 6, 5, 7)) * 4.0 ** torch.arange(6.0)[:, None, None]
    x[:, 1] = x[:, 1].relu()
    x[:, 2] = -x[:, 2].abs()
    x[:, 3] = 0
    error = torch.tensor([1e-4, 0.01, 0.5, 1.0, 2.0, 400.0])
    form = actcodec.codec(name).compress_within(x, error)
    assert len(set(form.bits.tolist())) > 3
    expected = torch.tensor(by_hand(form), dtype=torch.float64) * form.steps.double()[:, None]
    assert torch.equal(of_channels(form.decompress(), 6), expected.float().double())
    assert form.nbytes == 6 * 5 + form.codes.numel() + (-(-x.numel() // 8) if name == "acgc-quantz" else 0)


@pytest.mark.parametrize("backend", ["torch", "native"])
@pytest.mark.parametrize("name", FREE)
@pytest.mark.parametrize("bits", [1, 2, 8, MOST_BITS])
def test_the_greatest_numbers_stay_finite(name, bits, backend):
    """Check that one bit's step, the greatest magnitude itself, is not rounded up to infinity."""
    most = torch.finfo(torch.float32).max
    codec = actcodec.codec(name, bits=bits, backend=backend)
    for content in ([most], [most, 0.0, most], [-most], [most, -most, 0.0]):
        x = torch.tensor(content)
        form = codec.compress(x)
        y = codec.decompress(form)
        assert y.isfinite().all()
        coded = x <= 0 if bits == 1 and min(content) < 0 else torch.ones_like(x, dtype=torch.bool)
        allowed = 0 if bits == 1 else form.steps.double()
        assert ((y.double() - x.double()).abs()[coded] <= allowed).all()


@pytest.mark.parametrize("bits", range(1, MOST_BITS + 1))
def test_no_gaps_at_any_width(bits):
    x = values("normal", (3, 1, 11, 13))
    form = AcgcQuantCodec(bits=bits).compress(x)
    assert form.bits.tolist() == [bits]
    assert form.nbytes <= 5 + -(-x.numel() * bits // 8) + 1
    if bits > 1:
        assert (form.decompress() - x).abs().max() <= form.steps * (1 + 1e-6)


def test_a_sign_costs_a_bit_and_the_maximum_keeps_its_value():
    """Check two errors of the published code: the sign's bit, and decoding without the scale."""
    x = torch.tensor([[0.0, 3.0, 6.0, 21.0]])
    form = actcodec.codec("acgc-quantz").compress_within(x, torch.tensor([1.5]))
    assert form.bits.tolist() == [3]  # 0 to 7 steps of 3
    assert torch.allclose(form.decompress(), x, rtol=1e-6)
    form = actcodec.codec("acgc-quantz").compress_within(-x, torch.tensor([1.5]))
    assert form.bits.tolist() == [4]
    assert torch.allclose(form.decompress(), -x, rtol=1e-6)
    both = torch.tensor([[-24.0, 24.0]])
    assert actcodec.codec("acgc-quantz").compress_within(both, torch.tensor([1.5])).bits.tolist() == [5]
    assert actcodec.codec("acgc-quantz").compress_within(both[:, :1], torch.tensor([1.5])).bits.tolist() == [4]


@pytest.mark.parametrize("name", FREE)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_formats_stay_finite(name, dtype):
    most = torch.finfo(dtype).max
    x = torch.tensor([[most, -most, 0.0, most / 3]]).to(dtype)
    y = actcodec.codec(name, bits=3).compress(x).decompress()
    assert y.dtype == dtype
    assert y.isfinite().all()


def test_default_error_is_that_of_8_bits():
    for x in (values("normal", (4, 5, 8, 8)), values("relu", (4, 5)), values("normal", (40,))):
        form = actcodec.codec("acgc-quantz").compress_within(x, default_error(x))
        assert (form.bits <= 8).all()
        assert (form.bits >= 7).all()
    assert (default_error(torch.zeros(2, 3)) > 0).all()


def test_the_hardwares_codec_has_the_least_error_where_it_has_one_scale():
    x = values("normal", (16, 3, 2, 2))
    packed = actcodec.codec("autoquant").compress_within(x, torch.tensor([0.5, 0.05, 0.5]))
    assert packed.reciprocals.numel() == 1
    assert packed.header.how.bits == 8
    assert actcodec.from_bytes(packed.to_bytes()).header.how.bits == 8
    assert (packed.decompress() - x).abs().max() <= 0.1001


def test_restart_repeats():
    codec, x = actcodec.codec("acgc-quant"), values("normal", (4, 4))
    first, second = codec.compress(x), codec.compress(x)
    codec.restart(0)
    assert torch.equal(codec.compress(x).codes, first.codes)
    assert not torch.equal(second.codes, first.codes)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (0.5, r"error = 0.5 does not go with shape \(2, 3, 4\): use a float32 tensor \(1,\) or \(3,\)"),
        (torch.ones(2), r"error = torch.float32 \(2,\) does not go with"),
        (torch.ones(3, dtype=torch.float64), "error = torch.float64"),
        (torch.ones(1, 1), "error = torch.float32"),
        (torch.tensor([1.0, 0.0, 1.0]), "an error is zero, negative, infinite or NaN: use positive finite numbers"),
        (torch.tensor([torch.inf]), "an error is zero"),
        (torch.tensor([torch.nan]), "an error is zero"),
    ],
)
def test_bad_errors(error, message):
    for name in FREE + HARDWARE:
        with pytest.raises(UserError, match=message):
            actcodec.codec(name).compress_within(torch.ones(2, 3, 4), error)
    with pytest.raises(UserError, match=r"use a float32 tensor \(1,\)$"):
        checked_error(torch.ones(3), torch.ones(3))


def test_bad_options():
    for bits in (0, 17, 2.0, True):
        with pytest.raises(UserError, match=f"bits = {bits} is not allowed: use 1 to 16"):
            actcodec.codec("acgc-quant", bits=bits)
    with pytest.raises(UserError, match="codes of any width have no bitstream: use autoquant or autoquantz"):
        actcodec.codec("acgc-quant").compress(torch.ones(2, 2)).to_bytes()
    with pytest.raises(UserError, match="step_log2 and an error exclude each other"):
        actcodec.codec("autoquant", step_log2=3).compress_within(torch.ones(2, 2), torch.ones(1))

"""DIVISION and ActNN in floating point: the paper's account of bytes, grids that line up, no published mistakes."""

from itertools import pairwise

import actcodec
import pytest
import torch
from actcodec.codecs.division.division_float import PARTS
from actcodec.golden.formats import rounded_to_half
from actcodec.golden.pooling import Pooling
from actcodec.training import Policy, Rule
from cdu_spec import UserError
from cdu_spec.affine import CODE_BITS
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

#: Ratios of the paper for a block of convolution, normalisation and ReLU with maps of N x N.
PUBLISHED = {56: 13.04, 28: 12.90, 14: 12.36, 7: 10.35}


def kept_by_a_block(n, dense):
    """Return the bytes per value that autograd keeps of a conv-BN-ReLU block: input, convolution's result, mask.

    Every number comes from the tensors that the plug-in holds; the mask's stream counts with its payload.
    """
    batch, channels = 16, 16
    model = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU())
    x = torch.randn(batch, channels, n, n, generator=torch.Generator().manual_seed(n), requires_grad=True)
    policy = Policy([Rule("brc", producer=("relu",), consumer=("relu",))], default=dense)
    with actcodec.compress_activations(model, policy) as stats:
        loss = model(x * 1.0).sum()  # saves nothing
    loss.backward()
    assert x.grad.isfinite().all()
    records = {record.op: record for record in stats.records if record.name in ("0", "1", "2")}
    assert [records[op].codec for op in ("mul", "conv", "relu")] == [dense.name, dense.name, "brc"]
    overhead = 20 + 4 * 4 + 4  # header, shape and checksum of the mask's stream
    values = x.numel()
    return tuple(
        (record.bytes_compressed - (overhead if record.codec == "brc" else 0)) / values
        for record in (records["mul"], records["conv"], records["relu"])
    )


@pytest.mark.parametrize(("n", "published"), PUBLISHED.items())
def test_the_papers_ratio(n, published):
    bytes_per_value = sum(kept_by_a_block(n, actcodec.codec("division-float")))
    closed = 4 / min(64, n * n) + 2 / 4 + 8 / n**2 + 1 / 8
    assert bytes_per_value == pytest.approx(closed, rel=1e-12)
    assert round(9 / bytes_per_value, 2) == published


@pytest.mark.parametrize(("option", "head"), [("channel", 2), ("block", 4)])
@pytest.mark.parametrize("bits", CODE_BITS)
@pytest.mark.parametrize("n", PUBLISHED)
def test_the_integer_forms_own_ratio(n, bits, option, head):
    """Check the formula of docs/reference/bitstream.md against the bytes of payloads in the plug-in."""
    codec = actcodec.codec("division", bits=bits, range=option)
    overhead = 20 + 4 * 4 + 4 * 16 + 4  # header, shape, 16 reciprocals, checksum
    first, second, mask = kept_by_a_block(n, codec)
    share = overhead / (16 * 16 * n * n)
    p = 8 * -(-n // 8) / n
    found = first + second - 2 * share + mask
    assert found == pytest.approx(2 * p * (bits / 8 + head / 64) + 1 / 8, rel=1e-12)
    if bits == 2:
        page = {("channel", True): 13.09, ("block", True): 12.00, ("channel", False): 11.72, ("block", False): 10.72}
        assert round(9 / found, 2) == page[(option, n % 8 == 0)]


@pytest.mark.parametrize("bits", CODE_BITS)
@pytest.mark.parametrize("block", [8, 12, 18])
@pytest.mark.parametrize("features", [8, 64, 72, 144, 512])
def test_the_papers_ratio_of_a_linear_block(features, block, bits):
    """Check 5 / (2/min(B, N) + Q/8 + 4/N + 1/8) with as many samples as the turns of the grid, so that cells share evenly."""
    samples = 36  # a multiple of all turns: at most 9 for B = 18 and 3 for B = 12, with even numbers of features
    model = nn.Sequential(nn.Linear(features, features), nn.ReLU())
    x = torch.randn(samples, features, generator=torch.Generator().manual_seed(features), requires_grad=True)
    policy = actcodec.training.policy("division-float", bits=bits, block=block)
    with actcodec.compress_activations(model, policy) as stats:
        loss = model(x * 1.0).sum()  # saves nothing
    loss.backward()
    assert x.grad.isfinite().all()
    assert [(record.op, record.codec) for record in stats.records] == [("mul", "division-float"), ("relu", "brc")]
    values, mask = stats.records
    overhead = 20 + 2 * 4 + 4  # header, shape and checksum of the mask's stream
    kept = (values.bytes_compressed + mask.bytes_compressed - overhead) / x.numel()
    assert kept == pytest.approx(2 / min(block, features) + bits / 8 + 4 / features + 1 / 8, rel=1e-12)
    # The paper counts a byte for ReLU's mask without compression; autograd keeps the 4 of its result.
    assert values.bytes_original + x.numel() == 5 * x.numel()


@given(st.integers(1, 3), st.integers(1, 9), st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 5, 8, 12, 18, 64]))
def test_cells_tile_every_map(batch, channels, height, width, block):
    shape = (batch, channels, height, width)
    cells = Pooling.of(shape, block).cells().view(-1, height, width)
    assert cells.flatten().unique().tolist() == list(range(int(cells.max()) + 1))
    last = -1
    for one in cells:
        rows, columns = (one[:, :1] - one[0, 0]).diff(dim=0).flatten(), one[:1].diff().flatten()
        # In a grid the number changes at the same columns in all rows, and grows.
        assert torch.equal(one, one[:, :1] + one[:1] - one[0, 0])
        assert (columns >= 0).all()
        assert (rows >= 0).all()
        assert int(one[0, 0]) == last + 1
        last = int(one[-1, -1])
        for extent, changes in ((height, rows), (width, columns)):
            edges = [0, *(changes.nonzero().flatten() + 1).tolist(), extent]
            sizes = [b - a for a, b in pairwise(edges)]
            assert max(sizes) - min(sizes) <= 1
            assert len(sizes) in {max(extent // block, 1), max(-(-extent // block), 1)}


@pytest.mark.parametrize("block", [1, 2, 8, 12, 18])
@pytest.mark.parametrize("side", [8, 9, 12, 14, 20, 28, 30, 56])
def test_a_block_of_values_per_cell_on_average(side, block):
    """Check the average over as many maps as an axis has turns, squared."""
    cells = Pooling.of((block, block, side, side), block).cells()
    assert int(cells[-1]) + 1 == max(side, block) ** 2


def test_features_are_pooled_along_their_axis_alone():
    """Check three samples of 20 features in blocks of 8: 2 cells, then 3, then 2, each of one sample."""
    cells = Pooling.of((3, 20), 8).cells()
    assert cells.tolist() == [0] * 10 + [1] * 10 + [2] * 7 + [3] * 7 + [4] * 6 + [5] * 10 + [6] * 10
    assert Pooling.of((3, 20), 32).cells().tolist() == [0] * 20 + [1] * 20 + [2] * 20
    assert torch.equal(Pooling.of((2, 3, 20), 8).cells()[:60], Pooling.of((3, 20), 8).cells())


@pytest.mark.parametrize("block", [8, 12, 18])
@pytest.mark.parametrize(
    "shape",
    [
        *[(2, 3, 8, 16), (4, 4, 7, 7), (2, 8, 14, 14), (1, 5, 28, 28), (1, 5, 30, 17), (2, 2, 1, 1), (1, 1, 28, 5)],
        *[(16, 30), (3, 1), (2, 5, 17)],
    ],
)
def test_means_are_those_of_their_cells(shape, block):
    """Check that a tensor constant in every cell is restored to its 16-bit means: pooling and upsampling share a grid."""
    cells = Pooling.of(shape, block).cells()
    x = torch.randn(int(cells[-1]) + 1, generator=torch.Generator().manual_seed(1)).bfloat16().float()[cells].view(shape)
    packed = actcodec.codec("division-float", block=block).compress(x)
    assert torch.equal(packed.means.float()[cells].view(shape), x)
    assert (packed.decompress() - x).abs().max() < 1e-30


@pytest.mark.parametrize("bits", CODE_BITS)
@pytest.mark.parametrize("half", ["bf16", "fp16"])
@pytest.mark.parametrize("name", ["division-float", "actnn-float"])
@pytest.mark.parametrize("shape", [(2, 3, 14, 14), (1, 4, 7, 7), (3, 1, 30, 17), (9, 50), (2, 3, 33)])
def test_error_is_at_most_a_step(name, half, bits, shape):
    """Check the error with the 16-bit step of decoding, which spans the rounded least to the greatest value without wrap."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2)) * 3 + 1
    packed = actcodec.codec(name, bits=bits, half=half).compress(x)
    y = packed.decompress()
    step = (packed.high if name == "division-float" else packed).step.float()
    size = 256 if name == "actnn-float" else x[0, 0].numel() if x.ndim == 4 else x.shape[-1]
    per_value = step.repeat_interleave(size)[: x.numel()]
    assert ((y - x).abs().flatten() <= per_value * (1 + 1e-5) + 1e-5).all()
    # The step is no more than the spread divided by the codes, except for 16-bit rounding.
    assert (step * (2**bits - 1)).max() <= (x.max() - x.min()) * 1.03


def test_padding_is_in_no_range():
    """Check 260 values far from zero, of which the second group has four."""
    x = 1000 + torch.rand(260, generator=torch.Generator().manual_seed(3))
    packed = actcodec.codec("actnn-float", half="fp16").compress(x)
    assert packed.low.numel() == 2
    assert packed.step.max() < 1
    assert packed.codes.numel() == 65
    assert packed.nbytes == 65 + 2 * 2 * 2


@pytest.mark.parametrize("name", ["division-float", "actnn-float"])
@pytest.mark.parametrize("value", [0.0, -0.0, 1e-30, -3.0, 6e4])
def test_constant_tensors(name, value):
    x = torch.full((1, 2, 9, 9), value)
    y = actcodec.codec(name).compress(x).decompress()
    assert (y - x).abs().max() <= abs(value) * 2.0**-8 + 1e-37


def test_values_that_float16_does_not_hold():
    x = torch.full((1, 1, 8, 8), 1e6)
    with pytest.raises(UserError, match="up to 1e\\+06 does not fit fp16: use half=bf16"):
        actcodec.codec("division-float", half="fp16").compress(x)
    with pytest.raises(UserError, match="does not fit bf16: use codec division"):
        actcodec.codec("division-float").compress(torch.full((1, 1, 8, 8), torch.finfo(torch.float32).max))
    assert actcodec.codec("division-float").compress(x).decompress().isfinite().all()


def test_no_stream():
    packed = actcodec.codec("actnn-float").compress(torch.ones(9))
    with pytest.raises(UserError, match="no bitstream: use division or actnn"):
        packed.to_bytes()


@pytest.mark.parametrize("block", [4, 8, 12])
def test_the_low_part_is_torchs_pooling_and_upsampling(block):
    x = torch.randn(2, 3, 2 * block, 3 * block, generator=torch.Generator().manual_seed(4), dtype=torch.float64).float()
    want = functional.interpolate(functional.avg_pool2d(x.double(), block).float().bfloat16().float(), scale_factor=block)
    packed = actcodec.codec("division-float", parts="low", block=block).compress(x)
    assert torch.equal(packed.decompress(), want)
    assert packed.nbytes == 2 * 6 * 2 * 3


@pytest.mark.parametrize("shape", [(2, 3, 14, 14), (3, 1, 30, 17), (5, 50)])
def test_the_ablations_keep_less(shape):
    """Check that the low and the high part add up to both, and that plain is both without a low part."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(5)) + 2
    packed = {part: actcodec.codec("division-float", parts=part, rounding="nearest").compress(x) for part in PARTS}
    y = {part: form.decompress() for part, form in packed.items()}
    assert torch.equal(y["low"] + y["high"], y["both"])
    assert packed["low"].nbytes + packed["high"].nbytes == packed["both"].nbytes
    assert packed["plain"].nbytes == packed["high"].nbytes
    assert packed["low"].high is None
    assert packed["plain"].means.numel() == packed["high"].means.numel() == 0
    step = packed["plain"].high.step.float().max()
    assert (y["plain"] - x).abs().max() <= step / 2 + 2.0**-6
    # The high part lacks the mean of 2; the low one lacks the differences within a cell.
    assert abs(float(y["high"].mean())) < 0.2
    assert abs(float(y["low"].mean()) - 2) < 0.2
    assert (y["both"] - x).norm() < min((y["low"] - x).norm(), (y["high"] - x).norm())


def test_no_value_becomes_infinite():
    """Check the greatest numbers of float16, which rounded-up steps would decode as infinity."""
    x = torch.full((1, 1, 8, 8), torch.finfo(torch.float16).max, dtype=torch.float16)
    x[..., ::2] = -1000.0
    for name in ("division-float", "actnn-float"):
        y = actcodec.codec(name, rounding="nearest").compress(x).decompress()
        assert y.isfinite().all()
        assert y.max() == torch.finfo(torch.float16).max


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block": 0}, "block = 0 is not allowed: use 1 to 65536 values"),
        ({"block": 8.0}, "block = 8.0 is not allowed"),
        ({"parts": "dc"}, "parts = 'dc' is not allowed: use both, low, high, plain"),
    ],
)
def test_options_have_limits(options, message):
    with pytest.raises(UserError, match=message):
        actcodec.codec("division-float", **options)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("up", [False, True])
def test_ranges_are_rounded_to_the_next_number_of_16_bits(half, up):
    """Check against all such numbers, sorted: 1.47818 up is 1.484375 in bfloat16, not 1.4921875."""
    numbers = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(half).to(torch.float64)
    numbers = numbers[numbers.isfinite()].unique()
    random = torch.Generator().manual_seed(3)
    values = torch.randn(4096, generator=random) * torch.logspace(-12, 4, 4096)[torch.randperm(4096, generator=random)]
    values = torch.cat([values, numbers[:: len(numbers) // 512].float(), torch.tensor([0.0, 1.4781838655471802])])
    values = values[values.abs() <= numbers.max()]
    place = torch.searchsorted(numbers, values.to(torch.float64), right=not up) - int(not up)
    assert torch.equal(rounded_to_half(values, half, up=up).to(torch.float64), numbers[place])

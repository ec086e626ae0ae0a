"""GIST, cDMA+, vDNN, bfloat16 and 8 bits by row: bytes as in the papers, values as defined."""

import actcodec
import numpy as np
import pytest
import torch
from actcodec.golden.minifloat import MINIFLOATS
from actcodec.golden.sfpr import NonFiniteError
from cdu_spec import UserError
from hypothesis import given, settings
from hypothesis import strategies as st

FLOATS = [torch.float32, torch.bfloat16, torch.float16]
BITS = {"fp16": 16, "fp10": 10, "fp8": 8}
SMALLEST_NORMAL = {"fp16": 2.0**-14, "fp10": 2.0**-14, "fp8": 2.0**-6}
FRACTION_BITS = {"fp16": 10, "fp10": 4, "fp8": 3}
shapes = st.one_of(
    st.tuples(st.integers(1, 600)),
    st.tuples(st.integers(1, 3), st.integers(1, 4), st.sampled_from([7, 14, 28, 30]), st.sampled_from([7, 14, 28, 17])),
)


def sparse(shape, density, seed, dtype=torch.float32):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=random)
    return (x * (torch.rand(shape, generator=random) < density)).to(dtype)


def same_bits(a, b):
    return a.dtype == b.dtype and torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))


@settings(max_examples=80)
@given(shapes, st.sampled_from(list(BITS)), st.sampled_from(FLOATS), st.integers(0, 2**31))
def test_dpr_error_and_bytes(shape, dpr, dtype, seed):
    x = sparse(shape, 1.0, seed, dtype)
    packed = actcodec.codec("gist", dpr=dpr).compress(x)
    y = packed.decompress()
    assert (y.shape, y.dtype) == (x.shape, dtype)
    # The error is half a step: relative above the smallest normal number, absolute below.
    half_step = x.double().abs().clamp_min(SMALLEST_NORMAL[dpr]) * 2.0 ** -(FRACTION_BITS[dpr] + 1)
    assert ((x.double() - y.double()).abs() <= half_step).all()
    assert packed.nbytes == 1 + -(-x.numel() * BITS[dpr] // 8)
    again = actcodec.codec("gist", dpr=dpr).compress(y).decompress()
    assert same_bits(again, y)


def test_dpr_that_holds_a_format_is_exact():
    x = torch.randn(1000, generator=torch.Generator().manual_seed(1)).half()
    assert same_bits(actcodec.codec("gist", dpr="fp16").compress(x).decompress(), x)


def plain_csr(packed, shape):
    """Return codes of all values, by walking the rows one value at a time."""
    kind = MINIFLOATS[packed.dpr]
    count = torch.Size(shape).numel()
    planes = packed.codes.tolist()
    kept = packed.columns.numel()
    if packed.dpr == "fp10":
        codes = [planes[i] | (planes[kept + i // 4] >> 2 * (i % 4) & 3) << 8 for i in range(kept)]
    else:
        codes = [sum(planes[plane * kept + i] << 8 * plane for plane in range(kind.bits // 8)) for i in range(kept)]
    out = [0] * count
    starts, columns = packed.row_starts.tolist(), packed.columns.tolist()
    for row in range(len(starts) - 1):
        for place in range(starts[row], starts[row + 1]):
            out[256 * row + columns[place]] = codes[place]
    return torch.tensor(out, dtype=torch.int32)


@settings(max_examples=80, deadline=None)
@given(shapes, st.sampled_from(list(BITS)), st.floats(0, 1), st.sampled_from(FLOATS), st.integers(0, 2**31))
def test_csr_after_its_definition(shape, dpr, density, dtype, seed):
    x = sparse(shape, density, seed, dtype)
    dense = actcodec.codec("gist", dpr=dpr).compress(x)
    packed = actcodec.codec("gist-csr", dpr=dpr).compress(x)
    want = dense.decompress()
    assert torch.equal(packed.decompress(), want)
    kept, rows = int(want.count_nonzero()), -(-x.numel() // 256)
    as_rows = 1 + -(-kept * BITS[dpr] // 8) + kept + 4 * (rows + 1)
    assert packed.nbytes == min(as_rows, dense.nbytes)
    assert packed.is_sparse == (as_rows < dense.nbytes)
    if packed.is_sparse:
        assert packed.columns.dtype == torch.uint8
        assert torch.equal(MINIFLOATS[dpr].decode(plain_csr(packed, shape)).to(dtype).view(shape), want)
    else:
        assert torch.equal(packed.codes, dense.codes)


@pytest.mark.parametrize(("dpr", "least"), [("fp16", 0.34), ("fp10", 0.45), ("fp8", 0.51)])
def test_csr_pays_from_the_zeros_that_its_page_says(dpr, least):
    for zeros, pays in ((least - 0.01, False), (least + 0.01, True)):
        x = torch.ones(256 * 400)
        x[: round(len(x) * zeros)] = 0
        assert actcodec.codec("gist-csr", dpr=dpr).compress(x).is_sparse == pays


def test_csr_counts_what_dpr_rounds_to_zero_as_zero():
    x = torch.full((4, 256), 1e-4)
    x[1, 7], x[3, 255], x[3, 0] = 1.0, -2.0, -0.0
    packed = actcodec.codec("gist-csr", dpr="fp8").compress(x)
    assert packed.row_starts.tolist() == [0, 0, 1, 1, 2]
    assert packed.columns.tolist() == [7, 255]
    assert packed.codes.tolist() == [0x38, 0xC0]
    assert packed.nbytes == 1 + 2 + 2 + 20
    assert packed.decompress().nonzero().tolist() == [[1, 7], [3, 255]]


@pytest.mark.parametrize("name", ["gist", "gist-csr"])
@pytest.mark.parametrize("dpr", BITS)
def test_nan_and_infinity(name, dpr):
    x = torch.zeros(1, 2, 30, 30)
    x[0, 0, 0, :3] = torch.tensor([torch.nan, torch.inf, -torch.inf])
    with pytest.raises(NonFiniteError, match="NaN or infinite"):
        actcodec.codec(name, dpr=dpr).compress(x)
    y = actcodec.codec(name, dpr=dpr, nonfinite="saturate").compress(x).decompress()
    greatest = {"fp16": 65504, "fp10": 63488, "fp8": 448}[dpr]
    assert y[0, 0, 0, :3].tolist() == [0, greatest, -greatest]
    assert y.count_nonzero() == 2


@settings(max_examples=80)
@given(shapes, st.floats(0, 1), st.sampled_from(FLOATS), st.integers(0, 2**31))
def test_cdma_keeps_every_bit_in_the_bytes_of_the_paper(shape, density, dtype, seed):
    x = sparse(shape, density, seed, dtype)
    packed = actcodec.codec("cdma").compress(x)
    assert same_bits(packed.decompress(), x)
    words = x.view(torch.int16 if dtype.itemsize == 2 else torch.int32).flatten().tolist()
    blocks = [words[i : i + 32] for i in range(0, len(words), 32)]
    assert packed.nbytes == sum(4 + dtype.itemsize * sum(word != 0 for word in block) for block in blocks)
    masks = packed.masks.view(-1, 4).tolist()
    assert [int.from_bytes(bytes(mask), "little") for mask in masks] == [
        sum((word != 0) << i for i, word in enumerate(block)) for block in blocks
    ]


@pytest.mark.parametrize("name", ["cdma", "vdnn"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_lossless_for_any_pattern(name, dtype):
    patterns = torch.randint(
        0, 256, (3, 5, 7, 11 * dtype.itemsize), dtype=torch.uint8, generator=torch.Generator().manual_seed(1)
    )
    x = patterns.view(dtype)
    x[0, 0, 0, :5] = torch.tensor([torch.nan, torch.inf, -torch.inf, -0.0, 0.0])
    before = x.clone()
    packed = actcodec.codec(name).compress(x)
    x.zero_()
    assert same_bits(packed.decompress(), before)
    packed.decompress().zero_()
    assert same_bits(packed.decompress(), before)


@settings(max_examples=80)
@given(shapes, st.sampled_from(FLOATS), st.integers(0, 2**31))
def test_bf16_is_the_nearest_number_of_16_bits(shape, dtype, seed):
    x = sparse(shape, 0.7, seed, dtype)
    packed = actcodec.codec("bf16").compress(x)
    assert packed.nbytes == 2 * x.numel()
    if dtype != torch.float32:
        assert same_bits(packed.decompress(), x)
        return
    # Adds half a step less one, and one more where the last remaining bit is set: integers round ties to even.
    words = x.numpy().view(np.uint32).astype(np.uint64)
    rounded = (words + 0x7FFF + (words >> 16 & 1)) >> 16 << 16
    assert same_bits(packed.decompress(), torch.from_numpy(rounded.astype(np.uint32).view(np.float32)))


def test_bf16_does_not_become_infinite():
    greatest = torch.finfo(torch.bfloat16).max
    x = torch.tensor([3.4e38, -3.4e38, greatest])
    assert actcodec.codec("bf16").compress(x).decompress().tolist() == [greatest, -greatest, greatest]


@settings(max_examples=80)
@given(shapes, st.sampled_from(FLOATS), st.floats(0, 1), st.integers(0, 2**31))
def test_int8_rows_after_its_definition(shape, dtype, density, seed):
    x = sparse(shape, density, seed, dtype)
    packed = actcodec.codec("int8-rows").compress(x)
    rows = x.float().numpy().reshape(-1, shape[-1])
    greatest = np.abs(rows).max(axis=1, keepdims=True)
    divisors = np.where(greatest > 0, greatest, np.float32(1))
    codes = np.rint(rows / divisors * np.float32(127)).astype(np.int8)
    assert packed.nbytes == x.numel() + 4 * len(rows)
    assert np.array_equal(packed.codes.numpy(), codes.reshape(shape))
    want = codes.astype(np.float32) / np.float32(127) * greatest
    assert same_bits(packed.decompress(), torch.from_numpy(want).to(dtype).view(shape))
    # The error is half a step of the row, plus the rounding of the number format.
    error = (packed.decompress().double() - x.double()).abs().view(rows.shape)
    assert (error <= torch.from_numpy(greatest).double() * (0.5 / 127 + torch.finfo(dtype).eps)).all()


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")  # deprecated
@settings(max_examples=30, deadline=None)
@given(shapes, st.integers(0, 2**31))
def test_int8_rows_is_what_torch_quantises_by_channel(shape, seed):
    x = sparse(shape, 1.0, seed)
    rows = x.view(-1, shape[-1])
    scales = rows.abs().amax(1) / 127
    torchs = torch.quantize_per_channel(rows, scales, torch.zeros(len(rows)), 0, torch.qint8)
    packed = actcodec.codec("int8-rows").compress(x)
    off = torchs.int_repr().int() - packed.codes.view(rows.shape).int()
    # torch multiplies by the reciprocal of the scale: near ties may round the other way.
    assert off.abs().max() <= 1
    near = ((rows / scales[:, None]).double() % 1 - 0.5).abs()
    assert (near[off != 0] < 1e-4).all()
    torch.testing.assert_close(torchs.dequantize()[off == 0], packed.decompress().view(rows.shape)[off == 0])


def test_vdnn_keeps_as_many_bytes():
    assert actcodec.codec("vdnn").compress(torch.ones(3, 5)).nbytes == 60


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", ["gist", "gist-csr", "cdma", "vdnn", "bf16", "int8-rows"])
def test_cuda_gives_the_same(name):
    x = sparse((3, 8, 17, 19), 0.4, 3)
    here, there = actcodec.codec(name).compress(x), actcodec.codec(name).compress(x.cuda())
    assert there.nbytes == here.nbytes
    assert there.decompress().is_cuda
    assert same_bits(there.decompress().cpu(), here.decompress())
    if name == "vdnn":
        assert there.host.tensor.is_pinned()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: actcodec.codec("gist", dpr="fp9"), "dpr = 'fp9' is not allowed: use fp16, fp10, fp8"),
        (lambda: actcodec.codec("gist-csr", dpr=8), "dpr = 8 is not allowed"),
        (lambda: actcodec.codec("gist", nonfinite="ok"), "nonfinite = 'ok'"),
        (lambda: actcodec.codec("cdma", dpr="fp8"), "codec 'cdma' has no option 'dpr': it has none"),
        (lambda: actcodec.codec("cdma").compress(torch.ones(2, dtype=torch.float64)), "dtype float64"),
        (lambda: actcodec.codec("gist").compress(torch.ones(0)), "empty tensor"),
        (lambda: actcodec.codec("gist").compress(torch.ones(3)).to_bytes(), "no bitstream"),
        (lambda: actcodec.codec("cdma").compress(torch.ones(3)).to_bytes(), "no bitstream"),
        (lambda: actcodec.codec("vdnn").compress(torch.ones(3)).to_bytes(), "no bitstream"),
        (lambda: actcodec.codec("bf16").compress(torch.ones(3)).to_bytes(), "no bitstream"),
        (lambda: actcodec.codec("int8-rows", bits=8), "codec 'int8-rows' has no option 'bits': use backend"),
        (lambda: actcodec.codec("int8-rows").compress(torch.tensor([1.0, torch.nan])), "NaN or infinite"),
    ],
)
def test_bad_uses(call, message):
    with pytest.raises(UserError, match=message):
        call()

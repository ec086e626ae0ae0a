"""MX and NVFP4 against torchao, bit for bit, and against exact fractions where torchao has nothing or is not exact."""

import os
from fractions import Fraction
from functools import cache

import actcodec
import numpy as np
import pytest
import torch
from actcodec.golden import mx, nvfp4
from actcodec.study import experiment
from actcodec.study.data import load
from actcodec.study.recording import RecordingPolicy
from cdu_spec.bitstream import BitstreamError
from cdu_spec.mx import MX_FORMATS, NVFP4_FORMAT, SCALE_BIAS, SCALE_NAN, ScaleRule
from torchao.prototype.mx_formats.config import ScaleCalculationMode
from torchao.prototype.mx_formats.constants import DTYPE_FP6_E2M3, DTYPE_FP6_E3M2
from torchao.prototype.mx_formats.kernels import pack_uint4, unpack_uint4
from torchao.prototype.mx_formats.mx_tensor import to_dtype, to_mx
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, nvfp4_quantize, per_tensor_amax_to_scale

THEIRS = {
    "mxfp8-e4m3": torch.float8_e4m3fn,
    "mxfp8-e5m2": torch.float8_e5m2,
    "mxfp6-e2m3": DTYPE_FP6_E2M3,
    "mxfp6-e3m2": DTYPE_FP6_E3M2,
    "mxfp4": torch.float4_e2m1fn_x2,
}
RULES = {ScaleRule.FLOOR: ScaleCalculationMode.FLOOR, ScaleRule.RCEIL: ScaleCalculationMode.RCEIL}
FLOAT_BIAS = 127


def flushed(values):
    """Replace subnormal numbers by zeros."""
    return torch.where(values.abs() < 2.0**-126, values * 0, values)


def torchao_codes(values, name, rule):
    """Return scale bytes (n,) and codes (n, 32), both uint8, of float32 (n, 32)."""
    scales, codes = to_mx(values, THEIRS[name], 32, RULES[rule])
    codes = unpack_uint4(codes) if name == "mxfp4" else codes.view(torch.uint8)
    return scales.view(torch.uint8).view(-1), codes.view(-1, 32)


def torchao_values(scales, codes, name):
    """Return float32 (n, 32) for scale bytes and codes; inverse of :func:`torchao_codes`."""
    data = pack_uint4(codes) if name == "mxfp4" else codes.view(THEIRS[name]) if name.startswith("mxfp8") else codes
    return to_dtype(data, scales.view(torch.float8_e8m0fnu), THEIRS[name], 32, torch.float32)


def random_blocks(count=4096, seed=0):
    """Return blocks with magnitudes from 2**-100 to 2**100, some within few octaves, some over many, with zeros."""
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 32, generator=random)
    x *= torch.exp2(torch.randint(-100, 101, (count, 1), generator=random).float())
    x[::3] *= torch.exp2(torch.randint(-20, 1, (count, 32), generator=random).float())[::3]
    return x * (torch.rand(count, 32, generator=random) < 0.9)


def tie_blocks():
    """Return every number of every format, all middles between two, and the next floats, each below a greatest number."""
    blocks = []
    for kind in MX_FORMATS.values():
        table = mx.numbers(kind)
        numbers = table[table.isfinite()].unique()
        middles = (numbers[1:] + numbers[:-1]) / 2
        points = torch.cat((numbers, middles, middles.nextafter(torch.tensor(torch.inf)), middles.nextafter(torch.tensor(0.0))))
        for top in (numbers[-1], 2.0**kind.emax, numbers[-1] * 1.015):
            rows = torch.nn.functional.pad(points, (0, -len(points) % 31)).view(-1, 31)
            blocks.append(torch.cat((torch.full((len(rows), 1), float(top)), rows.clamp(-top, top)), 1))
    return torch.cat(blocks)


def special_blocks():
    """Return zeros of both signs, infinity, NaN, the extremes of float32; no block has small numbers only."""
    x = torch.randn(12, 32, generator=torch.Generator().manual_seed(5))
    x[0], x[1] = 0.0, -0.0
    x[2, 3], x[3, 31], x[4, 0] = torch.inf, -torch.inf, torch.nan
    x[5], x[6] = torch.finfo(torch.float32).max, -torch.finfo(torch.float32).max
    x[7, 1:] = 2.0**-149
    x[8], x[8, 5] = 0.0, 1.0
    x[9, 4], x[9, 9] = torch.nan, torch.inf
    x[10] = 2.0 ** torch.arange(-16, 16)
    x[11] *= 2.0**-90
    return x


@cache
def real_blocks():
    """Return all tensors that a network saves in its sixth step, on CIFAR-10 if it is installed, else on digits."""
    seen = []
    images = load("cifar10" if "CDU_DATA_DIR" in os.environ else "digits", limit=512)
    experiment.train(
        experiment.Recipe(width=8, steps=6), images, "none", RecordingPolicy({5}, lambda _, x: seen.append(x.clone())), 3
    )
    return torch.cat([x.flatten()[: x.numel() // 32 * 32].view(-1, 32)[:2000] for x in seen])


CONTENTS = {"random": random_blocks, "ties": tie_blocks, "special": special_blocks, "real": real_blocks}


@pytest.mark.parametrize("rule", ScaleRule)
@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.parametrize("content", CONTENTS)
def test_codes_and_values_are_those_of_torchao(content, name, rule):
    values, kind = CONTENTS[content](), MX_FORMATS[name]
    before = values.clone()
    blocks = mx.encode(values, kind, rule)
    assert torch.equal(values.view(torch.int32), before.view(torch.int32))
    scales, codes = mx.without_scales(blocks, kind)
    expected_scales, expected = torchao_codes(flushed(values), name, rule)
    # torchao's logarithm is rounded, so that numbers just above a power of two get the scale of the power.
    exact = (expected_scales == scales) | ((rule is ScaleRule.RCEIL) & (expected_scales + 1 == scales))
    assert exact.all()
    assert (expected_scales == scales).float().mean() > 0.99
    same = (expected_scales == scales) & (scales != SCALE_NAN)
    assert torch.equal(codes[same], expected[same])
    assert not codes[scales == SCALE_NAN].any()
    assert torch.equal(mx.decode(blocks, kind).nan_to_num(1e9), flushed(torchao_values(scales, codes, name)).nan_to_num(1e9))


@pytest.mark.parametrize("name", THEIRS)
def test_every_code_with_every_scale(name):
    """Check all codes, infinity and NaN included, and products beyond float32 and below its normal numbers, which are zero."""
    kind = MX_FORMATS[name]
    codes = torch.arange(max(1 << kind.bits, 32), dtype=torch.int32).remainder(1 << kind.bits).to(torch.uint8)
    codes = codes.repeat(256, 1).view(-1, 32)
    scales = torch.arange(256, dtype=torch.uint8).repeat_interleave(len(codes) // 256)
    values = mx.decode(mx.with_scales(scales, codes, kind), kind)
    expected = flushed(torchao_values(scales, codes, name))
    assert torch.equal(values.isnan(), expected.isnan())
    assert torch.equal(values.nan_to_num(0, 1e39, -1e39).signbit(), expected.nan_to_num(0, 1e39, -1e39).signbit())
    assert torch.equal(values[~values.isnan()], expected[~values.isnan()])
    assert (values[values.isnan()].view(torch.int32) == 0x7FC00000).all()


def nearest(fraction, kind):
    """Return the code of a scaled magnitude, exact: to nearest, ties to even, limited."""
    magnitudes = [Fraction(float(number)) for number in mx.numbers(kind)[: kind.greatest + 1]]
    distances = [abs(number - fraction) for number in magnitudes]
    least = min(distances)
    near = [code for code, distance in enumerate(distances) if distance == least]
    return next((code for code in near if code % 2 == 0), near[0])


@pytest.mark.parametrize("rule", ScaleRule)
@pytest.mark.parametrize("name", MX_FORMATS)
def test_scales_and_codes_against_fractions(name, rule):
    """Check small values, too, which torchao divides by twice the stored scale, and values near torchao's rounded logarithm."""
    kind, limits = MX_FORMATS[name], {}
    greatest = Fraction(float(mx.numbers(kind)[kind.greatest]))
    random = torch.Generator().manual_seed(7)
    exponents = torch.randint(-149, 127, (60, 1), generator=random).float()
    values = torch.randn(60, 32, generator=random) * torch.exp2(exponents)
    values[:20] *= 2.0**-120
    for row, top in enumerate((greatest, Fraction(1))):  # at the edge, and a float above and below it
        for place, exponent in enumerate((-100, -30, 1, 60)):
            edge = torch.tensor(float(top) * 2.0**exponent)
            for beside in range(3):
                number = 20 + row * 12 + place * 3 + beside
                to = torch.tensor([0.0, float(edge), torch.inf])[beside]
                values[number], values[number, 0] = values[number] / values[number].abs().max() * edge * 0.5, edge.nextafter(to)
    scales, codes = mx.without_scales(mx.encode(values, kind, rule), kind)
    for block, scale, row in zip(flushed(values).tolist(), scales.tolist(), codes.tolist(), strict=True):
        # Values are in units of the scale; they are twice as many in those of the next smaller one.
        most = max(abs(Fraction(value)) for value in block) / Fraction(2) ** (scale - SCALE_BIAS)
        assert most < 2 ** (kind.emax + 1) if rule is ScaleRule.FLOOR else most <= greatest
        assert scale == 0 or (2 * most >= 2 ** (kind.emax + 1) if rule is ScaleRule.FLOOR else 2 * most > greatest)
        limits[scale == 0] = True
        for value, code in zip(block, row, strict=True):
            found = code - 256 * (code > 127) if kind.is_integer else code & ((1 << (kind.bits - 1)) - 1)
            assert abs(found) == nearest(abs(Fraction(value)) / Fraction(2) ** (scale - SCALE_BIAS), kind)
            if found:
                assert (value < 0) == (found < 0 if kind.is_integer else code >> (kind.bits - 1) == 1)
    assert limits == {True: True, False: True}


def test_integers_against_numpy():
    kind = MX_FORMATS["mxint8"]
    for content in CONTENTS.values():
        values = content()
        values = values[values.isfinite().all(1) & (values.abs().amax(1) > 2.0**-120)].double().numpy()
        largest = np.abs(values).max(1, keepdims=True)
        exponents = np.frexp(largest)[1] - 1
        expected = np.rint(values / 2.0**exponents * 64).clip(-127, 127).astype(np.int8).view(np.uint8)
        scales, codes = mx.without_scales(mx.encode(torch.from_numpy(values).float(), kind, ScaleRule.FLOOR), kind)
        assert (scales.numpy() == exponents[:, 0] + FLOAT_BIAS).all()
        assert (codes.numpy() == expected).all()
        rebuilt = mx.decode(mx.with_scales(scales, codes, kind), kind)
        assert (rebuilt.numpy() == expected.view(np.int8) / 64 * 2.0**exponents).all()


def test_integers_beyond_the_symmetric_ones_are_decoded():
    kind = MX_FORMATS["mxint8"]
    codes = torch.full((1, 32), 0x80, dtype=torch.uint8)
    assert (mx.decode(mx.with_scales(torch.tensor([130], dtype=torch.uint8), codes, kind), kind) == -16).all()


@pytest.mark.parametrize("rule", ScaleRule)
@pytest.mark.parametrize("name", MX_FORMATS)
def test_what_was_decoded_is_coded_again_without_loss(name, rule):
    kind = MX_FORMATS[name]
    once = mx.decode(mx.encode(random_blocks(), kind, rule), kind)
    assert torch.equal(mx.decode(mx.encode(once, kind, rule), kind), once)


def test_the_bytes_of_a_block():
    """Check the layout of docs/reference/bitstream.md: the scale, then codes from the lowest bits up."""
    values = torch.zeros(1, 32)
    values[0, :4] = torch.tensor([6.0, -0.5, 1.0, 3.0])
    block = mx.encode(values, MX_FORMATS["mxfp4"], ScaleRule.FLOOR)[0].tolist()
    assert block == [127, 0x97, 0x52, *[0] * 14]
    codes = torch.arange(32, dtype=torch.uint8)[None]
    kind = MX_FORMATS["mxfp6-e2m3"]
    bytes_ = mx.with_scales(torch.tensor([3], dtype=torch.uint8), codes, kind)[0].tolist()
    assert int.from_bytes(bytes(bytes_[1:]), "little") == sum(code << (6 * code) for code in range(32))
    assert [kind.block_bytes for kind in (*MX_FORMATS.values(), NVFP4_FORMAT)] == [33, 33, 33, 25, 25, 17, 9]
    with pytest.raises(BitstreamError, match="24 payload bytes are not 2 blocks of 17"):
        mx.blocks_of(torch.zeros(24, dtype=torch.uint8), 33, MX_FORMATS["mxfp4"])


def blocks_of_idma(values):
    """Return blocks of 33 bytes, uint8 (n, 33), of float32 (n, 32), as the manual of PULP iDMA 0.7.0 describes them.

    The scale is the greatest exponent of a finite element, less that of E5M2's greatest number, as a signed byte; elements are
    rounded to nearest, ties to even, and saturate.
    """
    exponents = (values.numpy().view(np.uint32) >> 23 & 0xFF).astype(np.int32)
    scales = (np.where(exponents < 255, exponents, 0).max(1) - FLOAT_BIAS - 15).clip(-128, 127)
    scaled = np.ldexp(values.double().numpy(), -scales[:, None])
    most = float(torch.finfo(torch.float8_e5m2).max)
    elements = torch.from_numpy(scaled).clamp(-most, most).float().to(torch.float8_e5m2).view(torch.uint8)
    return torch.cat((torch.from_numpy(scales.astype(np.int8)).view(torch.uint8)[:, None], elements), 1)


@pytest.mark.parametrize("content", ["random", "ties", "real"])
def test_blocks_of_mxfp8_e5m2_are_those_of_idma_but_for_the_bias_of_the_scale(content):
    values = flushed(torch.cat((CONTENTS[content](), torch.zeros(1, 32))))
    theirs, ours = blocks_of_idma(values), mx.encode(values, MX_FORMATS["mxfp8-e5m2"], ScaleRule.FLOOR)
    assert torch.equal(theirs[:, 1:], ours[:, 1:])
    scales = theirs[:, 0].view(torch.int8).int().clamp(min=-SCALE_BIAS)  # -128, of zeros, is no scale of OCP's
    assert torch.equal(scales + SCALE_BIAS, ours[:, 0].int())


@pytest.mark.parametrize("content", ["random", "real", "wide"])
def test_nvfp4_is_that_of_torchao(content):
    if content == "random":
        values = torch.randn(512, 64, generator=torch.Generator().manual_seed(1))
    elif content == "wide":
        values = random_blocks().clamp(-1e20, 1e20)
    else:
        values = real_blocks().clone()
    values[3] = 0
    largest = values.abs().max()
    scale = nvfp4.tensor_scale(largest)
    assert scale == per_tensor_amax_to_scale(largest)
    expected_scales, expected = nvfp4_quantize(values, 16, scale)
    blocks = nvfp4.encode(values.view(-1, 16), scale)
    assert torch.equal(blocks[:, 0], expected_scales.view(torch.uint8).view(-1))
    assert torch.equal(blocks[:, 1:].reshape(expected.shape), expected)
    rebuilt = nvfp4.decode(blocks, scale).view(values.shape)
    assert torch.equal(rebuilt, NVFP4Tensor.to_nvfp4(values, 16, scale).dequantize(torch.float32))


def test_nvfp4_of_zeros_and_of_the_smallest_numbers():
    """Check zeros and the smallest numbers, for which torchao divides by zero."""
    for largest in (0.0, 2.0**-149, 2.0**-126):
        values = torch.zeros(2, 16)
        values[0, 3] = -largest
        scale = nvfp4.tensor_scale(values.abs().max())
        assert scale == 2.0**-120
        rebuilt = nvfp4.decode(nvfp4.encode(values, scale), scale)
        assert rebuilt.isfinite().all()
        assert (rebuilt - values).abs().max() <= 2.0**-126 / 4
    assert nvfp4.decode(nvfp4.encode(torch.tensor([[2.0**-126] * 16]), scale), scale).eq(2.0**-126).all()


def nearest_code(value, numbers):
    """Return the number of the nearest of ascending numbers, ties to even."""
    distances = [abs(Fraction(float(value)) - number) for number in numbers]
    return min(range(len(numbers)), key=lambda code: (distances[code], code % 2))


@pytest.mark.parametrize(("dtype", "power"), [("float32", 20), ("float32", -126), ("float16", 3)])
def test_nvfp4_is_what_the_page_says(dtype, power):
    """Compute section 9 of bitstream.md in numpy's float32, one operation after the other; some values round twice."""
    f32 = np.float32
    elements = [Fraction(number) for number in (0, 0.5, 1, 1.5, 2, 3, 4, 6)]
    scales = [
        Fraction(code % 8, 512) if code < 8 else Fraction(8 + code % 8, 8) * Fraction(2) ** (code // 8 - 7)
        for code in range(127)
    ]
    x = (np.random.default_rng(2).standard_normal((60, 16)) * np.exp2(np.arange(60) % 9 - 4)[:, None] * 2.0**power).astype(
        dtype
    )
    t = max(f32(abs(x).max()) / f32(2688), f32(2.0**-120))
    packed = actcodec.codec("nvfp4").compress(torch.from_numpy(x))
    blocks, decoded = packed.payload.view(60, 9).tolist(), packed.decompress().numpy()
    assert packed.scale.item() == t
    for block, values, found in zip(blocks, x.astype(f32), decoded, strict=True):
        wanted = min(max(abs(values).max() / f32(6) / t, f32(2.0**-6)), f32(448))
        assert block[0] == nearest_code(wanted, scales)
        b = f32(float(scales[block[0]]))
        factor = f32(1) / t / b
        for place, value in enumerate(values):
            code = block[1 + place // 2] >> 4 * (place % 2) & 15
            assert code == nearest_code(abs(value * factor), elements) + 8 * np.signbit(value)
            y = f32(float(elements[code % 8])) * f32(t * b) * (-1 if code > 7 else 1)
            assert found[place].tobytes() == y.astype(dtype).tobytes()

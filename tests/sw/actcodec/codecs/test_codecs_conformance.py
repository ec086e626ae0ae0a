"""Rows C1 to C7, C9 to C11 and C14 of docs/user/plugin.md: every codec of the catalogue, every width, every format, on the CPU.

Every codec in the catalogue is tested. Codecs to which a row does not apply are facts of catalog_facts.py, never names.
"""

import copy
from dataclasses import fields, is_dataclass

import actcodec
import pytest
import torch
from actcodec.golden.sfpr import NonFiniteError
from catalog_facts import (
    FLOATS,
    NAMES,
    VARIANT_IDS,
    VARIANTS,
    change_width,
    follows_magnitude,
    greatest_divisor,
    has_option,
    is_lossless,
    is_stochastic,
    keeps_values,
    make,
    transforms_blocks,
    widths,
)
from cdu_spec.dqt import OPT_L
from cdu_tools.errors import UserError

LEAST_BITS, USUAL_BITS = 2, 8
#: Part of the largest value that JPEG's table, if it is as fine as optL, and SFPR's saturating scale may remove.
TRANSFORM_LOSS = 0.22

every_variant = pytest.mark.parametrize(("name", "bits"), VARIANTS, ids=VARIANT_IDS)
every_value_variant = pytest.mark.parametrize(
    ("name", "bits"),
    [variant for variant in VARIANTS if keeps_values(variant[0])],
    ids=[text for text, variant in zip(VARIANT_IDS, VARIANTS, strict=True) if keeps_values(variant[0])],
)


def in_every_format(of=lambda name: True):
    """Parametrise over the codecs with ``of(name)`` true, in all widths and formats; `make full` has the whole product.

    In the quick tests a codec's least width comes in every format, each other width in one of them by turns.
    """
    cases = []
    for (name, bits), text in zip(VARIANTS, VARIANT_IDS, strict=True):
        if of(name):
            turn = widths(name).index(bits)
            for number, dtype in enumerate(FLOATS):
                marks = () if turn == 0 or turn % len(FLOATS) == number else pytest.mark.campaign
                cases.append(pytest.param(name, bits, dtype, marks=marks, id=f"{str(dtype).removeprefix('torch.')}-{text}"))
    return pytest.mark.parametrize(("name", "bits", "dtype"), cases)


def step_of(bits):
    """Return the part of the largest magnitude that a code of signed numbers is worth."""
    return 1 / (2 ** ((bits or USUAL_BITS) - 1) - 1)


def transform_loss(name):
    """Return the part of the largest magnitude that a codec's table may remove: it grows with the divisors."""
    return TRANSFORM_LOSS * greatest_divisor(name) / max(OPT_L)


def there_and_back(name, bits, x, **options):
    return through(make(name, bits, **options), x)


def through(codec, x):
    y = codec.decompress(codec.compress(x))
    assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)
    return y


@in_every_format(keeps_values)
def test_c1_extremes_saturate_and_do_not_wrap(name, bits, dtype):
    """Check that a group's greatest values stay above the middle ones and the least below, for any last digits of the range."""
    for scale in torch.rand(8, generator=torch.Generator().manual_seed(1)) + 0.5:
        x = torch.rand(2, 4, 16, 16) * 2 - 1
        x[:, :, :8, :8], x[:, :, 8:, 8:] = 1, -1
        x = (x * scale).to(dtype)
        y = there_and_back(name, bits, x).double()
        middle = y[:, :, :8, 8:].mean()
        assert y[x == x.max()].mean() >= middle
        assert y[x == x.min()].mean() <= middle
        if bits is None or bits >= LEAST_BITS:  # a wrapped value is off by twice the scale
            assert (y - x.double()).abs().max() <= scale * (1.15 * step_of(bits) + transform_loss(name))


@in_every_format(keeps_values)
def test_c2_zero_range(name, bits, dtype):
    for value in (0.0, -0.0, 1.0, -3.0, 1e-4, 6e4):
        x = torch.full((2, 4, 16, 16), value).to(dtype)
        y = there_and_back(name, bits, x).double()
        size = abs(float(x[0, 0, 0, 0]))
        assert y.isfinite().all()
        if not follows_magnitude(name, bits):
            assert ((y * x.sign() >= 0) & (y.abs() <= 1.05 * size)).all()
        elif bits is None or bits >= LEAST_BITS:
            assert (y - x.double()).abs().max() <= size * (1.15 * step_of(bits) + transform_loss(name)) + 2.0**-99


@in_every_format(keeps_values)
def test_c2_subnormal_and_huge_groups(name, bits, dtype):
    """Check such groups beside ordinary ones, too; numbers beyond a 16-bit parameter must be refused with a message."""
    info = torch.finfo(dtype)
    unit = torch.rand(2, 4, 16, 16) * 2 - 1
    subnormal, huge = unit * (info.smallest_normal / 2), unit * (info.max / 4)
    mixed = torch.cat([subnormal[:1], huge[:1]])
    assert there_and_back(name, bits, subnormal.to(dtype)).abs().max() <= max(8 * info.smallest_normal, 2.0**-99)
    for x in (huge, mixed):
        try:
            y = there_and_back(name, bits, x.to(dtype)).double()
        except UserError as error:
            assert "do not fit" in str(error)  # noqa: PT017
            assert "use " in str(error)  # noqa: PT017
        else:
            assert y.isfinite().all()
            assert y.abs().max() <= x.double().abs().max() * 3.2


@in_every_format(is_stochastic)
def test_c3_stochastic_rounding_has_no_mean_error(name, bits, dtype):
    """Check values within the codes, with the stored parameters, their rounding included."""
    x = (torch.randn(2, 4, 16, 16) + torch.randn(1, 4, 1, 1)).to(dtype)
    codec = make(name, bits)
    draws = torch.stack([codec.decompress(codec.compress(x)).double() for _ in range(30)])
    deviation = draws.std(0)
    moved = deviation > 0
    # bfloat16 has no more digits than 8 bits give.
    assert moved.double().mean() > (0.05 if dtype == torch.bfloat16 else 0.3)
    z = ((draws.mean(0) - x.double()) / (deviation / 30**0.5))[moved]
    assert abs(z.mean()) < 0.2
    if dtype == torch.float32:
        assert z.square().mean() < 1.8


@in_every_format(keeps_values)
def test_c4_padding_is_in_no_range(name, bits, dtype):
    """Check values far from zero: sizes that do not fill a group are restored as closely as sizes that do.

    A transform's blocks are worse where zeros pad them, because its table removes the edge; no range is to blame. Full blocks
    of ``jpeg-gmc``, which saturates nothing, have so small an error that the edge is compared with the values.
    """
    maps = (100 + torch.rand(4, 8, 24, 24)).to(dtype)
    full = (there_and_back(name, bits, maps).double() - maps.double()).abs().max()
    sizes = ((1, 1, 9, 9), (3, 5, 17, 13), (1, 7, 7, 23), (2, 3, 9, 23))
    taken = [size for size in sizes if make(name, bits).fits(size)]
    assert len(taken) >= 3
    for n, c, h, w in taken:
        odd = maps[:n, :c, :h, :w]
        error = (there_and_back(name, bits, odd.contiguous()).double() - odd.double()).abs().max()
        bound = full + 0.2 * maps.max() if name == "jpeg-gmc" else (3 if transforms_blocks(name) else 1.5) * full
        assert error <= max(bound, 0.02)


@pytest.mark.parametrize("name", NAMES)
def test_c5_sizes(name):
    """Check vectors of 1 to 300 values and maps of odd sides, widths and formats in turn, with group edges in all of them."""
    variants = [(bits, dtype) for bits in widths(name) for dtype in FLOATS]
    edges = {1, 8, 9, 64, 65, 256, 257}
    codecs = {bits: make(name, bits) for bits in widths(name)}
    taken = 0
    for size in range(1, 301):
        for bits, dtype in variants if size in edges else [variants[size % len(variants)]]:
            codec = codecs[bits]
            shape = (size,) if codec.fits((size,)) else (1, 1, 8, size)
            if codec.fits(shape):
                taken += 1
                assert through(codec, torch.randn(shape).to(dtype)).isfinite().all()
    assert taken > 250
    for height, width in ((7, 7), (14, 14), (28, 28), (30, 17), (17, 30)):
        for bits, dtype in variants:
            if codecs[bits].fits((2, 3, height, width)):
                x = torch.randn(2, 3, height, width).to(dtype)
                y = through(codecs[bits], x).double()
                if keeps_values(name) and (bits is None or bits >= USUAL_BITS):
                    assert (y - x.double()).norm() < 0.3 * x.double().norm()


@in_every_format()
def test_c6_not_a_number_and_infinity(name, bits, dtype):
    """Check for an error with count and place, or, from a lossless codec, the value itself; or saturation on request."""
    for bad in (float("nan"), float("inf"), -float("inf")):
        x = torch.rand(2, 3, 8, 8).to(dtype)
        x[1, 2, 3, 4] = bad
        if is_lossless(name):
            assert torch.equal(there_and_back(name, bits, x).view(torch.uint8), x.view(torch.uint8))
            continue
        with pytest.raises(
            NonFiniteError, match=r"1 of 384 values are NaN or infinite \(channel 2 has 1\): correct the values"
        ):
            make(name, bits).compress(x)
        if has_option(name, "nonfinite"):
            y = there_and_back(name, bits, x, nonfinite="saturate").double()
            assert y.isfinite().all()
            y[1, 2, 3, 4] = 0
            assert y.abs().max() <= 4  # the other values are unchanged


@pytest.mark.parametrize("name", NAMES)
def test_c7_more_than_65535_groups(name):
    """Check groups of 64 and more values: whole maps, blocks, samples. The last ones must be as good as the first ones."""
    bits = widths(name)[-1]
    x = torch.randn(1, 1, 8, 8).bfloat16().expand(65_540, 1, 8, 8).contiguous()
    options = {"rounding": "nearest"} if is_stochastic(name) else {}
    y = there_and_back(name, bits, x, **options)
    assert torch.equal(y[-4:], y[:4])
    assert torch.equal(y[65_534:65_538], y[:4])


@every_value_variant
def test_c9_negative_numbers_are_rounded_as_positive_ones_are(name, bits):
    """Check that both signs round alike; rounding towards minus infinity would subtract half a step from both."""
    x = torch.rand(4, 4, 16, 16) * 0.8 + 0.05
    x[:, :, 0, 0], x[:, :, 8, 8] = 1, -1  # one range for both signs
    options = {"rounding": "nearest"} if is_stochastic(name) else {}
    inner = x.abs() < 1
    bias = [(there_and_back(name, bits, sign * x, **options) - sign * x)[inner].double().mean() for sign in (1, -1)]
    if bits is None or bits >= LEAST_BITS:
        assert abs(bias[0] + bias[1]) < 0.15 * step_of(bits)


def tensors_in(packed):
    """Return every tensor that a compressed form holds."""
    for field in fields(packed):
        part = getattr(packed, field.name)
        if isinstance(part, torch.Tensor):
            yield part
        elif is_dataclass(part):
            yield from tensors_in(part)


@in_every_format()
def test_c10_packed_bytes_decode_to_the_same_bits(name, bits, dtype):
    """Check that decoding uses nothing but a stream's bytes or the form's own tensors as bytes, and that all are counted."""
    codec = make(name, bits)
    packed = codec.compress(torch.randn(2, 4, 14, 17).to(dtype))
    values = codec.decompress(packed)
    assert sum(part.numel() * part.element_size() for part in tensors_in(packed)) <= packed.nbytes
    try:
        stream = packed.to_bytes()
    except UserError as error:
        assert "no bitstream: use" in str(error)  # noqa: PT017
        again = copy.deepcopy(packed).decompress()
    else:
        assert len(stream) == packed.nbytes
        again = actcodec.from_bytes(stream).decompress()
    assert torch.equal(again.view(torch.uint8), values.contiguous().view(torch.uint8))


@in_every_format()
def test_c11_decoding_after_the_codec_has_changed(name, bits, dtype):
    codec = make(name, bits)
    packed = codec.compress(torch.randn(2, 4, 16, 16).to(dtype))
    values = codec.decompress(packed)
    values_bytes = values.contiguous().view(torch.uint8).clone()
    codec.restart(7)
    codec.set_epoch(50)
    codec.compress(torch.randn(1, 3, 8, 24))
    if bits is not None:
        change_width(codec, next(other for other in widths(name) if other != bits))
    values.zero_()
    assert torch.equal(codec.decompress(packed).contiguous().view(torch.uint8), values_bytes)
    assert torch.equal(actcodec.decompress(packed).contiguous().view(torch.uint8), values_bytes)


@every_variant
def test_c14_the_path_under_test_is_the_cpus(name, bits):
    """Check that all results are on the CPU; test_codecs.py compares CUDA, if present, with the CPU."""
    packed = make(name, bits).compress(torch.randn(2, 4, 16, 16))
    assert {part.device.type for part in tensors_in(packed)} == {"cpu"}

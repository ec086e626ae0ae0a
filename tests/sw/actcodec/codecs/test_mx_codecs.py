"""Codecs of MX and NVFP4: bytes, blocks across rows, refusals; kernels with values that the codecs refuse."""

import actcodec
import pytest
import torch
from actcodec.backends.native import blocks as native
from actcodec.golden import mx
from actcodec.golden.floating import blocks as golden
from cdu_spec import UserError
from cdu_spec.bitstream import BitstreamError
from cdu_spec.mx import MX_FORMATS, NVFP4, ScaleRule

NAMES = [*MX_FORMATS, NVFP4]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


@pytest.mark.parametrize(("name", "block"), [("mxint8", 33), ("mxfp8-e5m2", 33), ("mxfp6-e2m3", 25), ("mxfp4", 17)])
def test_blocks_run_on_across_rows(name, block):
    """Check 3 * 5 * 13 = 195 values, 7 blocks; the last one is padded with zeros, which do not affect its scale."""
    x = torch.randn(3, 5, 13, generator=torch.Generator().manual_seed(1))
    packed = actcodec.codec(name, scale="rceil").compress(x)
    assert packed.payload.numel() == 7 * block
    filled = torch.cat((x.flatten(), torch.zeros(29))).view(7, 32)
    assert torch.equal(packed.payload.view(7, block), mx.encode(filled, MX_FORMATS[name], ScaleRule.RCEIL))
    assert torch.equal(
        packed.decompress().flatten(), mx.decode(packed.payload.view(7, block), MX_FORMATS[name]).flatten()[:195]
    )
    assert packed.nbytes == len(packed.to_bytes()) == 7 * block + 20 + 4 * 3 + 4


def test_nvfp4_counts_the_scale_of_the_tensor():
    packed = actcodec.codec(NVFP4).compress(torch.randn(4, 33))
    assert (packed.payload.numel(), packed.nbytes) == (9 * 9, 9 * 9 + 4 + 32 + 8)


@pytest.mark.parametrize("name", NAMES)
def test_the_last_axis_is_that_of_memory(name):
    x = torch.randn(2, 8, 6, 6).to(memory_format=torch.channels_last)
    assert torch.equal(actcodec.codec(name).compress(x).payload, actcodec.codec(name).compress(x.contiguous()).payload)


@pytest.mark.parametrize("scale", ["floor", "rceil"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_extremes_of_a_dtype_come_back_finite(dtype, scale):
    x = torch.tensor([torch.finfo(dtype).max, -torch.finfo(dtype).max, 1.0], dtype=dtype)
    for name in NAMES:
        options = {} if name == NVFP4 else {"scale": scale}
        y = actcodec.codec(name, **options).compress(x).decompress()
        assert y.isfinite().all()
        assert (y[:2] / x[:2] > 0.7).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MX_FORMATS)
def test_kernels_on_any_patterns(name, dtype):
    """Check NaN, infinity and codes that no encoder makes."""
    kind, random = MX_FORMATS[name], torch.Generator().manual_seed(2)
    x = torch.randint(0, 256, (20_003 * dtype.itemsize,), generator=random, dtype=torch.uint8).view(dtype)
    payload = torch.randint(0, 256, (626 * kind.block_bytes,), generator=random, dtype=torch.uint8)
    for rule in ScaleRule:
        assert torch.equal(golden.mx_codes(x, kind, rule), native.mx_codes(x, kind, rule))
    values = [one.mx_values(payload, kind, x.shape, dtype) for one in (golden, native)]
    assert torch.equal(*(one.isnan() for one in values))
    assert torch.equal(*(one.nan_to_num(0.0) for one in values))
    for one in (golden, native):
        with pytest.raises(BitstreamError, match="payload bytes are not 626 blocks"):
            one.mx_values(payload[1:], kind, x.shape, dtype)


@pytest.mark.parametrize("one", [golden, native], ids=["torch", "native"])
@pytest.mark.parametrize(
    ("dtype", "pattern"), [(torch.float32, 0x7FC00000), (torch.bfloat16, 0x7FC0), (torch.float16, 0x7E00)], ids=str
)
def test_every_nan_has_one_pattern(one, dtype, pattern):
    """Check the scale 255, and NaN of both signs among codes and scales, with whole vectors of values and some left over."""
    integers = torch.int32 if dtype == torch.float32 else torch.int16
    for scale, code in ((255, 0x38), (255, 0xB8), (127, 0x7F), (127, 0xFF)):
        payload = torch.tensor([scale] + [code] * 32, dtype=torch.uint8).repeat(2)
        values = one.mx_values(payload, MX_FORMATS["mxfp8-e4m3"], (37,), dtype)
        assert values.view(integers).tolist() == [pattern] * 37
    for scale in (0x7F, 0xFF):
        payload = torch.tensor([scale] + [0x2A] * 8, dtype=torch.uint8).repeat(3)
        values = one.nvfp4_values(payload, torch.tensor(1.0), (37,), dtype)
        assert values.view(integers).tolist() == [pattern] * 37


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: actcodec.codec("mxfp4", scale="even"), "scale = 'even' is not allowed: use floor or rceil"),
        (lambda: actcodec.codec("nvfp4", scale="floor"), "codec 'nvfp4' has no option 'scale'"),
        (lambda: actcodec.codec("nvfp4").compress(torch.ones(3)).to_bytes(), "codec 'nvfp4' has no bitstream"),
    ],
)
def test_refusals(act, message):
    with pytest.raises(UserError, match=message):
        act()


@pytest.mark.parametrize("name", MX_FORMATS)
def test_streams_say_the_format_and_no_rule(name):
    """Check that byte 10 is the format's number, byte 11 is 0 for either rule, and the bytes alone suffice to decode."""
    x = torch.randn(5, 33, generator=torch.Generator().manual_seed(3))
    for rule in ScaleRule:
        packed = actcodec.codec(name, scale=rule.value).compress(x)
        stream = packed.to_bytes()
        assert stream[4:12] == bytes((1, 11, 0, 2, 0, 0, MX_FORMATS[name].number, 0))
        assert stream[28:-4] == bytes(packed.payload.tolist())
        again = actcodec.from_bytes(stream)
        assert again.codec == name
        assert torch.equal(again.decompress(), packed.decompress())


@pytest.mark.parametrize(("place", "value"), [(10, 6), (10, 255), (11, 1), (11, 128), (8, 8), (12, 32)])
def test_headers_that_are_refused(place, value):
    stream = bytearray(actcodec.codec("mxint8").compress(torch.ones(32)).to_bytes())
    assert (stream[12], len(stream)) == (33, 20 + 4 + 33 + 4)
    stream[place] = value
    with pytest.raises(BitstreamError):
        actcodec.from_bytes(bytes(stream))


def test_policies_keep_signs_where_small_values_vanish():
    kept = {name for name in NAMES if actcodec.training.policy(name).keep_signs}
    assert kept == {"mxint8", "mxfp6-e2m3", "mxfp6-e3m2", "mxfp4", "nvfp4"}

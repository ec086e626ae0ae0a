"""Streams of all modes, read by a decoder written from docs/reference/bitstream.md with struct and loops."""

import struct
import zlib

import actcodec
import pytest
import torch
from cdu_spec.mx import MX_FORMATS, ScaleRule
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_stream import decode

FORMATS = [torch.float32, torch.bfloat16, torch.float16]
CODECS = [
    ("sfpr", {}),
    ("sfpr", {"scale_bits": 24, "S": 1.0}),
    ("sfpr+zvc", {}),
    ("brc", {}),
    ("bypass", {}),
    ("jpeg-act", {}),
    ("jpeg-act", {"dqt": "optH", "rounding": "trunc"}),
    ("jpeg-act", {"dqt": "image60", "const_bits": 13, "pass1_bits": 4, "scale_bits": 11}),
    ("jpeg-act", {"dqt": "uniform-16", "rec": 1 / 2}),
    ("jpeg-act", {"dqt": "image95", "rec": 1 / 8, "rounding": "half_away"}),
    ("jpeg-gmc", {}),
    ("jpeg-gmc", {"dqt": "optH", "rec": 0, "rounding": "half_away"}),
    ("jpeg-gmc", {"dqt": "uniform-2", "rec": 1 / 4, "const_bits": 13, "pass1_bits": 4, "scale_bits": 11}),
    ("division", {"range": "channel"}),
    ("division", {"range": "channel", "bits": 8, "step_log2": 3, "scale_bits": 24}),
    ("division", {"bits": 1, "rounding": "nearest"}),
    ("division", {"bits": 4}),
    ("actnn", {}),
    ("actnn", {"bits": 8, "scale_bits": 11}),
    ("blpa", {}),
    ("blpa", {"bits": 2, "step_log2": 0, "gamma": 0.5, "beta": 0.25}),
    ("autoquant", {}),
    ("autoquant", {"bits": 4, "error_bound": 0.3}),
    ("autoquantz", {"bits": 1}),
    ("autoquantz", {"bits": 2, "step_log2": 5}),
    ("autoquantz", {"bits": 4, "rounding": "nearest"}),
    ("autoquantz", {"bits": 8}),
    *((name, {"scale": rule.value}) for name in MX_FORMATS for rule in ScaleRule),
]


def check(x, name, options):
    packed = actcodec.codec(name, **options).compress(x)
    stream = packed.to_bytes()
    assert len(stream) == packed.nbytes
    form, values = decode(stream)
    assert FORMATS[form] == x.dtype
    expected = torch.from_numpy(values).to(x.dtype)
    for mine in (packed.decompress(), actcodec.from_bytes(stream).decompress()):
        assert mine.dtype == x.dtype
        assert torch.equal(mine, expected)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(("name", "options"), CODECS)
@settings(max_examples=12, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.integers(1, 70)),
    seed=st.integers(0, 2**31),
    relu=st.booleans(),
)
def test_independent_decoder_gives_the_same_values(name, options, dtype, shape, seed, relu):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=random) * 10.0 ** torch.randint(-3, 4, (1, shape[1], 1, 1), generator=random)
    check((x.relu() if relu else x).to(dtype), name, options)


@pytest.mark.parametrize("shape", [(1,), (7,), (64,), (3, 5), (2, 3, 7), (2, 3, 8), (2, 3, 65), (2, 2, 2, 2, 2), (1, 1, 1, 1)])
@pytest.mark.parametrize(
    "name", ["sfpr", "sfpr+zvc", "brc", "bypass", "actnn", "blpa", "autoquant", "autoquantz", "mxfp6-e3m2"]
)
def test_other_ranks(name, shape):
    check(torch.randn(shape, generator=torch.Generator().manual_seed(1)), name, {})


def test_known_bytes():
    """Check a stream worked out by hand: two values in mode sfpr+zvc with S = 1."""
    stream = actcodec.codec("sfpr+zvc", S=1.0).compress(torch.tensor([0.0, -4.0, 2.0])).to_bytes()
    body = bytes.fromhex("4344551a 01 02 00 01 00 00 0000 0a00000000000000 03000000 0000003d 0600000000000000 80 40")
    assert stream == body + zlib.crc32(body).to_bytes(4, "little")


def test_known_bytes_of_division():
    """Check a stream of 56 values of 2.0 and a column of -2.0; k is 32767 / 2 rounded down to 8 significant bits, 16320.

    Least value -32640, spread 65280, B = 3: d = 21760, e = 15 - 8 = 7, m = 21760 / 128 = 170, so that 3 steps are the spread.
    """
    x = torch.full((1, 1, 8, 8), 2.0)
    x[..., 0] = -2.0
    stream = actcodec.codec("division", rounding="nearest", scale_bits=8).compress(x).to_bytes()
    body = bytes.fromhex("4344551a 01 06 00 04 00 00 02 80 1400000000000000") + struct.pack("<4If", 1, 1, 8, 8, 1 / 16320)
    body += struct.pack("<hBB", -32640, 170, 7) + bytes([0xFC, 0xFF]) * 8
    assert stream == body + zlib.crc32(body).to_bytes(4, "little")


def test_known_bytes_of_bypass():
    """Check a stream worked out by hand: three bfloat16 values, 1.0, -2.0 and a NaN, and five of padding."""
    values = torch.tensor([0x3F80, 0xC000 - 0x10000, 0x7FC1], dtype=torch.int16).view(torch.bfloat16)
    body = bytes.fromhex("4344551a 01 05 01 01 00 00 0000 1000000000000000 03000000 803f 00c0 c17f") + bytes(10)
    assert actcodec.codec("bypass").compress(values).to_bytes() == body + zlib.crc32(body).to_bytes(4, "little")

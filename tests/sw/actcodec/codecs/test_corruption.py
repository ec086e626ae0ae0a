"""Corrupted and truncated streams: BitstreamError, never a crash, a wild read or a giant allocation. Rules: ../streams."""

import struct
import zlib

import actcodec
import pytest
import torch
from actcodec.saved.peak_memory import PeakMemory
from cdu_spec import BitstreamError
from cdu_spec.modes import MODE_CODECS
from hypothesis import given, settings
from hypothesis import strategies as st

NAMES = MODE_CODECS


def stream_of(name):
    x = torch.randn(2, 3, 3, 9, generator=torch.Generator().manual_seed(0)).relu()
    return actcodec.codec(name).compress(x).to_bytes()


def with_crc(body):
    return bytes(body) + zlib.crc32(bytes(body)).to_bytes(4, "little")


def read(stream):
    """Decode; return None when refused. Any other exception is a failure."""
    try:
        return actcodec.decompress(actcodec.from_bytes(stream))
    except BitstreamError:
        return None


@pytest.mark.parametrize("name", NAMES)
def test_every_flipped_byte_is_noticed(name):
    stream = stream_of(name)
    for place in range(len(stream)):
        for flip in (0x01, 0x80, 0xFF):
            bad = bytearray(stream)
            bad[place] ^= flip
            assert read(bytes(bad)) is None, (place, flip)


@pytest.mark.parametrize("name", NAMES)
def test_every_cut_and_any_addition_is_noticed(name):
    stream = stream_of(name)
    for end in range(len(stream)):
        assert read(stream[:end]) is None
    assert read(stream + b"\0") is None
    assert read(stream[1:]) is None


@pytest.mark.parametrize("name", NAMES)
def test_flips_under_a_right_checksum_never_crash(name):
    """Check that the decoder accepts the stream, with values in the header's shape, or refuses it."""
    body = stream_of(name)[:-4]
    refused = 0
    for place in range(len(body)):
        for flip in (0x01 << place % 8, 0xFF):
            bad = bytearray(body)
            bad[place] ^= flip
            result = read(with_crc(bad))
            if result is None:
                refused += 1
            else:
                assert 0 < result.numel() <= 32 * len(bad)
    assert refused > 20


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(NAMES), st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8), st.integers(0, 2**64 - 1))
def test_giant_shapes_are_refused_before_memory_is_taken(name, shape, payload_bytes):
    stream = stream_of(name)
    mode, form = stream[5], stream[6]
    precision = (8, 0) if name == "jpeg-act" else (0, 0)
    head = struct.pack("<4s6BHQ", b"CDU\x1a", 1, mode, form, len(shape), *precision, 0, payload_bytes)
    result = read(with_crc(head + struct.pack(f"<{len(shape)}I", *shape) + stream[36:]))
    assert result is None or result.numel() <= 32 * len(stream)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_arbitrary_bytes(data):
    assert read(data) is None or len(data) > 24
    read(with_crc(b"CDU\x1a\x01" + data))


def test_largest_claim_needs_little_memory():
    measured = PeakMemory(torch.device("cpu"))
    head = struct.pack("<4s6BHQ", b"CDU\x1a", 1, 1, 0, 4, 0, 0, 0, 2**40) + struct.pack("<4I", 2**10, 2**10, 2**10, 2**10)
    with pytest.raises(BitstreamError, match="truncated"):
        actcodec.from_bytes(with_crc(head + bytes(100)))
    assert measured.bytes is not None
    assert measured.bytes < 2**26

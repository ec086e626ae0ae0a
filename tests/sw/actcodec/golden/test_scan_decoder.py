"""Blocks of a segment up to its first error equal those of the fast decoder; errors occur where that decoder refuses."""

import pytest
import torch
from actcodec.golden.entropy_decoder import decode
from actcodec.golden.entropy_encoder import encode
from actcodec.golden.scan_decoder import blocks_of
from cdu_spec import BitstreamError
from cdu_spec.huffman import STANDARD
from hypothesis import given, settings
from hypothesis import strategies as st

BLOCKS = st.lists(st.dictionaries(st.integers(0, 63), st.integers(-1023, 1023), max_size=6), min_size=1, max_size=6)


def segment_of(blocks, huffman="standard"):
    coefficients = torch.zeros(len(blocks), 64, dtype=torch.int16)
    for row, block in zip(coefficients, blocks, strict=True):
        for place, value in block.items():
            row[place] = value
    tables, segment = encode(coefficients, huffman)
    return coefficients, tables, bytes(segment.tolist())


@pytest.mark.parametrize("huffman", ["standard", "optimal"])
@settings(max_examples=60)
@given(blocks=BLOCKS)
def test_right_segments(huffman, blocks):
    coefficients, tables, segment = segment_of(blocks, huffman)
    found, error = blocks_of(segment, tables)
    assert not error
    assert torch.equal(found, coefficients)


@settings(max_examples=200)
@given(BLOCKS, st.data())
def test_an_error_is_what_the_fast_decoder_refuses(blocks, data):
    segment = bytearray(segment_of(blocks)[2])
    for place in data.draw(st.lists(st.integers(0, len(segment) - 1), max_size=2)):
        segment[place] = data.draw(st.integers(0, 255))
    del segment[data.draw(st.integers(0, 2 * len(segment))) :]
    found, error = blocks_of(bytes(segment))
    payload = torch.tensor(list(segment), dtype=torch.uint8)
    if not error:
        assert torch.equal(decode(payload, len(found), STANDARD), found)
        return
    for count in range(1, len(found) + 3):
        with pytest.raises(BitstreamError):
            decode(payload, count, STANDARD)


def test_no_bytes_are_no_scan():
    found, error = blocks_of(b"")
    assert error
    assert found.shape == (0, 64)

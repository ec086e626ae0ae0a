"""The compiled entropy coder gives the golden model's bytes, tables, coefficients and error messages."""

import actcodec
import pytest
import torch
from actcodec.backends.native import entropy
from actcodec.golden import entropy_decoder, entropy_encoder
from actcodec.golden.entropy_encoder import HUFFMAN_KINDS
from cdu_spec.bitstream import BitstreamError
from cdu_spec.huffman import STANDARD
from hypothesis import given, settings
from hypothesis import strategies as st

DC, AC = st.integers(-1024, 1023), st.integers(-1023, 1023)
#: Blocks that are mostly zeros, so that runs of every length occur.
BLOCKS = st.lists(st.dictionaries(st.integers(1, 63), AC, max_size=12), min_size=1, max_size=8)


def blocks_of(places, dc):
    blocks = torch.zeros(len(places), 64, dtype=torch.int16)
    for block, found in zip(blocks, places, strict=True):
        block[0] = dc
        for place, value in found.items():
            block[place] = value
    return blocks


def said(call):
    """Return the result of a call, or the message of its error."""
    try:
        return call()
    except (BitstreamError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def same(found, expected):
    return found == expected if isinstance(expected, str) else torch.equal(found, expected)


@pytest.mark.parametrize("huffman", HUFFMAN_KINDS)
@settings(max_examples=300)
@given(BLOCKS, DC, st.booleans())
def test_same_bytes_and_back(huffman, places, dc, dense):
    blocks = blocks_of(places, dc)
    if dense:
        blocks[-1] = torch.randint(-1023, 1024, (64,), generator=torch.Generator().manual_seed(dc)).to(torch.int16)
    tables, segment = entropy.encode(blocks, huffman)
    golden_tables, golden_segment = entropy_encoder.encode(blocks, huffman)
    assert tables == golden_tables
    assert torch.equal(segment, golden_segment)
    assert torch.equal(entropy.decode(segment, len(blocks), tables), blocks)


@pytest.mark.parametrize("value", [-1025, 1024])
@pytest.mark.parametrize("place", [0, 1, 63])
def test_coefficients_out_of_range_are_refused(place, value):
    blocks = torch.zeros(3, 64, dtype=torch.int16)
    blocks[1, place] = value
    with pytest.raises(ValueError, match="not those of 8-bit samples"):
        entropy.encode(blocks, "standard")


@settings(max_examples=600)
@given(BLOCKS, st.sampled_from(HUFFMAN_KINDS), st.integers(-2, 2), st.data())
def test_changed_segments(places, huffman, more, data):
    """Check that segments with any content are read, or refused, as by the golden model."""
    tables, segment = entropy_encoder.encode(blocks_of(places, 100), huffman)
    for _ in range(data.draw(st.integers(0, 3))):
        segment[data.draw(st.integers(0, segment.numel() - 1))] = data.draw(st.sampled_from([0, 255, 1, 127, 0x55]))
    segment = torch.cat((segment, torch.tensor(data.draw(st.lists(st.sampled_from([0, 255]), max_size=3)), dtype=torch.uint8)))
    segment = segment[: data.draw(st.integers(max(0, segment.numel() - 3), segment.numel()))]
    count = max(1, len(places) + more)
    expected = said(lambda: entropy_decoder.decode(segment, count, tables))
    assert same(said(lambda: entropy.decode(segment, count, tables)), expected)


@settings(max_examples=600)
@given(st.binary(max_size=40), st.integers(1, 12))
def test_any_bytes(content, count):
    segment = torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else torch.empty(0, dtype=torch.uint8)
    expected = said(lambda: entropy_decoder.decode(segment, count, STANDARD))
    assert same(said(lambda: entropy.decode(segment, count, STANDARD)), expected)


def test_a_count_that_cannot_be_makes_no_room():
    segment = torch.zeros(10, dtype=torch.uint8)
    with pytest.raises(BitstreamError, match="ends before its last block does"):
        entropy.decode(segment, 1 << 40, STANDARD)


@pytest.mark.parametrize(("name", "options"), [("jpeg-base", {}), ("jpeg-base", {"huffman": "optimal"}), ("acgc-jpeg", {})])
@pytest.mark.parametrize("shape", [(2, 3, 9, 17), (4, 2, 32, 32)])
def test_codecs(name, options, shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1)).relu()
    golden, native = (actcodec.codec(name, **options, backend=backend) for backend in ("torch", "native"))
    packed, expected = native.compress(x), golden.compress(x)
    assert packed.to_bytes() == expected.to_bytes()
    assert torch.equal(native.decompress(packed), golden.decompress(expected))

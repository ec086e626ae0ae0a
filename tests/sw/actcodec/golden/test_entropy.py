"""Entropy-coded segments: libjpeg's bytes exactly, a bit-by-bit reader's values, and refusal of everything else."""

import numpy as np
import pytest
import torch
from actcodec.golden.entropy_decoder import decode
from actcodec.golden.entropy_encoder import HUFFMAN_KINDS, encode
from actcodec.golden.run_length import symbols
from cdu_spec import BitstreamError
from cdu_spec.huffman import STANDARD, HuffmanTable, HuffmanTables
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_jpeg import IMAGES, RefusedError, codes_of, libjpeg_file, read_file, read_segment

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def plain(segment, count, tables):
    codes = (codes_of(table.counts, table.symbols) for table in (tables.dc, tables.ac))
    return torch.from_numpy(read_segment(bytes(segment), count, *codes)).to(torch.int16)


def segment_of(words):
    """Return a segment from zeros and ones with spaces, padded with ones, a zero byte after every FF."""
    bits = words.replace(" ", "")
    bits += "1" * (-len(bits) % 8)
    whole = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    return torch.tensor(list(whole), dtype=torch.uint8)


def blocks_of(kind, count, seed):
    random = np.random.default_rng(seed)
    if kind == "zero":
        blocks = np.zeros((count, 64), dtype=int)
    elif kind == "extreme":
        blocks = random.choice([-1023, 1023], (count, 64))
        blocks[:, 0] = random.choice([-1024, 1023], count)
    elif kind == "last only":
        blocks = np.zeros((count, 64), dtype=int)
        blocks[:, 63] = random.integers(-1, 2, count)
    elif kind == "sparse":
        blocks = random.integers(-40, 41, (count, 64)) * (random.random((count, 64)) < random.random() * 0.1)
    else:
        blocks = (random.standard_normal((count, 64)) * np.geomspace(200, 0.2, 64)).round().clip(-1000, 1000).astype(int)
    return torch.from_numpy(blocks.astype(np.int16))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("huffman", HUFFMAN_KINDS)
@settings(max_examples=80)
@given(st.sampled_from(["zero", "extreme", "last only", "sparse", "natural"]), st.integers(1, 30), st.integers(0, 2**31))
def test_round_trip_and_a_reader_of_single_bits(device, huffman, kind, count, seed):
    blocks = blocks_of(kind, count, seed)
    tables, segment = encode(blocks.to(device), huffman)
    assert segment.device.type == device
    assert torch.equal(plain(segment.cpu().tolist(), count, tables), blocks)
    mine = decode(segment, count, tables)
    assert mine.device.type == device
    assert torch.equal(mine.cpu(), blocks)


@pytest.mark.parametrize("quality", [10, 50, 90, 100])
@pytest.mark.parametrize("name", IMAGES)
def test_libjpegs_bytes(name, quality):
    """Check that libjpeg's coefficients make its segment, and that its own optimal tables can be read, and beaten."""
    file = read_file(libjpeg_file(IMAGES[name](), quality=quality))
    coefficients = file.coefficients()
    blocks = torch.from_numpy(coefficients.astype(np.int16))
    tables, segment = encode(blocks)
    assert bytes(segment.tolist()) == file.segment
    assert torch.equal(decode(segment, file.blocks, tables), blocks)

    optimised = read_file(libjpeg_file(IMAGES[name](), quality=quality, optimize=True))
    theirs = HuffmanTables(HuffmanTable(*optimised.dc), HuffmanTable(*optimised.ac))
    payload = torch.tensor(list(optimised.segment), dtype=torch.uint8)
    assert torch.equal(decode(payload, file.blocks, theirs), blocks)
    mine, shorter = encode(blocks, "optimal")

    def bits(tables):
        numbers, _ = symbols(blocks)
        lengths = {**{s: c[1] for s, c in tables.ac.codes.items()}, **{256 + s: c[1] for s, c in tables.dc.codes.items()}}
        return sum(lengths[number] for number in numbers.tolist())

    assert bits(mine) <= bits(theirs)
    assert len(shorter) <= len(segment)


def test_known_bits():
    """Check bits worked out by hand with T.81's tables; the second block's run is counted from the block's start."""
    blocks = torch.zeros(2, 64, dtype=torch.int16)
    blocks[0, 0], blocks[0, 63] = 5, 1  # 62 zeros: three times sixteen, and fourteen
    blocks[1, 0], blocks[1, 2] = 5, -1
    zrl = "11111111001 "
    words = "100 101 " + 3 * zrl + "1111111111101011 1  00  1100 0 1010"
    _, segment = encode(blocks)
    assert segment.tolist() == segment_of(words).tolist()
    assert 0xFF in segment.tolist()
    assert torch.equal(decode(segment, 2, STANDARD), blocks)


def test_many_blocks_cross_every_piece():
    """Check more blocks, symbols and bytes than are processed at a time, and chains that end anywhere in a piece."""
    blocks = torch.cat([blocks_of("natural", 5000, 1), blocks_of("sparse", 14000, 2), blocks_of("extreme", 1500, 3)])
    for huffman in HUFFMAN_KINDS:
        tables, segment = encode(blocks, huffman)
        assert segment.numel() > 4 << 16
        assert torch.equal(decode(segment, len(blocks), tables), blocks)
    with pytest.raises(BitstreamError, match="ends before"):
        decode(segment[: 3 << 16], len(blocks), tables)


@pytest.mark.parametrize(("place", "value"), [(0, -1025), (0, 1024), (1, 1024), (63, -1024), (5, -32768)])
def test_coefficients_that_bytes_do_not_have(place, value):
    blocks = torch.zeros(3, 64, dtype=torch.int16)
    blocks[1, place] = value
    with pytest.raises(ValueError, match="8-bit samples"):
        encode(blocks)


def test_the_widest_difference_has_eleven_bits():
    blocks = torch.zeros(3, 64, dtype=torch.int16)
    blocks[:, 0] = torch.tensor([-1024, 1023, -1024])
    _, segment = encode(blocks)
    # Differences -1024, 2047, -2047; each block ends with EOB.
    words = "111111110 01111111111 1010  111111110 11111111111 1010  111111110 00000000000 1010"
    assert segment.tolist() == segment_of(words).tolist()


ZERO_BLOCK = "00 1010 "  # DC difference 0, end of block


@pytest.mark.parametrize(
    ("words", "count", "message"),
    [
        (ZERO_BLOCK * 4, 4, None),
        (ZERO_BLOCK * 3, 4, "no Huffman code"),
        ("00 1010 00 10", 2, "ends before"),
        (ZERO_BLOCK * 3 + "111110 11 ", 4, "ends before"),
        (ZERO_BLOCK * 5, 4, "does not end where"),
        (ZERO_BLOCK * 3 + "0000 00", 3, "does not end where"),
        (ZERO_BLOCK * 4 + "11111111", 4, "does not end where"),
        (ZERO_BLOCK + "00 0", 1, "does not end where"),
        ("00 " + "11111111001 " * 3 + "00 1 1010", 1, None),
        ("00 " + "11111111001 " * 4, 1, "run leaves"),
        ("00 " + "11111111001 " * 3 + "1111111111110101 1", 1, "run leaves"),
        ("00 " + "11111111001 " * 3 + "1111111111101011 1", 1, None),
        ("00 " + "11111111001 1010", 1, "not followed by a coefficient"),
        ("00 " + "11111111001 " * 3 + "1010", 1, "not followed by a coefficient"),
        ("00 00 1 11111111001 1010" + ZERO_BLOCK, 2, "not followed by a coefficient"),
        ("00 1111111111111111 " + ZERO_BLOCK, 1, "no Huffman code"),
        ("111111111 " + "1010 " * 8, 1, "no Huffman code"),
        ("1111110 111111111 1010  1111110 111111111 1010", 2, None),
        ("11111110 1111111111 1010  010 1 1010", 2, "DC coefficient"),
        ("111111110 01111111111 1010", 1, None),
        ("111111110 01111111110 1010", 1, "DC coefficient"),
    ],
)
def test_what_is_a_segment(words, count, message):
    segment = segment_of(words)
    if message is None:
        assert torch.equal(decode(segment, count, STANDARD), plain(segment.tolist(), count, STANDARD))
        return
    with pytest.raises(RefusedError):
        plain(segment.tolist(), count, STANDARD)
    with pytest.raises(BitstreamError, match=message):
        decode(segment, count, STANDARD)


@pytest.mark.parametrize("data", [b"\xff", b"\xff\xd9", b"\x2b\xff\xff\x00", b""])
def test_markers_and_nothing(data):
    with pytest.raises(BitstreamError):
        decode(torch.tensor(list(data), dtype=torch.uint8), 1, STANDARD)


@settings(max_examples=400)
@given(
    st.sampled_from(["zero", "last only", "sparse", "natural"]),
    st.integers(1, 6),
    st.integers(0, 2**31),
    st.sampled_from(HUFFMAN_KINDS),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=3),
    st.integers(-1, 1),
)
def test_damaged_segments_are_read_or_refused_as_bit_by_bit(kind, count, seed, huffman, damage, more):
    tables, segment = encode(blocks_of(kind, count, seed), huffman)
    for place, byte in damage:
        segment[place % len(segment)] = byte
    count = max(count + more, 1)
    try:
        expected = plain(segment.tolist(), count, tables)
    except RefusedError:
        with pytest.raises(BitstreamError):
            decode(segment, count, tables)
        return
    assert torch.equal(decode(segment, count, tables), expected)


@settings(max_examples=200)
@given(st.binary(max_size=60), st.integers(1, 20))
def test_arbitrary_bytes(data, count):
    segment = torch.tensor(list(data), dtype=torch.uint8)
    try:
        expected = plain(data, count, STANDARD)
    except RefusedError:
        with pytest.raises(BitstreamError):
            decode(segment, count, STANDARD)
        return
    assert torch.equal(decode(segment, count, STANDARD), expected)

"""GMC against vectors of another model, a plain decoder, and its own promises."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import plain_gmc
import pytest
import torch
from actcodec.golden import gmc
from actcodec.golden.block_starts import block_starts
from cdu_spec import BitstreamError
from cdu_spec import gmc as tables
from hypothesis import given, settings
from hypothesis import strategies as st

VECTORS = json.loads((Path(__file__).parents[3] / "support" / "gmc_vectors.json").read_text())


def as_tensor(payload: bytes) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(payload, dtype=np.uint8).copy())


def random_blocks(count, density, scale, seed):
    """Return Laplacian coefficients, some of them zero, some beyond int8 and saturated."""
    random = np.random.default_rng(seed)
    values = random.laplace(0, scale, (count, 64)) * (random.random((count, 64)) < density)
    return torch.from_numpy(values.round().clip(-128, 127).astype(np.int8))


def long_block(body: bytes) -> bytes:
    return bytes([175 + len(body)]) + body


def test_vectors_of_another_model():
    blocks = torch.tensor([vector["block"] for vector in VECTORS], dtype=torch.int8)
    expected = [bytes.fromhex(vector["bytes"]) for vector in VECTORS]
    payload, lengths = gmc.encode(blocks)
    assert payload.numpy().tobytes() == b"".join(expected)
    assert lengths.tolist() == [len(block) for block in expected]
    assert torch.equal(gmc.decode(as_tensor(b"".join(expected)), len(blocks)).view(-1, 64), blocks)
    assert [plain_gmc.decode_block(block) for block in expected] == blocks.tolist()


@given(st.integers(1, 40), st.floats(0, 1), st.floats(0, 90), st.integers(0, 2**32 - 1))
def test_what_is_encoded_decodes(count, density, scale, seed):
    blocks = random_blocks(count, density, scale, seed)
    payload, lengths = gmc.encode(blocks)
    assert int(lengths.sum()) == payload.numel()
    assert int(lengths.max()) <= tables.MAX_WRITTEN_BLOCK_BYTES == 77
    assert plain_gmc.decode(payload.numpy().tobytes(), count) == blocks.tolist()
    assert torch.equal(gmc.decode(payload, count), blocks.view(-1, 8, 8))
    assert torch.equal(gmc.encode(blocks.view(-1, 8, 8))[0], payload)


def test_bits_of_codes_are_those_that_the_plain_decoder_reads():
    blocks = torch.cat((torch.tensor([vector["block"] for vector in VECTORS], dtype=torch.int8), random_blocks(50, 0.4, 9, 0)))
    payload, lengths = gmc.encode(blocks)
    read = [plain_gmc.read_block(block.numpy().tobytes())[1:] for block in payload.split(lengths.tolist())]
    assert list(zip(*(figure.tolist() for figure in gmc.code_bits(blocks)), strict=True)) == read


@given(st.lists(st.sampled_from([-128, -127, -33, -32, -1, 0, 0, 0, 1, 2, 3, 32, 33, 127]), min_size=64, max_size=64))
def test_blocks_of_limits_decode(block):
    payload, _ = gmc.encode(torch.tensor([block], dtype=torch.int8))
    assert plain_gmc.decode_block(payload.numpy().tobytes()) == block
    assert gmc.decode(payload, 1).view(-1).tolist() == block


@settings(max_examples=300)
@given(st.binary(max_size=400), st.integers(0, 40))
def test_arbitrary_bytes_decode_as_the_plain_decoder_or_raise(payload, count):
    """Check any bytes: a right chain of heads decodes to the plain decoder's blocks, any other raises BitstreamError."""
    if plain_gmc.chain(payload, count) is None:
        with pytest.raises(BitstreamError):
            gmc.decode(as_tensor(payload), count)
    else:
        assert gmc.decode(as_tensor(payload), count).flatten(1).tolist() == plain_gmc.decode(payload, count)


@settings(max_examples=300)
@given(
    st.lists(
        st.integers(0, 255).flatmap(
            lambda head: st.binary(min_size=plain_gmc.body_bytes(head), max_size=plain_gmc.body_bytes(head)).map(
                lambda body: bytes([head]) + body
            )
        ),
        max_size=20,
    )
)
def test_any_bodies_decode_as_the_plain_decoder(blocks):
    payload = b"".join(blocks)
    starts = block_starts(as_tensor(payload), len(blocks), gmc.CHAIN)
    assert starts.tolist() == plain_gmc.chain(payload, len(blocks))
    assert gmc.decode_at(as_tensor(payload), starts).tolist() == [plain_gmc.decode_block(block) for block in blocks]


@pytest.mark.parametrize("byte", [0, 1, 0x55, 0xAA, 0xFE, 0xFF])
@pytest.mark.parametrize("head", [0, 7, 8, 199, 200, 255])
def test_bodies_of_one_byte_repeated(head, byte):
    block = bytes([head]) + bytes([byte]) * plain_gmc.body_bytes(head)
    assert gmc.decode(as_tensor(block * 3), 3).flatten(1).tolist() == [plain_gmc.decode_block(block)] * 3


def test_lengths_of_the_extremes():
    zero, least = torch.zeros(1, 64, dtype=torch.int8), torch.full((1, 64), -128, dtype=torch.int8)
    assert gmc.encode(zero)[0].tolist() == [0]
    payload, lengths = gmc.encode(least)
    assert lengths.tolist() == [77]
    assert payload[0] == 175 + 76
    assert torch.equal(gmc.decode(payload, 1).view(1, 64), least)
    assert (tables.MAX_WRITTEN_BODY_BYTES, tables.MAX_BODY_BYTES) == (76, 80)


def test_a_dc_of_the_least_value_takes_the_long_form():
    block = torch.zeros(1, 64, dtype=torch.int8)
    block[0, 0] = -128
    payload, lengths = gmc.encode(block)
    assert lengths.tolist() == [26]
    assert payload[0] == 200
    assert torch.equal(gmc.decode(payload, 1).view(1, 64), block)


@pytest.mark.parametrize("codes", [tables.A_CODES, tables.B_CODES, tables.MASK_CODES])
def test_every_table_is_complete_and_free_of_prefixes(codes):
    for row in codes:
        assert sum(Fraction(1, 2 ** len(word)) for word in row) == 1
        assert not any(a != b and b.startswith(a) for a in row for b in row)
        assert len(set(row)) == len(row)


@pytest.mark.parametrize(
    ("category", "bits", "dc"),
    [(8, 0b0000000_0, 127), (8, 0b1111111_0, 127), (8, 0b1111111_1, -128), (9, 0b0000000_1, -128), (15, 0b0000000_0, 127)],
)
def test_a_dc_beyond_int8_saturates_and_a_category_beyond_8_is_8(category, bits, dc):
    body = (category | bits << 4).to_bytes(25, "little")
    assert gmc.decode(as_tensor(long_block(body)), 1).flatten().tolist() == [dc] + [0] * 63


def test_bits_behind_the_last_coefficient_and_place_0_of_a_column_are_ignored():
    body = bytes([0b0000_0000])
    plain = gmc.decode(as_tensor(bytes([len(body) << 3]) + body), 1)
    noise = bytes([0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF])
    assert torch.equal(gmc.decode(as_tensor(bytes([len(noise) << 3]) + noise), 1), plain)
    # Class 1 in A of the first column ("001"), B zero, mask of place 0 alone ("00"); DC, of category 0, stays 0.
    word, zero = tables.A_CODES[tables.A_FIRST][2], tables.B_CODES[tables.B_FIRST][0]
    text = word + zero + tables.MASK_CODES[0][0]
    body = bytes([int(text[::-1], 2)])
    assert gmc.decode(as_tensor(bytes([8]) + body), 1).count_nonzero() == 0


def test_class_7_where_it_need_not_be_is_taken():
    text = tables.A_CODES[tables.A_FIRST][8] + tables.B_CODES[tables.B_FIRST][0] + tables.A_CODES[4][0]
    text += "".join(f"{value & 255:08b}"[::-1] for value in (0, 5, -1, 0))
    body = int(text[::-1], 2).to_bytes(-(-len(text) // 8), "little")
    assert gmc.decode(as_tensor(bytes([len(body) << 3]) + body), 1).flatten().tolist() == [0, 5, -1] + [0] * 61


def test_wrong_counts_and_cuts_raise():
    payload, _ = gmc.encode(random_blocks(100, 0.4, 5, 1))
    for count in (0, 1, 99, 101, 10**12):
        with pytest.raises(BitstreamError):
            gmc.decode(payload, count)
    for cut in (1, 7, payload.numel() // 2, payload.numel()):
        with pytest.raises(BitstreamError):
            gmc.decode(payload[:-cut], 100)
    with pytest.raises(BitstreamError):
        gmc.decode(torch.cat([payload, payload[:1]]), 100)


def test_more_blocks_than_a_piece_and_a_window(monkeypatch):
    from actcodec.golden import block_starts as starts

    monkeypatch.setattr(starts, "_WINDOW_BYTES", 1 << 12)
    monkeypatch.setattr(gmc, "_PIECE_BLOCKS", 700)
    blocks = random_blocks(3000, 0.3, 4, 2)
    payload, _ = gmc.encode(blocks)
    assert torch.equal(gmc.decode(payload, 3000).view(-1, 64), blocks)


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="blocks has dtype uint8: use int8"):
        gmc.encode(torch.zeros(1, 64, dtype=torch.uint8))
    with pytest.raises(ValueError, match=r"blocks has shape \(8, 63\)"):
        gmc.encode(torch.zeros(8, 63, dtype=torch.int8))
    with pytest.raises(TypeError, match="payload has dtype int8"):
        gmc.decode(torch.zeros(1, dtype=torch.int8), 1)

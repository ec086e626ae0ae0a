"""ZVC, block starts, bits, BRC and bypass against numpy and plain loops."""

import numpy as np
import pytest
import torch
from actcodec.golden import brc, bypass, zvc
from actcodec.golden.bits import pack_bits, popcount_, unpack_bits
from actcodec.golden.block_starts import block_starts
from cdu_spec import BitstreamError
from hypothesis import given, settings
from hypothesis import strategies as st


def plain_encode(blocks: np.ndarray) -> bytes:
    out = b""
    for block in blocks:
        out += np.packbits(block != 0, bitorder="little").tobytes() + block[block != 0].tobytes()
    return out


def plain_starts(payload: bytes, count: int):
    """Return offsets by following the chain; None if it does not end at the end of the payload."""
    starts, place = [], 0
    for _ in range(count):
        if place + 8 > len(payload):
            return None
        starts.append(place)
        place += 8 + sum(byte.bit_count() for byte in payload[place : place + 8])
    return starts if place == len(payload) else None


def random_blocks(count, density, seed):
    random = np.random.default_rng(seed)
    blocks = random.integers(-128, 128, (count, 64)).astype(np.int8)
    return blocks * (random.random((count, 64)) < density)


@given(st.integers(1, 300), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_encode_and_decode_against_a_plain_loop(count, density, seed):
    blocks = random_blocks(count, density, seed)
    payload = zvc.encode(torch.from_numpy(blocks))
    assert payload.numpy().tobytes() == plain_encode(blocks)
    assert block_starts(payload, count).tolist() == plain_starts(payload.numpy().tobytes(), count)
    assert np.array_equal(zvc.decode(payload, count).numpy(), blocks)


@pytest.mark.parametrize("fill", [0, 1, -1, -128, 127])
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 63, 64, 65, 511, 512, 513, 2000])
def test_constant_blocks_of_many_counts(fill, count):
    blocks = np.full((count, 64), fill, dtype=np.int8)
    payload = zvc.encode(torch.from_numpy(blocks))
    assert payload.numel() == count * (8 + 64 * (fill != 0))
    assert np.array_equal(zvc.decode(payload, count).numpy(), blocks)


def test_every_mask_population():
    blocks = np.tril(np.full((65, 64), 85, dtype=np.int8), -1)
    payload = zvc.encode(torch.from_numpy(blocks))
    assert payload.numpy().tobytes() == plain_encode(blocks)
    assert np.array_equal(zvc.decode(payload, 65).numpy(), blocks)


@settings(max_examples=300)
@given(st.binary(max_size=1500), st.integers(0, 40))
def test_arbitrary_bytes_decode_or_raise(payload, count):
    """Check any bytes: the chain equals that of the plain loop, or BitstreamError is raised."""
    data = torch.frombuffer(bytearray(payload), dtype=torch.uint8) if payload else torch.zeros(0, dtype=torch.uint8)
    expected = plain_starts(payload, count)
    if expected is None:
        with pytest.raises(BitstreamError):
            block_starts(data, count)
        with pytest.raises(BitstreamError):
            zvc.decode(data, count)
    else:
        assert block_starts(data, count).tolist() == expected
        assert zvc.decode(data, count).shape == (count, 64)


def test_wrong_counts_and_cuts_raise():
    blocks = random_blocks(100, 0.4, 1)
    payload = zvc.encode(torch.from_numpy(blocks))
    for count in (0, 1, 99, 101, 10**12):
        with pytest.raises(BitstreamError):
            zvc.decode(payload, count)
    for cut in (1, 7, 8, 9, payload.numel() // 2, payload.numel()):
        with pytest.raises(BitstreamError):
            zvc.decode(payload[:-cut], 100)
    with pytest.raises(BitstreamError):
        zvc.decode(torch.cat([payload, payload[:1]]), 100)


def test_a_value_byte_of_zero_is_taken():
    payload = torch.tensor([3, 0, 0, 0, 0, 0, 0, 0, 0, 5], dtype=torch.uint8)
    assert zvc.decode(payload, 1)[0, :3].tolist() == [0, 5, 0]


def test_noncontiguous_blocks():
    blocks = torch.from_numpy(random_blocks(64, 0.5, 3))
    assert torch.equal(zvc.encode(blocks.T), zvc.encode(blocks.T.contiguous()))


@given(st.lists(st.booleans(), min_size=1, max_size=40).map(lambda flags: flags * 8))
def test_bits_against_numpy(flags):
    packed = pack_bits(torch.tensor(flags))
    assert np.array_equal(packed.numpy(), np.packbits(flags, bitorder="little"))
    assert unpack_bits(packed).tolist() == flags


def test_popcount_of_every_byte():
    assert popcount_(torch.arange(256, dtype=torch.uint8)).tolist() == [byte.bit_count() for byte in range(256)]


@given(st.lists(st.floats(width=32), min_size=1, max_size=70))
def test_brc_against_numpy(values):
    payload = brc.encode(torch.tensor(values))
    positive = np.array(values, dtype=np.float32) > 0
    assert np.array_equal(payload.numpy(), np.packbits(positive, bitorder="little"))
    assert np.array_equal(brc.decode(payload, len(values)).numpy(), positive.astype(np.float32))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=30))
def test_bypass_against_numpy(dtype, patterns):
    """Check all bit patterns, NaN with any payload included: whole beats, zeros at the end, no shared memory."""
    bits = np.array(patterns, dtype="<u4").astype(f"<u{dtype.itemsize}")
    values = torch.from_numpy(bits.view(f"<i{dtype.itemsize}").copy()).view(dtype)
    payload = bypass.encode(values)
    assert payload.numpy().tobytes() == bits.tobytes() + bytes(-len(bits) % 8 * dtype.itemsize)
    back = bypass.decode(payload, len(bits), dtype)
    assert back.dtype == dtype
    payload.zero_()
    assert back.view(torch.uint8).numpy().tobytes() == values.view(torch.uint8).numpy().tobytes() == bits.tobytes()


def test_bypass_decodes_at_any_offset():
    payload = torch.arange(33, dtype=torch.uint8)[1:]
    assert bypass.decode(payload, 8, torch.float32).view(torch.uint8).tolist() == list(range(1, 33))


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="blocks has dtype uint8: use int8"):
        zvc.encode(torch.zeros(1, 64, dtype=torch.uint8))
    with pytest.raises(ValueError, match=r"blocks has shape \(8, 8\)"):
        zvc.encode(torch.zeros(8, 8, dtype=torch.int8))
    with pytest.raises(BitstreamError, match="2 payload bytes do not hold 8 bits"):
        brc.decode(torch.zeros(2, dtype=torch.uint8), 8)
    with pytest.raises(BitstreamError, match="30 payload bytes do not hold 8 values of 4 bytes"):
        bypass.decode(torch.zeros(30, dtype=torch.uint8), 8, torch.float32)
    with pytest.raises(TypeError, match="values has dtype int32"):
        bypass.encode(torch.zeros(8, dtype=torch.int32))

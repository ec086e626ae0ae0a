"""Exact copies in containers."""

import struct
import zlib

import numpy as np
import plain_container
import pytest
import torch
from actcodec.codecs import exact_copy
from actcodec.codecs.exact_copy import NUMBER_FORMATS, ExactCopy, ExactHeader
from cdu_spec.bitstream import BitstreamError
from cdu_tools.errors import UserError


@pytest.mark.parametrize("dtype", NUMBER_FORMATS, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (3, 5), (2,) * 9])
def test_every_number_format_and_shape_comes_back(dtype, shape):
    x = (torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 50).to(dtype)
    copy = ExactCopy.of(x)
    stream = copy.to_bytes()
    assert len(stream) == copy.nbytes == sum(copy.header.sections.values())
    back = exact_copy.parse(stream).decompress()
    assert (back.dtype, back.shape) == (dtype, x.shape)
    assert torch.equal(back, x)
    number, found, values = plain_container.read_exact(stream)
    assert found == shape
    if plain_container.FORMATS[number] is None:
        assert dtype is torch.bfloat16
        assert np.array_equal(np.frombuffer(values, "<i2"), x.view(torch.int16).reshape(-1).numpy())
    else:
        assert np.array_equal(np.frombuffer(values, plain_container.FORMATS[number]), x.reshape(-1).numpy())


def test_nan_and_layout_are_kept():
    x = torch.tensor([[float("nan"), float("inf")], [-0.0, 1e-45]]).t()
    back = exact_copy.parse(ExactCopy.of(x).to_bytes()).decompress()
    assert torch.equal(back.view(torch.int32), x.contiguous().view(torch.int32))


def test_bad_streams():
    whole = ExactCopy.of(torch.ones(2, 3)).to_bytes()
    for bad in (b"", whole[:7], whole[:20], whole[:-1], whole + b"\0", b"CDU" + whole[3:]):
        with pytest.raises(BitstreamError):
            exact_copy.parse(bad)
    for place in range(len(whole)):
        bad = bytearray(whole)
        bad[place] ^= 0x80
        with pytest.raises(BitstreamError):
            exact_copy.parse(bytes(bad))


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (torch.ones(2, dtype=torch.complex64), "dtype complex64: use float32, "),
        (torch.ones(2).to_sparse(), "sparse"),
    ],
)
def test_what_has_no_exact_copy(x, said):
    with pytest.raises(UserError, match=said):
        ExactCopy.of(x)


def test_the_highest_rank():
    x = torch.ones((1,) * 64, dtype=torch.int8)
    assert exact_copy.parse(ExactCopy.of(x).to_bytes()).decompress().shape == x.shape
    with pytest.raises(BitstreamError, match="ranks up to 64"):
        ExactHeader(torch.int8, (1,) * 65)
    with pytest.raises(BitstreamError, match="header of an exact copy is not allowed"):
        ExactHeader.unpack_start(b"CDX\x1a\1\6\x41\0" + bytes(8 * 65))


@pytest.mark.parametrize(
    ("number", "shape", "fits"),
    [
        (6, (0, 2**63 - 1), True),
        (6, (0, 2**63), False),
        (3, (0, 2**60 - 1), True),
        (3, (2**60, 0), False),
        (6, (2**31, 0, 2**31), True),
        (6, (2**31, 0, 2**32), False),
        (6, (0, 2**64 - 1), False),
    ],
)
def test_extents_beside_one_of_zero(number, shape, fits):
    head = struct.pack(f"<4s4B{len(shape)}Q", b"CDX\x1a", 1, number, len(shape), 0, *shape)
    stream = head + struct.pack("<I", zlib.crc32(head))
    if fits:
        back = exact_copy.parse(stream).decompress()
        assert back.shape == shape
        assert back.numpy().shape == shape
    else:
        with pytest.raises(BitstreamError, match=r"does not fit an exact copy: .* below 2\*\*63 bytes do"):
            exact_copy.parse(stream)


def test_a_bool_is_zero_or_one():
    """Any other byte would be a bool that equals neither."""
    stream = ExactCopy.of(torch.tensor([True, False])).to_bytes()
    assert stream[16:18] == b"\1\0"
    bad = stream[:16] + b"\2\0"
    with pytest.raises(BitstreamError, match="a bool is neither 0 nor 1"):
        exact_copy.parse(bad + struct.pack("<I", zlib.crc32(bad)))

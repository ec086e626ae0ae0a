"""Planes: codes in bytes."""

import pytest
import torch
from actcodec.graph.planes import codes_per_byte, pack_planes, plane_bytes, unpack_planes


@pytest.mark.parametrize("bits", [2, 4, 6, 8])
@pytest.mark.parametrize("axis", [-1, -2, -3])
def test_codes_come_back_from_as_many_bytes_as_they_have_bits(bits: int, axis: int) -> None:
    shape = [3, 5, 2]
    shape.insert(len(shape) + 1 + axis, codes_per_byte(bits))
    codes = torch.randint(0, 1 << bits, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(bits))
    planes = pack_planes(codes, bits, axis)
    assert torch.equal(unpack_planes(planes, bits, axis), codes)
    assert sum(plane.numel() for plane in planes) == plane_bytes(codes.numel(), bits) == codes.numel() * bits // 8


def test_places_in_bytes() -> None:
    codes = torch.tensor([[0x21, 0x03], [0x16, 0x2F], [0x3F, 0x00], [0x0A, 0x35]], dtype=torch.uint8)
    low, high = pack_planes(codes, 6, -2)
    assert low.tolist() == [[0x61, 0xF3], [0xAF, 0x50]]
    assert high.tolist() == [[0b00_11_01_10, 0b11_00_10_00]]


def test_higher_bits_do_not_reach_other_codes() -> None:
    codes = torch.full((2, 4), 0xFF, dtype=torch.uint8)
    codes[1] = 0
    assert pack_planes(codes, 4, -2)[0].tolist() == [[0x0F] * 4]

"""Payloads that no encoder wrote are decoded, or refused with the golden model's messages; no byte outside is read."""

from dataclasses import replace

import actcodec
import pytest
import torch
from backend_cases import PAYLOAD_CASES, decoded, extreme_coefficients, spoiled
from hypothesis import given, settings


@settings(max_examples=400)
@given(spoiled())
def test_changed_payloads(bad):
    expected, found = decoded(bad, "torch"), decoded(bad, "native")
    if isinstance(expected, str):
        assert found == expected
    else:
        assert torch.equal(found.view(torch.uint8), expected.view(torch.uint8))


def test_flipped_bytes_are_refused_as_often():
    """Check that refusals have several kinds."""
    said = set()
    for name, options in PAYLOAD_CASES:
        packed = actcodec.codec(name, **options).compress(torch.randn(2, 2, 9, 16))
        for place in range(packed.payload.numel()):
            payload = packed.payload.clone()
            payload[place] ^= 0xFF
            found = decoded(replace(packed, payload=payload), "native")
            if isinstance(found, str):
                said.add(found)
    assert "corrupted stream: the step of a block is out of range" in said
    assert any("blocks do not end" in text for text in said)


@pytest.mark.parametrize("const_bits", [8, 10, 12, 13])
@pytest.mark.parametrize("pass1_bits", [0, 2, 4])
@pytest.mark.parametrize("kind", ["random", "corners", "one sign"])
def test_inverse_transform_of_any_coefficients(const_bits, pass1_bits, kind):
    packed = extreme_coefficients(const_bits, pass1_bits, kind)
    assert torch.equal(packed.decompress("native"), packed.decompress("torch"))

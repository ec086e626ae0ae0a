"""Payloads that no encoder wrote: decoded, or refused in the golden model's words; nothing outside them is read."""

from dataclasses import replace

import actcodec
import numpy as np
import pytest
import torch
from cdu_spec.bitstream import BitstreamError, Dtype, Header, Mode
from hypothesis import given, settings
from hypothesis import strategies as st

CASES = [
    ("sfpr", {}),
    ("sfpr+zvc", {}),
    ("jpeg-act", {}),
    ("jpeg-act", {"rec": 1 / 2}),
    ("jpeg-gmc", {}),
    ("jpeg-gmc", {"dqt": "uniform-1"}),
    ("brc", {}),
    ("division", {"bits": 8}),
    ("division", {"range": "channel", "bits": 2}),
    ("actnn", {"bits": 8}),
    ("actnn", {"bits": 1}),
    ("blpa", {}),
    ("autoquant", {"bits": 2}),
    ("autoquantz", {"bits": 1}),
    ("autoquantz", {"bits": 2}),
    ("autoquantz", {"bits": 4}),
    ("autoquantz", {"bits": 8}),
]


def decoded(packed, backend):
    """The tensor, or what the refusal says."""
    try:
        return packed.decompress(backend)
    except BitstreamError as error:
        return str(error)


@settings(max_examples=400)
@given(st.sampled_from(CASES), st.integers(0, 999), st.data())
def test_changed_payloads(case, seed, data):
    name, options = case
    x = torch.randn(2, 2, 9, 16, generator=torch.Generator().manual_seed(seed)).relu()
    packed = actcodec.codec(name, **options).compress(x)
    payload = packed.payload.clone()
    for _ in range(data.draw(st.integers(1, 3))):
        payload[data.draw(st.integers(0, payload.numel() - 1))] = data.draw(st.integers(0, 255))
    change = data.draw(st.sampled_from(["none", "cut", "longer"]))
    if change == "cut":
        payload = payload[: data.draw(st.integers(0, payload.numel() - 1))].clone()
    elif change == "longer":
        payload = torch.cat((payload, torch.full((data.draw(st.integers(1, 80)),), 255, dtype=torch.uint8)))
    bad = replace(packed, payload=payload)
    expected, found = decoded(bad, "torch"), decoded(bad, "native")
    if isinstance(expected, str):
        assert found == expected
    else:
        assert torch.equal(found.view(torch.uint8), expected.view(torch.uint8))


def test_flipped_bytes_are_refused_as_often():
    """The refusals above are not all of one kind."""
    said = set()
    for name, options in CASES:
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
    """Coefficients that no picture has, up to both ends of their range: sums of 35 bits, which 32 do not hold."""
    random = np.random.default_rng(const_bits * 10 + pass1_bits)
    count = 512
    if kind == "random":
        q = random.integers(1, 128, (count, 64)) * random.choice([-1, 1], (count, 64))
    else:
        signs = random.choice([-1, 1], (count, 64)) if kind == "corners" else np.ones((count, 64), int)
        q = np.where(signs > 0, 127, -128)
    payload = np.concatenate((np.full((count, 8), 255), q & 255), 1).astype(np.uint8).reshape(-1)
    shape = (1, 1, 8, 8 * count)
    header = Header(Mode.JPEG_ACT, Dtype.FP32, shape, payload.size, const_bits, pass1_bits)
    packed = actcodec.Compressed(header, (7,) * 64, torch.ones(1), torch.from_numpy(payload))
    assert torch.equal(packed.decompress("native"), packed.decompress("torch"))

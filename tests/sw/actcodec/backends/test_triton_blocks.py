"""Blocks of MX and NVFP4 by kernels are the golden model's for any patterns: NaN, infinity, codes that no encoder makes."""

import pytest
import torch
from actcodec.golden.floating import blocks as golden
from backend_cases import FLOATS, same_bits
from cdu_spec.bitstream import BitstreamError
from cdu_spec.mx import MX_FORMATS, NVFP4_FORMAT, ScaleRule
from triton_here import DEVICE, needs_kernels

pytestmark = needs_kernels
#: Values of several programs, the last of which has a part of a block.
COUNT = 2_500


def any_bytes(count, seed):
    return torch.randint(0, 256, (count,), generator=torch.Generator().manual_seed(seed), dtype=torch.uint8)


def payload_of(kind):
    return any_bytes(-(-COUNT // kind.values) * kind.block_bytes, 1)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", MX_FORMATS)
def test_blocks_of_mx(name, dtype):
    from actcodec.backends.triton import blocks

    kind, x = MX_FORMATS[name], any_bytes(COUNT * dtype.itemsize, 0).view(dtype)
    x[64:96] = 1e-42  # subnormal in float32, zeros otherwise
    for rule in ScaleRule:
        assert torch.equal(blocks.mx_codes(x.to(DEVICE), kind, rule).cpu(), golden.mx_codes(x, kind, rule))
    payload = payload_of(kind)
    found = blocks.mx_values(payload.to(DEVICE), kind, (COUNT,), dtype)
    assert same_bits(found.cpu(), golden.mx_values(payload, kind, (COUNT,), dtype))
    with pytest.raises(BitstreamError, match="payload bytes are not"):
        blocks.mx_values(payload[1:].to(DEVICE), kind, (COUNT,), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("factor", [0.0, 1e-41, 1e-3, 1.0, 6e4])
def test_blocks_of_nvfp4(factor, dtype):
    from actcodec.backends.triton import blocks

    x = (torch.randn(COUNT, generator=torch.Generator().manual_seed(2)) * factor).clamp(-6e4, 6e4).to(dtype)
    x[:32] *= 2.0**-12
    largest = x.abs().amax().to(torch.float32)
    found, expected = blocks.nvfp4_codes(x.to(DEVICE), largest.to(DEVICE)), golden.nvfp4_codes(x, largest)
    assert all(torch.equal(a.cpu(), b) for a, b in zip(found, expected, strict=True))
    for payload in (expected[0], payload_of(NVFP4_FORMAT)):
        values = blocks.nvfp4_values(payload.to(DEVICE), expected[1].to(DEVICE), (COUNT,), dtype)
        assert same_bits(values.cpu(), golden.nvfp4_values(payload, expected[1], (COUNT,), dtype))

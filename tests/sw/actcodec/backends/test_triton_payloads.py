"""Payloads that no encoder wrote are decoded by backend triton, or refused with the golden model's messages."""

from dataclasses import replace

import pytest
import torch
from actcodec.golden.block_starts import block_starts
from backend_cases import PAYLOAD_CASES, decoded, extreme_coefficients, spoiled
from cdu_spec.modes import Coder
from hypothesis import given, settings
from hypothesis import strategies as st
from triton_here import DEVICE, MORE, needs_kernels

pytestmark = needs_kernels


def there(packed):
    return replace(packed, payload=packed.payload.to(DEVICE))


def check(packed):
    expected, found = decoded(packed, "torch"), decoded(there(packed), "triton")
    if isinstance(expected, str):
        assert found == expected
    else:
        assert torch.equal(found.cpu().view(torch.uint8), expected.view(torch.uint8))


@settings(max_examples=40 * MORE, deadline=None)
@given(spoiled())
def test_changed_payloads(packed):
    check(packed)


@pytest.mark.parametrize(("name", "options"), PAYLOAD_CASES)
def test_intact_payloads(name, options):
    import actcodec

    check(actcodec.codec(name, **options).compress(torch.randn(2, 2, 9, 16)))


@pytest.mark.parametrize(("const_bits", "pass1_bits"), [(8, 0), (12, 2), (13, 4)])
@pytest.mark.parametrize("kind", ["random", "corners", "one sign"])
def test_inverse_transform_of_any_coefficients(const_bits, pass1_bits, kind):
    check(extreme_coefficients(const_bits, pass1_bits, kind, count=20))


@settings(max_examples=8 * MORE, deadline=None)
@given(st.sampled_from(list(Coder)), st.integers(1, 400), st.integers(0, 999), st.integers(-1, 1))
def test_starts_of_blocks_in_any_bytes(coder, count, seed, more):
    """Check chains of random heads through several segments; a block more or less than the count must be noticed."""
    from actcodec.backends.triton.block_starts import UNIT_BLOCKS, unit_offsets
    from actcodec.golden import gmc
    from actcodec.golden.block_starts import mask_chain

    payload, chain = chained(coder, count, seed), gmc.CHAIN if coder is Coder.GMC else mask_chain()
    found = unit_offsets(payload.to(DEVICE), count + more, coder)
    if more:
        assert found is None
    else:
        assert torch.equal(found.cpu(), block_starts(payload, count, chain)[:: UNIT_BLOCKS.value])


def chained(coder, count, seed):
    """Return the bytes of ``count`` blocks with random heads, sparse and full ones."""
    random = torch.Generator().manual_seed(seed)
    blocks = []
    for _ in range(count):
        if coder is Coder.GMC:
            head = torch.randint(0, 256, (1,), generator=random).to(torch.uint8)
            from cdu_spec.gmc import block_bytes

            blocks += [head, torch.randint(0, 256, (block_bytes(int(head)) - 1,), generator=random).to(torch.uint8)]
        else:
            mask = torch.randint(0, 256, (8,), generator=random) & -int(torch.randint(0, 2, (1,), generator=random))
            ones = sum(int(byte).bit_count() for byte in mask)
            blocks += [mask.to(torch.uint8), torch.randint(0, 256, (ones,), generator=random).to(torch.uint8)]
    return torch.cat(blocks)

"""A kernel that stores the multipliers that kernels of backend triton compute."""

import torch
import triton
import triton.language as tl
from actcodec.backends.triton.launch import launch
from actcodec.backends.triton.scales import multipliers


@triton.jit
def _store_kernel(
    scales_ptr: tl.tensor,
    rule_ptr: tl.tensor,
    k_ptr: tl.tensor,
    channels: tl.tensor,
    scale_dropped: tl.constexpr,
    tile: tl.constexpr,
) -> None:
    channel = tl.arange(0, tile)
    k = multipliers(scales_ptr, rule_ptr, channel, channel < channels, scale_dropped)
    tl.store(k_ptr + channel, k, mask=channel < channels)


def multipliers_of(scales):
    """Return the multipliers of ``scales``, float32 (channels,)."""
    k = torch.empty(scales.channels, dtype=torch.float32, device=scales.numbers.device)
    tile = triton.next_power_of_2(scales.channels)
    launch(_store_kernel, 1, scales.numbers, scales.rule, k, scales.channels, scale_dropped=scales.dropped, tile=tile)
    return k

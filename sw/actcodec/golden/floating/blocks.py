"""Arithmetic of MX and NVFP4: blocks of consecutive finite values in the order of memory, the last one padded with zeros.

:mod:`actcodec.golden.mx` and :mod:`actcodec.golden.nvfp4` specify the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

import torch
from cdu_spec.mx import NVFP4_FORMAT, BlockFormat, ScaleRule
from torch import Tensor

from actcodec.golden import mx, nvfp4
from actcodec.golden.formats import as_dtype
from actcodec.golden.pieces import piece_values


def mx_codes(x: Tensor, kind: BlockFormat, rule: ScaleRule) -> Tensor:
    """Return the blocks of x with any strides, uint8 (blocks * kind.block_bytes,)."""
    return _coded(x, kind, lambda values: mx.encode(values, kind, rule))


def mx_values(payload: Tensor, kind: BlockFormat, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Return the values of a payload, limited to the dtype's range; raise BitstreamError for another length.

    Every NaN is 0x7FC00000 in float32, 0x7FC0 in bfloat16 and 0x7E00 in float16.
    """
    return _decoded(payload, kind, shape, dtype, lambda blocks: mx.decode(blocks, kind))


def nvfp4_codes(x: Tensor, largest: Tensor) -> tuple[Tensor, Tensor]:
    """Return blocks as :func:`mx_codes` does, and the scale of a tensor whose largest magnitude, float32 (), is given."""
    scale = nvfp4.tensor_scale(largest)
    return _coded(x, NVFP4_FORMAT, lambda values: nvfp4.encode(values, scale)), scale


def nvfp4_values(payload: Tensor, scale: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Return values as :func:`mx_values` does, with the scale of the tensor, float32 ()."""
    return _decoded(payload, NVFP4_FORMAT, shape, dtype, lambda blocks: nvfp4.decode(blocks, scale))


def _coded(x: Tensor, kind: BlockFormat, encode: Callable[[Tensor], Tensor]) -> Tensor:
    flat = x.reshape(-1)
    payload = torch.empty(-(-flat.numel() // kind.values), kind.block_bytes, dtype=torch.uint8, device=x.device)
    for part in _block_pieces(flat.numel(), kind, x.device):
        values = flat[part.start * kind.values : part.stop * kind.values].to(torch.float32)
        missing = (part.stop - part.start) * kind.values - values.numel()
        payload[part] = encode(torch.nn.functional.pad(values, (0, missing)).view(-1, kind.values))
    return payload.view(-1)


def _decoded(
    payload: Tensor, kind: BlockFormat, shape: Sequence[int], dtype: torch.dtype, decode: Callable[[Tensor], Tensor]
) -> Tensor:
    count = prod(shape)
    blocks, rebuilt = mx.blocks_of(payload, count, kind), torch.empty(count, dtype=dtype, device=payload.device)
    for part in _block_pieces(count, kind, payload.device):
        target = rebuilt[part.start * kind.values : part.stop * kind.values]
        # On some CPUs, torch makes another NaN of a float32 NaN.
        target.copy_(mx.canonical_(as_dtype(decode(blocks[part]).view(-1)[: target.numel()], dtype)))
    return rebuilt.view(tuple(shape))


def _block_pieces(count: int, kind: BlockFormat, device: torch.device) -> Iterator[slice]:
    """Yield the blocks of ``count`` values in pieces."""
    blocks, step = -(-count // kind.values), piece_values(count, device) // kind.values
    return (slice(first, min(first + step, blocks)) for first in range(0, blocks, step))

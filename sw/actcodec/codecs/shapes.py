"""Shapes: tensors by channel, and the bytes that a shape costs in forms without a stream."""

from __future__ import annotations

from math import prod

from torch import Tensor

#: What a stream would need beside the parts: format, rank, dimensions, flags, and the lengths of the sections.
_FIXED_BYTES = 32
_EXTENT_BYTES = 4


def header_bytes(shape: tuple[int, ...]) -> int:
    """Bytes that are counted for the header of a predicted and entropy-coded tensor."""
    return _FIXED_BYTES + _EXTENT_BYTES * len(shape)


def channels_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Extents of :func:`per_channel`. Channels are counted by the second axis; a tensor of rank 1 is one."""
    return (1, 1, shape[0]) if len(shape) == 1 else (shape[0], shape[1], prod(shape[2:]))


def per_channel(x: Tensor) -> Tensor:
    """A tensor as (N, channels, n)."""
    return x.reshape(channels_shape(tuple(x.shape)))

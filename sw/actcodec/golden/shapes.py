"""Shapes: tensors by channel and in boxes, and the size of a shape in forms without a stream."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import torch
from torch import Tensor

from actcodec.golden.pieces import piece_values

#: Samples, channels and values of a part of a tensor (N, channels, n). The part is contiguous in memory.
Box = tuple[slice, slice, slice]

#: Bytes that a stream would need beside the parts: format, rank, dimensions, flags, and the lengths of the sections.
_FIXED_BYTES = 32
_EXTENT_BYTES = 4


def header_bytes(shape: tuple[int, ...]) -> int:
    """Return the bytes that count as the header of a predicted and entropy-coded tensor."""
    return _FIXED_BYTES + _EXTENT_BYTES * len(shape)


def channels_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return the extents of :func:`per_channel`. Axis 1 counts channels; a tensor of rank 1 is one channel."""
    return (1, 1, shape[0]) if len(shape) == 1 else (shape[0], shape[1], prod(shape[2:]))


def per_channel(x: Tensor) -> Tensor:
    """Return a tensor as (N, channels, n)."""
    return x.reshape(channels_shape(tuple(x.shape)))


def channel_view(x: Tensor, box: Box) -> Tensor:
    """Return a part of a tensor as (N, channels, n), of any strides; a copy where the part has no such view."""
    samples, channels, values = box
    if x.ndim == 1:
        return x[values].view(1, 1, -1)
    part = x[samples, channels]
    return part.reshape(*part.shape[:2], -1)[..., values]


def boxes(shape: tuple[int, ...], device: torch.device) -> Iterator[Box]:
    """Yield boxes of at most :func:`~actcodec.golden.pieces.piece_values` values that cover a tensor, in memory order."""
    samples, channels, length = channels_shape(shape)
    most = piece_values(samples * channels * length, device)
    for first in _steps(samples, most // (channels * length)):
        for channel in _steps(channels, most // length):
            for place in _steps(length, most):
                yield first, channel, place


def channel_boxes(shape: tuple[int, ...], device: torch.device) -> Iterator[Box]:
    """Yield boxes with all values of their channels that cover a tensor; one channel may exceed a piece."""
    samples, channels, length = channels_shape(shape)
    for channel in _steps(channels, piece_values(samples * channels * length, device) // (samples * length)):
        yield slice(0, samples), channel, slice(0, length)


def _steps(extent: int, step: int) -> Iterator[slice]:
    step = max(step, 1)
    return (slice(first, min(first + step, extent)) for first in range(0, extent, step))

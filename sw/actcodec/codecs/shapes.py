"""Tensors by channel, counted by the second axis (a tensor of rank 1 is one channel)."""

from __future__ import annotations

from math import prod

from torch import Tensor


def channels_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Extents of :func:`per_channel`."""
    return (1, 1, shape[0]) if len(shape) == 1 else (shape[0], shape[1], prod(shape[2:]))


def per_channel(x: Tensor) -> Tensor:
    """A tensor as (N, channels, n)."""
    return x.reshape(channels_shape(tuple(x.shape)))

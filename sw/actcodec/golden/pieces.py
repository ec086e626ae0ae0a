"""Tensors in pieces: what an operation takes besides its result is then a part of the tensor, and stays in a core's cache."""

from __future__ import annotations

from collections.abc import Iterator

import torch

#: Values handled at a time on a CPU: the working set stays in a core's second-level cache.
CHUNK_VALUES = 1 << 16
#: On other devices a call costs as much as many values: a tensor is so many pieces at most, of so many values at least.
_PARTS, _DEVICE_VALUES = 16, 1 << 21
_ALIGNED = 8


def piece_values(count: int, device: torch.device) -> int:
    """How many of so many values are handled at a time, a multiple of 8."""
    if device.type == "cpu":
        return CHUNK_VALUES
    return max(_DEVICE_VALUES, -(-count // (_ALIGNED * _PARTS)) * _ALIGNED)


def pieces(count: int, device: torch.device) -> Iterator[slice]:
    """So many values in pieces, each of which begins at a multiple of 8."""
    length = piece_values(count, device)
    return (slice(start, min(start + length, count)) for start in range(0, count, length))

"""Processing of tensors in pieces: the working memory of an operation is then a part of the tensor, and fits a core's cache."""

from __future__ import annotations

from collections.abc import Iterator

import torch

#: Number of values processed at a time on a CPU, so that the working set stays in a core's second-level cache.
CHUNK_VALUES = 1 << 16
#: Greatest number of pieces and least number of values of a piece on other devices, where a call costs as much as many values.
_PARTS, _DEVICE_VALUES = 16, 1 << 21
_ALIGNED = 8


def piece_values(count: int, device: torch.device) -> int:
    """Return how many of ``count`` values are processed at a time, a multiple of 8."""
    if device.type == "cpu":
        return CHUNK_VALUES
    return max(_DEVICE_VALUES, -(-count // (_ALIGNED * _PARTS)) * _ALIGNED)


def pieces(count: int, device: torch.device) -> Iterator[slice]:
    """Return slices that cut ``count`` values into pieces, each of which begins at a multiple of 8."""
    length = piece_values(count, device)
    return (slice(start, min(start + length, count)) for start in range(0, count, length))

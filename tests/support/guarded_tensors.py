"""Tensors with bytes around them that nothing may write."""

from contextlib import contextmanager
from math import prod
from unittest.mock import patch

import torch

#: Number of bytes on each side, a multiple of every alignment, and the content of these bytes and of new tensors.
_GUARD, _CONTENT = 256, 0xA5


@contextmanager
def guarded_tensors():
    """Guard tensors of ``torch.empty`` within a ``with`` block; AssertionError at its end if bytes beside one have changed."""
    rooms, make = [], torch.empty

    def empty(*shape, dtype=torch.float32, device=None):
        if len(shape) == 1 and not isinstance(shape[0], int):
            (shape,) = shape
        size = prod(shape) * dtype.itemsize
        room = make(size + 2 * _GUARD, dtype=torch.uint8, device=device).fill_(_CONTENT)
        rooms.append(room)
        return room[_GUARD : _GUARD + size].view(dtype).view(shape)

    with patch.object(torch, "empty", empty):
        yield
    for room in rooms:
        assert bool((room[:_GUARD] == _CONTENT).all()), "something was written in front of a tensor"
        assert bool((room[-_GUARD:] == _CONTENT).all()), "something was written behind a tensor"

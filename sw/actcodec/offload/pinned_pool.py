"""Pinned host memory that is used again: to pin memory takes longer than to copy it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from torch import Tensor

from actcodec.offload.copies import Mark

#: Sizes are multiples of so many bytes or of an eighth of them, whichever is more, so that few sizes occur.
_LEAST_BYTES = 1 << 12
_EIGHTHS = 8


class PinnedPool:
    """Buffers by size. One that is given back is given out again once the copies that use it are done.

    Parameters
    ----------
    pin
        ``pin(nbytes)`` makes a new buffer, uint8 (nbytes,).
    """

    def __init__(self, pin: Callable[[int], Tensor]) -> None:
        self._pin = pin
        self._free: defaultdict[int, list[tuple[Tensor, Mark]]] = defaultdict(list)
        self.nbytes = 0  #: of all buffers, in use or not

    def take(self, nbytes: int) -> Tensor:
        """A buffer of at least so many bytes."""
        size = rounded_size(nbytes)
        free = self._free[size]
        for place, (buffer, last) in enumerate(free):
            if last.query():
                del free[place]
                return buffer
        self.nbytes += size
        return self._pin(size)

    def give_back(self, buffer: Tensor, last: Mark) -> None:
        """Nobody needs the buffer any more when ``last`` is reached."""
        self._free[buffer.numel()].append((buffer, last))


def rounded_size(nbytes: int) -> int:
    """The size of a buffer for so many bytes: at most an eighth more, or 4096 bytes."""
    step = max(_LEAST_BYTES, (1 << max(nbytes - 1, 0).bit_length()) // (2 * _EIGHTHS))
    return max(-(-nbytes // step), 1) * step

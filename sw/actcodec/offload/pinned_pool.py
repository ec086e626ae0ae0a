"""Pool of pinned host memory for reuse, because pinning memory takes longer than copying it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from torch import Tensor

from actcodec.offload.copies import Mark

#: Sizes are multiples of this number of bytes or of an eighth of themselves, whichever is more, so that few sizes occur.
_LEAST_BYTES = 1 << 12
_EIGHTHS = 8


class PinnedPool:
    """Buffers by size. A returned buffer is reused once the copies that use it are done.

    Parameters
    ----------
    pin
        ``pin(nbytes)`` makes a new buffer, uint8 (nbytes,).
    """

    def __init__(self, pin: Callable[[int], Tensor]) -> None:
        self._pin = pin
        self._free: defaultdict[int, list[tuple[Tensor, Mark]]] = defaultdict(list)
        self.nbytes = 0  #: sum over all buffers, in use or not

    def take(self, nbytes: int) -> Tensor:
        """Return a buffer of at least ``nbytes`` bytes."""
        size = rounded_size(nbytes)
        free = self._free[size]
        for place, (buffer, last) in enumerate(free):
            if last.query():
                del free[place]
                return buffer
        self.nbytes += size
        return self._pin(size)

    def give_back(self, buffer: Tensor, last: Mark) -> None:
        """Return a buffer to the pool; it is free when ``last`` is reached."""
        self._free[buffer.numel()].append((buffer, last))


def rounded_size(nbytes: int) -> int:
    """Return the size of a buffer for a number of bytes: at most an eighth more, or 4096 bytes."""
    step = max(_LEAST_BYTES, (1 << max(nbytes - 1, 0).bit_length()) // (2 * _EIGHTHS))
    return max(-(-nbytes // step), 1) * step

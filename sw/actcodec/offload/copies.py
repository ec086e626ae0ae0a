"""Copies between a device and pinned host memory, on a stream of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor


class Mark(Protocol):
    """A point in the order of a stream's work (a CUDA event)."""

    def query(self) -> bool:
        """Return whether all work before the mark is done."""


class CopyStream(Protocol):
    """A stream that starts copies without waiting for their end."""

    def pinned(self, nbytes: int) -> Tensor:
        """Allocate host memory that asynchronous copies can use, uint8 (nbytes,)."""

    def out(self, parts: Sequence[Tensor], host: Sequence[Tensor]) -> Mark:
        """Copy parts to the host once the current stream has computed them; the caller may release the parts at once."""

    def back(self, host: Sequence[Tensor], after: Mark) -> tuple[list[Tensor], Mark]:
        """Return new tensors on the device with the host's values behind ``after``; call :meth:`wait` before using them."""

    def wait(self, parts: Sequence[Tensor], mark: Mark) -> None:
        """Make the current stream wait for a mark before it uses the parts."""


class CudaCopies:
    """A stream of one CUDA device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def pinned(self, nbytes: int) -> Tensor:
        """Implement :class:`CopyStream`."""
        return torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)

    def out(self, parts: Sequence[Tensor], host: Sequence[Tensor]) -> Mark:
        """Implement :class:`CopyStream`."""
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            for part, place in zip(parts, host, strict=True):
                place.copy_(part, non_blocking=True)
                # The allocator must not give the memory away before the copy has read it.
                part.record_stream(self._stream)
            return self._marked()

    def back(self, host: Sequence[Tensor], after: Mark) -> tuple[list[Tensor], Mark]:
        """Implement :class:`CopyStream`."""
        assert isinstance(after, torch.cuda.Event), "it is one of this class's"
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(after)
            parts = [part.to(self._device, non_blocking=True) for part in host]
            return parts, self._marked()

    def wait(self, parts: Sequence[Tensor], mark: Mark) -> None:
        """Implement :class:`CopyStream`."""
        assert isinstance(mark, torch.cuda.Event), "it is one of this class's"
        current = torch.cuda.current_stream(self._device)
        current.wait_event(mark)
        for part in parts:
            # They were allocated on the copies' stream, which must not reuse their memory while the current stream reads it.
            part.record_stream(current)

    def _marked(self) -> torch.cuda.Event:
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(self._stream)
        return event

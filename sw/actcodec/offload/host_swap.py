"""Keep saved tensors on the host between forward and backward (vDNN; ActNN, level L4).

Forward starts to copy a form to the host as soon as it is made, and goes on. Backward needs forms in reverse order: when it
asks for one, the copies of those saved just before it start, so that they arrive while it computes. The host memory of a form
is reused once the graph has released the form. On the CPU tensors are in host memory already, and nothing is moved.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import islice
from math import prod
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.offload.copies import CopyStream, CudaCopies, Mark
from actcodec.offload.pinned_pool import PinnedPool

#: Least size in bytes of a moved form; smaller copies take longer to start than to run.
LEAST_BYTES = 1 << 12
#: Number of forms that are fetched ahead while one is used.
AHEAD = 2
#: Alignment in bytes of the parts of a form within its buffer, enough for any dtype.
_ALIGNMENT = 64


class Movable(Protocol):
    """A codec's form: a dataclass whose tensors are fields of its own."""

    @property
    def nbytes(self) -> int:
        """Bytes kept."""

    def to_bytes(self) -> bytes:
        """The serialised stream."""

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The reconstructed tensor."""


@dataclass
class _Lane:
    """The stream, the pool and the order of forms of one device."""

    copies: CopyStream
    pool: PinnedPool
    #: Forms in the order in which they were copied out; forms that the graph has released are dropped later.
    order: list[weakref.ref[SwappedForm]]


class HostSwap:
    """Copy saved tensors to pinned host memory and back.

    Parameters
    ----------
    min_bytes
        Forms of fewer bytes stay on the device.
    ahead
        Number of forms that are fetched before backward asks for them, 0 or more; they take memory on the device.
    copies_for
        Makes the copy stream of a device; the default is a stream for a CUDA device, and None for any other.
    """

    def __init__(
        self,
        min_bytes: int = LEAST_BYTES,
        ahead: int = AHEAD,
        copies_for: Callable[[torch.device], CopyStream | None] | None = None,
    ) -> None:
        self._min_bytes, self._ahead = min_bytes, ahead
        self._copies_for = copies_for or _cuda_copies
        self._lanes: dict[torch.device, _Lane | None] = {}

    @property
    def pinned_bytes(self) -> int:
        """Bytes of pinned memory of all devices."""
        return sum(lane.pool.nbytes for lane in self._lanes.values() if lane is not None)

    def out(self, form: Movable) -> Movable | SwappedForm:
        """Return the swapped form; ``form`` itself if it is not moved."""
        tensors = _tensors(form)
        lane = self._lane(next(iter(tensors.values())).device)
        if lane is None or form.nbytes < self._min_bytes:
            return form
        places, end = {}, 0
        for name, part in tensors.items():
            places[name] = slice(end, end + part.numel() * part.element_size())
            end = -(-places[name].stop // _ALIGNMENT) * _ALIGNMENT
        buffer = lane.pool.take(end)
        host = {name: _seen_as(buffer[places[name]], part) for name, part in tensors.items()}
        arrived = lane.copies.out(list(tensors.values()), list(host.values()))
        swapped = SwappedForm(self, lane, _Buffer(buffer, arrived), form, host, place=len(lane.order))
        lane.order.append(weakref.ref(swapped))
        return swapped

    def _lane(self, device: torch.device) -> _Lane | None:
        if device not in self._lanes:
            copies = self._copies_for(device)
            self._lanes[device] = None if copies is None else _Lane(copies, PinnedPool(copies.pinned), [])
        return self._lanes[device]

    def begin_before(self, place: int, lane: _Lane) -> None:
        """Begin to fetch the forms that were copied out just before this one."""
        living = (form for reference in reversed(lane.order[:place]) if (form := reference()) is not None)
        for form in islice(living, self._ahead):
            form.begin()


class _Buffer:
    """Pinned memory of one form; it may be reused once ``last``, the last copy so far, is done."""

    def __init__(self, memory: Tensor, last: Mark) -> None:
        self.memory, self.last = memory, last


class SwappedForm:
    """A form whose tensors are in pinned host memory, or on their way."""

    def __init__(
        self, swap: HostSwap, lane: _Lane, buffer: _Buffer, form: Movable, host: dict[str, Tensor], place: int
    ) -> None:
        self._swap, self._lane, self._buffer, self._place = swap, lane, buffer, place
        self.host: Any = replace(cast(Any, form), **host)
        self._coming: tuple[list[Tensor], Mark] | None = None
        weakref.finalize(self, _forget, lane, buffer)

    @property
    def nbytes(self) -> int:
        """Bytes kept, on the host."""
        return int(self.host.nbytes)

    def to_bytes(self) -> bytes:
        """Return the stream of the form on the host."""
        return cast(bytes, self.host.to_bytes())

    def begin(self) -> None:
        """Start to copy back, unless that is under way."""
        if self._coming is None:
            self._coming = self._lane.copies.back(list(_tensors(self.host).values()), self._buffer.last)
            self._buffer.last = self._coming[1]

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed tensor on its device, and start to fetch the forms that were saved just before."""
        self.begin()
        assert self._coming is not None, "it has begun"
        (parts, mark), self._coming = self._coming, None
        self._swap.begin_before(self._place, self._lane)
        self._lane.copies.wait(parts, mark)
        there = dict(zip(_tensors(self.host), parts, strict=True))
        return cast(Tensor, replace(self.host, **there).decompress(backend))


def _forget(lane: _Lane, buffer: _Buffer) -> None:
    """Release the memory of a form that the graph has released, and drop dead forms at the end of the order."""
    lane.pool.give_back(buffer.memory, buffer.last)
    while lane.order and lane.order[-1]() is None:
        lane.order.pop()


def _cuda_copies(device: torch.device) -> CopyStream | None:
    return CudaCopies(device) if device.type == "cuda" else None


def _tensors(form: Any) -> dict[str, Tensor]:
    """Return the fields that are tensors, by name."""
    assert is_dataclass(form), "forms that move are dataclasses"
    values = {field.name: getattr(form, field.name) for field in fields(form)}
    return {name: value for name, value in values.items() if isinstance(value, Tensor)}


def _seen_as(memory: Tensor, part: Tensor) -> Tensor:
    """View bytes as a tensor of the dtype and shape of another."""
    return memory.view(part.dtype).view(part.shape) if prod(part.shape) else torch.empty_like(part, device="cpu")

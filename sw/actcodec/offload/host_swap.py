"""Saved tensors on the host between forward and backward (vDNN; ActNN, level L4).

Forward copies a form out as soon as it is there and goes on. Backward needs forms in reverse order: when it asks for one, the
copies of those saved just before it are begun, so that they arrive while it computes. The host memory of a form is used
again when the graph has forgotten it. On the CPU tensors are in host memory already: nothing is moved.
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

#: A copy of fewer bytes takes longer to begin than to do.
LEAST_BYTES = 1 << 12
#: Forms that are on their way back while one is used.
AHEAD = 2
#: Parts of a form begin at multiples of so many bytes of its buffer, as tensors of any dtype must.
_ALIGNMENT = 64


class Movable(Protocol):
    """What a codec returns, a dataclass whose tensors are fields of its own."""

    @property
    def nbytes(self) -> int:
        """Bytes kept."""

    def to_bytes(self) -> bytes:
        """The serialised stream."""

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The reconstructed tensor."""


@dataclass
class _Lane:
    """What one device has."""

    copies: CopyStream
    pool: PinnedPool
    #: In the order in which they were copied out; those that the graph has forgotten are dropped by and by.
    order: list[weakref.ref[SwappedForm]]


class HostSwap:
    """Copies saved tensors to pinned host memory and back.

    Parameters
    ----------
    min_bytes
        Forms of fewer bytes stay on the device.
    ahead
        How many forms are fetched before backward asks for them, 0 or more; as many are on the device besides.
    copies_for
        Makes what copies for a device; by default a stream of a CUDA device, and nothing for any other.
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
        """The swapped form; ``form`` itself where nothing is to be moved."""
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
    """Pinned memory of one form; whoever has it may read it once ``last``, the copies so far, is reached."""

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
        """As the form on the host has it."""
        return cast(bytes, self.host.to_bytes())

    def begin(self) -> None:
        """Begin to copy back, unless that is under way."""
        if self._coming is None:
            self._coming = self._lane.copies.back(list(_tensors(self.host).values()), self._buffer.last)
            self._buffer.last = self._coming[1]

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The reconstructed tensor on its device; what was saved just before begins to come back as well."""
        self.begin()
        assert self._coming is not None, "it has begun"
        (parts, mark), self._coming = self._coming, None
        self._swap.begin_before(self._place, self._lane)
        self._lane.copies.wait(parts, mark)
        there = dict(zip(_tensors(self.host), parts, strict=True))
        return cast(Tensor, replace(self.host, **there).decompress(backend))


def _forget(lane: _Lane, buffer: _Buffer) -> None:
    """The graph has forgotten a form: its memory is free, and so are the places of the last ones that are gone."""
    lane.pool.give_back(buffer.memory, buffer.last)
    while lane.order and lane.order[-1]() is None:
        lane.order.pop()


def _cuda_copies(device: torch.device) -> CopyStream | None:
    return CudaCopies(device) if device.type == "cuda" else None


def _tensors(form: Any) -> dict[str, Tensor]:
    """The fields that are tensors, by name."""
    assert is_dataclass(form), "forms that move are dataclasses"
    values = {field.name: getattr(form, field.name) for field in fields(form)}
    return {name: value for name, value in values.items() if isinstance(value, Tensor)}


def _seen_as(memory: Tensor, part: Tensor) -> Tensor:
    """Bytes as a tensor of the dtype and shape of another."""
    return memory.view(part.dtype).view(part.shape) if prod(part.shape) else torch.empty_like(part, device="cpu")

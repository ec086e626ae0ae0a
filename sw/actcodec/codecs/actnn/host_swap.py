"""Saved tensors in host memory (ActNN, level L4; vDNN), and the allocator's cache (ActNN, level L5). CUDA only.

On the CPU tensors are in host memory already: nothing is moved.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.actnn.sample_groups import SampleForm
from actcodec.codecs.compressed import RawCopy

#: What can be moved: a form whose tensors are fields of its own.
Movable = SampleForm | RawCopy


@dataclass(frozen=True, eq=False)
class SwappedForm:
    """A tensor whose parts are in pinned host memory, or on their way there."""

    host: Movable
    device: torch.device
    arrived: torch.cuda.Event  #: recorded behind the copies to the host

    @property
    def nbytes(self) -> int:
        """Bytes kept, on the host."""
        return self.host.nbytes

    def to_bytes(self) -> bytes:
        """Raises UserError: neither form is a stream."""
        return self.host.to_bytes()

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The reconstructed tensor on its device; the current stream copies the parts back before it decodes them."""
        torch.cuda.current_stream(self.device).wait_event(self.arrived)
        parts: dict[str, Any] = {name: part.to(self.device, non_blocking=True) for name, part in _tensors(self.host).items()}
        return replace(self.host, **parts).decompress(backend)


class HostSwap:
    """Copies saved tensors to pinned host memory on a stream of its own, while the forward pass goes on."""

    def __init__(self) -> None:
        self._streams: dict[torch.device, torch.cuda.Stream] = {}

    def out(self, form: Movable) -> Movable | SwappedForm:
        """The swapped form of a tensor on a CUDA device; on the CPU ``form`` itself."""
        tensors = _tensors(form)
        device = next(iter(tensors.values())).device
        if device.type != "cuda":
            return form
        stream = self._streams.setdefault(device, torch.cuda.Stream(device))  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(device))
        parts: dict[str, Any] = {}
        with torch.cuda.stream(stream):
            for name, part in tensors.items():
                parts[name] = torch.empty(part.shape, dtype=part.dtype, pin_memory=True)
                parts[name].copy_(part, non_blocking=True)
                # The allocator must not give the memory away before the copy has read it.
                part.record_stream(stream)
            arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
            arrived.record(stream)
        return SwappedForm(replace(form, **parts), device, arrived)


def _tensors(form: Movable) -> dict[str, Tensor]:
    """The fields that are tensors, by name."""
    values = {field.name: getattr(form, field.name) for field in fields(form)}
    return {name: value for name, value in values.items() if isinstance(value, Tensor)}


def release_fragmented_cache(least_used: float) -> bool:
    """Give the allocator's free memory back to CUDA when less than a part of what it holds is in use.

    Tensors of ever other sizes, as compression makes them, leave holes that fit none of the next. Returns whether it was done;
    without a CUDA device never.

    Parameters
    ----------
    least_used
        The part, 0 to 1, of the memory that the allocator holds.
    """
    if not torch.cuda.is_available():
        return False
    held = torch.cuda.memory_reserved()
    if held == 0 or torch.cuda.memory_allocated() >= least_used * held:
        return False
    torch.cuda.empty_cache()
    return True

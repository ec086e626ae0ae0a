"""Interface of a method for the simulation: moved activations, duration of transfers, and work of the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cdu_offload.network import OffloadActivation

#: The directions, as ``cdu verify`` calls them: to the host and back.
COMPRESS, DECOMPRESS = "compress", "decompress"
#: Stages that can limit a transfer: the link to the host, or the stages before it (CDUs, crossbar, memory).
LINK, CDU = "link", "cdu"
#: DMA's share of the GPU's memory rate while both compete for it; GPU and DMA engine take turns.
DMA_SHARE = 0.5


@dataclass(frozen=True)
class Transfer:
    """The movement of one activation."""

    seconds: float
    link_bytes: int
    memory_bytes_per_s: float  #: rate at which the transfer uses the GPU's memory
    limit: str  #: the slowest stage: LINK or CDU


class OffloadMethod(Protocol):
    """One of the methods that are compared."""

    def transfer(self, activation: OffloadActivation, direction: str) -> Transfer | None:
        """Return the transfer of an activation; None if it stays in GPU memory."""

    def overhead_seconds(self, activation: OffloadActivation, direction: str) -> float:
        """Return the seconds in which the GPU itself compresses or decompresses, and does nothing else."""

"""What a method is to the simulation: which activations move, how long that takes, and what the GPU has to do for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cdu_offload.network import Activation

#: The directions, as ``cdu verify`` calls them: to the host and back.
COMPRESS, DECOMPRESS = "compress", "decompress"
#: Stages that can be the slowest of a transfer: the link to the host, or what stands before it (CDUs, crossbar, memory).
LINK, CDU = "link", "cdu"
#: DMA's share of the GPU's memory when it could use more: what the GPU computes and the DMA engine take turns.
DMA_SHARE = 0.5


@dataclass(frozen=True)
class Transfer:
    """Moving one activation."""

    seconds: float
    link_bytes: int
    memory_bytes_per_s: float  #: what it takes of the GPU's memory meanwhile
    limit: str  #: the slowest stage: LINK or CDU


class Method(Protocol):
    """One of the methods that are compared."""

    def transfer(self, activation: Activation, direction: str) -> Transfer | None:
        """How an activation moves; None when it stays in GPU memory."""

    def overhead_seconds(self, activation: Activation, direction: str) -> float:
        """Time in which the GPU itself compresses or decompresses, and does nothing else."""

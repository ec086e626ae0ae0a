"""Methods that leave activations in GPU memory: as they are, or compressed by the GPU itself."""

from __future__ import annotations

from dataclasses import dataclass

from cdu_offload.method import COMPRESS
from cdu_offload.network import OffloadActivation, OffloadNetwork
from cdu_offload.platform import Platform
from cdu_offload.ratios import Ratios

#: Number of times that GIST's CSR reads a tensor: to count the kept values of each row, and to gather them.
_CSR_READS = 2


@dataclass(frozen=True)
class NoOffload:
    """No activation moves or is compressed: the fastest method, if the memory is large enough."""

    def transfer(self, activation: OffloadActivation, direction: str) -> None:
        """Return None: nothing moves."""

    def overhead_seconds(self, activation: OffloadActivation, direction: str) -> float:
        """Return 0: the GPU does no work."""
        return 0.0


@dataclass(frozen=True)
class Gist:
    """GIST's encodings as passes over GPU memory at full rate: reading values and writing codes, and the reverse.

    ReLU writes its 1-bit masks itself and reads them in place of the values. The launch of kernels, and the cost of sparse
    formats beyond moving bytes, are not counted: real kernels are slower. ``efficiency`` is the part of the full rate that they
    reach.
    """

    platform: Platform
    ratios: Ratios
    efficiency: float = 1.0

    def transfer(self, activation: OffloadActivation, direction: str) -> None:
        """Return None: nothing moves."""

    def overhead_seconds(self, activation: OffloadActivation, direction: str) -> float:
        """Implement :class:`~cdu_offload.method.Method`."""
        values = activation.nbytes
        packed = values / self.ratios.ratio(activation)
        if activation.kind == "signs":
            moved = packed if direction == COMPRESS else 0.0
        else:
            reads = _CSR_READS if activation.kind == "sparse" and direction == COMPRESS else 1
            moved = reads * values + packed
        return moved / (self.platform.memory_bytes_per_s * self.efficiency)


@dataclass(frozen=True)
class Software:
    """Kernels with a known total cost: seconds per byte saved, half on the way out and half on the way back."""

    seconds_per_byte: float

    @classmethod
    def of_slowdown(cls, slowdown: float, network: OffloadNetwork, platform: Platform) -> Software:
        """Return the kernels for which ``network`` loses the given part of its throughput."""
        extra = platform.step_seconds(network) * (1 / (1 - slowdown) - 1)
        return cls(extra / network.saved_bytes)

    def transfer(self, activation: OffloadActivation, direction: str) -> None:
        """Return None: nothing moves."""

    def overhead_seconds(self, activation: OffloadActivation, direction: str) -> float:
        """Implement :class:`~cdu_offload.method.Method`."""
        return self.seconds_per_byte * activation.nbytes / 2

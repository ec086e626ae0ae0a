"""Methods that send activations to the host through the DMA engine, with or without CDUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from cdu_spec.geometry import BLOCK_SIDE, VALUE_BITS
from cdu_spec.modes import Mode

from cdu_offload.method import CDU, COMPRESS, DMA_SHARE, LINK, Transfer
from cdu_offload.network import NORM_INPUT, NORM_RESULT, OffloadActivation
from cdu_offload.platform import Platform
from cdu_offload.ratios import Ratios
from cdu_offload.unit import OffloadUnit

#: Positions of CDUs: at the DMA engine, or at the partitions of the cache.
AT_DMA, AT_CACHE = "dma", "cache"
PLACEMENTS = (AT_DMA, AT_CACHE)


@dataclass(frozen=True)
class PlainOffload:
    """vDNN: the DMA engine reads values through its crossbar port and sends them as they are."""

    platform: Platform

    def transfer(self, activation: OffloadActivation, direction: str) -> Transfer:
        """Implement :class:`~cdu_offload.method.Method`."""
        packed = _packets(activation.nbytes, self.platform)
        return _slowest(activation.nbytes, packed, 0.0, [activation.nbytes / self.platform.port_bytes_per_s], self.platform)

    def overhead_seconds(self, activation: OffloadActivation, direction: str) -> float:
        """Return 0: the GPU does no work."""
        return 0.0


@dataclass(frozen=True)
class CduOffload:
    """CDUs compress on the way to the host and decompress on the way back.

    At the DMA engine every CDU reads values through a crossbar port of its own. At the cache only packed data cross it, through
    one port.
    """

    platform: Platform
    unit: OffloadUnit
    placement: str
    modes: Mapping[str, Mode]  #: by kind of activation; a kind without a mode has the array's rate
    ratios: Ratios

    def transfer(self, activation: OffloadActivation, direction: str) -> Transfer | None:
        """Implement :class:`~cdu_offload.method.Method`."""
        return self._through(activation, activation.kind, direction, 1.0, self._kept(activation))

    def overhead_seconds(self, activation: OffloadActivation, direction: str) -> float:
        """Return 0: the GPU does no work."""
        return 0.0

    def _kept(self, activation: OffloadActivation) -> float:
        """Return the bytes on the link."""
        return activation.nbytes / self.ratios.ratio(activation)

    def _through(
        self, activation: OffloadActivation, kind: str, direction: str, times: float, kept: float, beside: float = 0.0
    ) -> Transfer:
        """Return the transfer of an activation through the CDUs so many ``times``, and of ``kept`` bytes over the link.

        The CDUs work in the mode of a ``kind``. ``beside``: bytes of values that pass in the other direction at the same time.
        """
        packed, values = _packets(kept, self.platform), times * activation.nbytes
        start = self.unit.start_seconds(direction)
        job = self.unit.job_seconds(direction, self.modes.get(kind), activation.shape, activation.nbytes, kept)
        computing = times * (job - start)
        crossing = (values / self.unit.cdus if self.placement == AT_DMA else packed) / self.platform.port_bytes_per_s
        return _slowest(values + beside, packed, start, [computing, crossing], self.platform)


@dataclass(frozen=True)
class CopyOffload(CduOffload):
    """Policy jpeg-gmc: one copy of a batch normalisation's result serves its input and the ReLU after it.

    The copy moves with the result, and the input does not move. The signs of a ReLU are exact: the copy passes the unit a
    second time on its way out, to be decoded, and a bit per value follows in both directions. A unit in full duplex decodes one
    copy while it encodes the next.
    """

    def transfer(self, activation: OffloadActivation, direction: str) -> Transfer | None:
        """Implement :class:`~cdu_offload.method.Method`."""
        if activation.pair == NORM_INPUT:
            return None
        alone = activation.kind != "sparse" or activation.producer != "relu" or activation.shape[-1] < BLOCK_SIDE
        if alone and activation.pair != NORM_RESULT:
            return super().transfer(activation, direction)
        kept = self._kept(activation)
        if activation.pair == NORM_RESULT:
            # Statistics assign half of the copy to each tensor.
            kept += self._kept(OffloadActivation("conv", "dense", activation.shape))
        times = 1 + 1 / VALUE_BITS
        again = 1 if direction == COMPRESS else 0
        if self.unit.both_ways:
            return self._through(activation, "dense", direction, times, kept, again * activation.nbytes)
        return self._through(activation, "dense", direction, times + again, kept)


def _packets(nbytes: float, platform: Platform) -> int:
    """Return whole packets, in bytes."""
    return ceil(nbytes / platform.packet_bytes) * platform.packet_bytes


def _slowest(values: float, packed: int, start: float, before_link: list[float], platform: Platform) -> Transfer:
    """Return a transfer of ``values`` bytes whose stages work at the same time on consecutive packets.

    The buffers between stages hold kilobytes, and tensors have megabytes, so that the slowest stage determines the time of a
    tensor.
    """
    memory = values / (DMA_SHARE * platform.memory_bytes_per_s)
    link, others = packed / platform.link_bytes_per_s, max(memory, *before_link)
    seconds = start + max(link, others)
    return Transfer(seconds, packed, values / seconds, LINK if link >= others else CDU)

"""Methods that send activations to the host through the DMA engine, with CDUs or without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from cdu_spec.bitstream import Mode

from cdu_offload.method import CDU, DMA_SHARE, LINK, Transfer
from cdu_offload.network import Activation
from cdu_offload.platform import Platform
from cdu_offload.ratios import Ratios
from cdu_offload.unit import CduArray

#: Where CDUs may stand: at the DMA engine, or at the partitions of the cache.
AT_DMA, AT_CACHE = "dma", "cache"
PLACEMENTS = (AT_DMA, AT_CACHE)


@dataclass(frozen=True)
class PlainOffload:
    """vDNN: the DMA engine reads values through its crossbar port and sends them as they are."""

    platform: Platform

    def transfer(self, activation: Activation, direction: str) -> Transfer:
        """See :class:`~cdu_offload.method.Method`."""
        packed = _packets(activation.nbytes, self.platform)
        return _slowest(activation, packed, 0.0, [activation.nbytes / self.platform.port_bytes_per_s], self.platform)

    def overhead_seconds(self, activation: Activation, direction: str) -> float:
        """The GPU has no work with it."""
        return 0.0


@dataclass(frozen=True)
class CduOffload:
    """CDUs compress on the way to the host and decompress on the way back.

    At the DMA engine every CDU reads values through a crossbar port of its own. At the cache the values need not cross it, and
    one port carries what is packed.
    """

    platform: Platform
    unit: CduArray
    placement: str
    modes: Mapping[str, Mode]  #: of the kinds of activations; without one the rate is the array's
    ratios: Ratios

    def transfer(self, activation: Activation, direction: str) -> Transfer:
        """See :class:`~cdu_offload.method.Method`."""
        values = activation.nbytes
        packed = _packets(values / self.ratios.ratio(activation), self.platform)
        mode = self.modes.get(activation.kind)
        computing = values / self.unit.bytes_per_s(direction, mode)
        crossing = (values / self.unit.cdus if self.placement == AT_DMA else packed) / self.platform.port_bytes_per_s
        return _slowest(activation, packed, self.unit.start_seconds(direction), [computing, crossing], self.platform)

    def overhead_seconds(self, activation: Activation, direction: str) -> float:
        """The GPU has no work with it."""
        return 0.0


def _packets(nbytes: float, platform: Platform) -> int:
    """Whole packets, in bytes."""
    return ceil(nbytes / platform.packet_bytes) * platform.packet_bytes


def _slowest(activation: Activation, packed: int, start: float, before_link: list[float], platform: Platform) -> Transfer:
    """A transfer whose stages work at the same time on consecutive packets.

    Between them is room for kilobytes, and tensors have megabytes, so that the slowest stage sets the pace of a whole tensor.
    """
    memory = activation.nbytes / (DMA_SHARE * platform.memory_bytes_per_s)
    link, others = packed / platform.link_bytes_per_s, max(memory, *before_link)
    seconds = start + max(link, others)
    return Transfer(seconds, packed, activation.nbytes / seconds, LINK if link >= others else CDU)

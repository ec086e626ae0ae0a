"""Methods that send activations to the host through the DMA engine, with CDUs or without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from cdu_spec.bitstream import Mode
from cdu_spec.geometry import BLOCK_SIDE, VALUE_BITS

from cdu_offload.method import CDU, COMPRESS, DMA_SHARE, LINK, Transfer
from cdu_offload.network import NORM_INPUT, NORM_RESULT, Activation
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
        return _slowest(activation.nbytes, packed, 0.0, [activation.nbytes / self.platform.port_bytes_per_s], self.platform)

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

    def transfer(self, activation: Activation, direction: str) -> Transfer | None:
        """See :class:`~cdu_offload.method.Method`."""
        return self._through(activation.kind, direction, activation.nbytes, self._kept(activation))

    def overhead_seconds(self, activation: Activation, direction: str) -> float:
        """The GPU has no work with it."""
        return 0.0

    def _kept(self, activation: Activation) -> float:
        """Bytes on the link."""
        return activation.nbytes / self.ratios.ratio(activation)

    def _through(self, kind: str, direction: str, values: float, kept: float, beside: float = 0.0) -> Transfer:
        """Bytes of values through the CDUs, in the mode of a kind of activations, and what is kept of them over the link.

        ``beside``: bytes of values that pass in the other direction at the same time.
        """
        packed = _packets(kept, self.platform)
        computing = values / self.unit.bytes_per_s(direction, self.modes.get(kind))
        crossing = (values / self.unit.cdus if self.placement == AT_DMA else packed) / self.platform.port_bytes_per_s
        return _slowest(values + beside, packed, self.unit.start_seconds(direction), [computing, crossing], self.platform)


@dataclass(frozen=True)
class CopyOffload(CduOffload):
    """Policy jpeg-gmc: one copy of a batch normalisation's result serves its input and the ReLU behind it.

    The copy goes with the result, and the input does not move. Of a ReLU the signs are exact: the copy passes the unit a second
    time on its way out, to be decoded, and a bit per value follows in both directions. A unit in full duplex decodes one copy
    while it encodes the next.
    """

    def transfer(self, activation: Activation, direction: str) -> Transfer | None:
        """See :class:`~cdu_offload.method.Method`."""
        if activation.pair == NORM_INPUT:
            return None
        alone = activation.kind != "sparse" or activation.producer != "relu" or activation.shape[-1] < BLOCK_SIDE
        if alone and activation.pair != NORM_RESULT:
            return super().transfer(activation, direction)
        kept = self._kept(activation)
        if activation.pair == NORM_RESULT:
            # Statistics give each of both half of the copy.
            kept += self._kept(Activation("conv", "dense", activation.shape))
        values = (1 + 1 / VALUE_BITS) * activation.nbytes
        again = activation.nbytes if direction == COMPRESS else 0
        if self.unit.both_ways:
            return self._through("dense", direction, values, kept, again)
        return self._through("dense", direction, values + again, kept)


def _packets(nbytes: float, platform: Platform) -> int:
    """Whole packets, in bytes."""
    return ceil(nbytes / platform.packet_bytes) * platform.packet_bytes


def _slowest(values: float, packed: int, start: float, before_link: list[float], platform: Platform) -> Transfer:
    """A transfer of so many bytes of values whose stages work at the same time on consecutive packets.

    Between them is room for kilobytes, and tensors have megabytes, so that the slowest stage sets the pace of a whole tensor.
    """
    memory = values / (DMA_SHARE * platform.memory_bytes_per_s)
    link, others = packed / platform.link_bytes_per_s, max(memory, *before_link)
    seconds = start + max(link, others)
    return Transfer(seconds, packed, values / seconds, LINK if link >= others else CDU)

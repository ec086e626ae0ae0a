"""The least and the greatest value of blocks."""

from __future__ import annotations

from functools import cache, partial

from cdu.alignment.block_statistics import BlockStatistics
from cdu.delivery.blocks import ranged
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device, ranges
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import StreamFacts
from cdu_verif.formal.solver import BOUNDED, Sby

#: Bounded searches: CDUs (and rows per word) with the blocks of every tile (any if None), the bits that are free of each
#: value, and the cycles from reset.
_BOUNDS = ((1, None, 0x8001, 12), (1, 2, 0x8000, 20), (8, None, 0x8001, 9))


@cache
def _device(config: CduConfig) -> BoundDevice:
    return device.of_component(BlockStatistics(ranged(config)), "block_statistics", config)


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            f"block_statistics[cdus={cdus}]",
            f"encloses_{width}" if width else "encloses",
            "Every value of a block lies between the least and the greatest value that are found for it"
            f"{f'; tiles of {width} blocks' if width else ''}. Values: {1 << free.bit_count()} different ones.",
            partial(_device, config.adapted(cdus=cdus, value_port_bits=0)),
            Sby(BOUNDED, depth, partial(ranges.enclosing_harness, beats=cdus, free_of_value=free, width=width)),
        )
        for cdus, width, free, depth in _BOUNDS
    ]


RECORD = Record(benches=(), streams=StreamFacts(device=_device), properties=_properties)

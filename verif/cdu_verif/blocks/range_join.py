"""Record of the range join, which joins blocks with their ranges."""

from __future__ import annotations

from functools import cache

from cdu.alignment.range_join import RangeJoin
from cdu.delivery.blocks import ranged
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device, ranges
from cdu_verif.formal.device import Device
from cdu_verif.formal.properties import StreamFacts


@cache
def _device(config: CduConfig) -> Device:
    return device.of_component(RangeJoin(ranged(config)), "range_join", config)


RECORD = Record(benches=(), streams=StreamFacts(device=_device, rules=ranges.join_rules))

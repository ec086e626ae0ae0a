"""Record of the scale join, which takes the scales of a job from their source."""

from __future__ import annotations

from cdu.values.scale_join import ScaleJoin
from cdu_spec.config import CduConfig
from cdu_spec.register_types import Channel

from cdu_verif.blocks import Record
from cdu_verif.formal import device, ports
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import REACHABILITY, Sby


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            "scale_join",
            "order",
            "The n-th packet of scales comes whole from the source that the n-th job names, whenever scales come.",
            lambda: device.of_component(ScaleJoin(Channel.COMPRESS, config.scale_bits), "scale_join", config),
            Sby(REACHABILITY, 0, ports.scale_join_harness),
        )
    ]


RECORD = Record(benches=(), streams=None, properties=_properties)

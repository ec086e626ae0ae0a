"""Record of the run-length encoder, which finds symbols for the entropy encoder."""

from __future__ import annotations

from cdu.coding.run_length_encoder import RunLengthEncoder
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import part_moves


def _properties(config: CduConfig) -> list[Property]:
    return [part_moves("run_length_encoder", lambda: device.of_component(RunLengthEncoder(), "run_length_encoder", config), 4)]


RECORD = Record(benches=(), streams=None, properties=_properties)

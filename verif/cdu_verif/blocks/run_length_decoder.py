"""Record of the run-length decoder, which places coefficients for the entropy decoder."""

from __future__ import annotations

from cdu.coding.run_length_decoder import RunLengthDecoder
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import part_moves


def _properties(config: CduConfig) -> list[Property]:
    return [part_moves("run_length_decoder", lambda: device.of_component(RunLengthDecoder(), "run_length_decoder", config), 2)]


RECORD = Record(benches=(), streams=None, properties=_properties)

"""Codes of one width to bytes and back."""

from __future__ import annotations

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import code_packing, device
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import INDUCTION, Sby


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            "code_packing",
            "inverse",
            "Code n stands at bit n * bits, zeros behind the last; unpacking gives the codes back, whatever stands"
            " behind them; their bytes are counted: for all codes and bits.",
            lambda: device.of_component(code_packing.PackedCodes(), "code_packing", config),
            Sby(INDUCTION, 1, code_packing.packing_harness),
        )
    ]


RECORD = Record(benches=(), streams=None, properties=_properties)

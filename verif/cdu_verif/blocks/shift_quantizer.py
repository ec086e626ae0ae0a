"""The quantiser by shifts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import ROUNDINGS
from cdu_verif.formal import quantizers
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device, output_moves
from cdu_verif.formal.solver import REACHABILITY, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.shift_quantizer import SHIFT_QUANTIZER

    return SHIFT_QUANTIZER


def _properties(config: CduConfig) -> list[Property]:
    text = partial(quantizers.quantizer_harness, config, inverse=False)
    return [
        output_moves("shift_quantizer", config, 4),
        Property(
            "shift_quantizer",
            "arithmetic",
            f"q = sat8(round(c / 2**shift)), {config.rounding}, for all inputs, shifts and stalls.",
            partial(block_device, "shift_quantizer", config),
            Sby(REACHABILITY, 0, text),
        ),
    ]


RECORD = Record(cases=_cases, quick=ROUNDINGS, properties=_properties)

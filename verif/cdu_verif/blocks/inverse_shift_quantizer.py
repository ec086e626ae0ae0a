"""The inverse of the quantiser by shifts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import CODERS
from cdu_verif.formal import quantizers
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device, output_moves
from cdu_verif.formal.solver import REACHABILITY, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.shift_quantizer import INVERSE_SHIFT_QUANTIZER

    return INVERSE_SHIFT_QUANTIZER


def _properties(config: CduConfig) -> list[Property]:
    return [
        output_moves("inverse_shift_quantizer", config, 4),
        _arithmetic("inverse_shift_quantizer", "c = sat12(q * 2**shift)", config),
        _arithmetic(
            "inverse_shift_quantizer[coders=zvc/gmc]",
            "c = sat12(q * 2**shift), away from 0 by floor(point * 2**shift / 8) where q is not 0",
            config.adapted(**CODERS),
        ),
    ]


def _arithmetic(name: str, equation: str, config: CduConfig) -> Property:
    return Property(
        name,
        "arithmetic",
        f"{equation}, for all inputs, shifts and stalls.",
        partial(block_device, "inverse_shift_quantizer", config),
        Sby(REACHABILITY, 0, partial(quantizers.quantizer_harness, config, inverse=True)),
    )


RECORD = Record(cases=_cases, quick=[{}, CODERS], properties=_properties)

"""The inverse of the quantiser with divisors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import quantizers
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import output_moves, probed
from cdu_verif.formal.solver import INDUCTION, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.div_quantizer import INVERSE_DIV_QUANTIZER

    return INVERSE_DIV_QUANTIZER


def _properties(config: CduConfig) -> list[Property]:
    return [
        output_moves("inverse_div_quantizer", config, 4),
        Property(
            "inverse_div_quantizer",
            "arithmetic",
            "c = sat12(q * d), for all inputs, divisors and stalls.",
            partial(probed, "inverse_div_quantizer", config, quantizers.multiplication_probes(config)),
            Sby(INDUCTION, 1, partial(quantizers.multiplication_harness, config)),
        ),
    ]


RECORD = Record(cases=_cases, properties=_properties)

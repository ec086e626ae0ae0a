"""The quantiser with divisors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import ROUNDINGS
from cdu_verif.formal import promises, quantizers
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import output_moves, probed
from cdu_verif.formal.solver import INDUCTION, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.div_quantizer import DIV_QUANTIZER

    return DIV_QUANTIZER


def _properties(config: CduConfig) -> list[Property]:
    return [
        output_moves("div_quantizer", config, 4),
        Property(
            "div_quantizer",
            "arithmetic",
            f"q = round(c / d), {config.rounding}, by the reciprocal of d, for all inputs, divisors and stalls; that it is"
            " exact enough is a test of all numbers.",
            partial(probed, "div_quantizer", config, quantizers.division_probes(config)),
            Sby(INDUCTION, 1, partial(quantizers.division_harness, config)),
        ),
    ]


RECORD = Record(cases=_cases, quick=ROUNDINGS, properties=_properties, promised=promises.divisors)

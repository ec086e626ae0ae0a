"""The quantiser with divisors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import ROUNDINGS
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import output_moves

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.div_quantizer import DIV_QUANTIZER

    return DIV_QUANTIZER


def _properties(config: CduConfig) -> list[Property]:
    return [output_moves("div_quantizer", config, 4)]


RECORD = Record(cases=_cases, quick=ROUNDINGS, properties=_properties)

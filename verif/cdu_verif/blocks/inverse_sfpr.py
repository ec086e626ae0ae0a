"""SFPR's inverse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import EVERY
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import output_moves

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.sfpr import INVERSE_SFPR

    return INVERSE_SFPR


def _properties(config: CduConfig) -> list[Property]:
    return [output_moves("inverse_sfpr", config, 4 + config.multiplier_stages)]


RECORD = Record(
    cases=_cases,
    quick=[{}, *({"value_format": name, **EVERY} for name in ("bf16", "fp16")), {"multiplier_stages": 1}],
    full=[{"value_format": "fp16", "multiplier_stages": 1, **EVERY}],
    properties=_properties,
)

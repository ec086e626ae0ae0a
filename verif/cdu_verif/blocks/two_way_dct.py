"""Both transforms in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import PRECISIONS, TRANSFORMS
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import output_moves

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.dct import TWO_WAY_DCT

    return TWO_WAY_DCT


def _properties(config: CduConfig) -> list[Property]:
    return [output_moves("two_way_dct", config, 24)]


RECORD = Record(
    cases=_cases,
    quick=TRANSFORMS,
    full=PRECISIONS,
    properties=_properties,
)

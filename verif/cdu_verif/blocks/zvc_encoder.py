"""The coder of ZVC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import SLICES
from cdu_verif.formal import promises, zvc
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import something_moves

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.payload import ZVC_ENCODER

    return ZVC_ENCODER


def _properties(config: CduConfig) -> list[Property]:
    return [something_moves("zvc_encoder", config, 12), zvc.encoder_content(config)]


RECORD = Record(
    cases=_cases,
    quick=[{}, {"cdus": 4}],
    full=SLICES,
    properties=_properties,
    promised=promises.rows(zvc.BUILT),
)

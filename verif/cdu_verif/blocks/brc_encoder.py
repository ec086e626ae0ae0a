"""The coder of BRC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import SLICES
from cdu_verif.formal import coding, promises
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import something_moves

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.payload import BRC_ENCODER

    return BRC_ENCODER


def _properties(config: CduConfig) -> list[Property]:
    return [something_moves("brc_encoder", config, 12), coding.encoder_content(config)]


RECORD = Record(
    cases=_cases,
    full=SLICES,
    properties=_properties,
    promised=promises.rows(coding.BUILT),
)

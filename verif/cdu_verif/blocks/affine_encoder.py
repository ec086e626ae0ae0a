"""The coder of all modes, most of them affine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu.delivery.blocks import affine
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import EVERY
from cdu_verif.formal import coding, promises
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import something_moves

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.payload import AFFINE_ENCODER

    return AFFINE_ENCODER


def _properties(config: CduConfig) -> list[Property]:
    return [something_moves("affine_encoder", config, 12), coding.encoder_codes(config, 11)]


RECORD = Record(
    cases=_cases,
    quick=[EVERY],
    properties=_properties,
    promised=promises.rows(affine),
)

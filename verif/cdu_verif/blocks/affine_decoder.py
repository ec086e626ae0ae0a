"""The decoder of all modes, most of them affine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu.delivery.blocks import affine
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import EVERY, SLICES
from cdu_verif.formal import coding, promises
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import something_moves

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.payload import AFFINE_DECODER

    return AFFINE_DECODER


def _properties(config: CduConfig) -> list[Property]:
    return [something_moves("affine_decoder", config, 12), coding.decoder_codes(config, 12)]


RECORD = Record(
    cases=_cases,
    quick=[EVERY, {"cdus": 4, **EVERY}],
    full=SLICES,
    properties=_properties,
    promised=promises.slices(affine),
)

"""The inverse transform."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_verif.blocks import Record
from cdu_verif.blocks.dct import transform_properties
from cdu_verif.cases.parameters import PRECISIONS, TRANSFORMS

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.dct import IDCT

    return IDCT


RECORD = Record(
    cases=_cases,
    benches=["blocks", "ieee_1180"],
    quick=TRANSFORMS,
    full=PRECISIONS,
    properties=partial(transform_properties, "idct", True),
)

"""The encoder of GMC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import SLICES

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.gmc import GMC_ENCODER

    return GMC_ENCODER


RECORD = Record(cases=_cases, quick=[{}, {"cdus": 4}, {"cdus": 8, "packed_port_bits": 128}], full=SLICES)

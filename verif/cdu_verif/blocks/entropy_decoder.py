"""The entropy decoder of JPEG-BASE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu_verif.blocks import Record
from cdu_verif.formal import jpeg

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.entropy_coder import ENTROPY_DECODER

    return ENTROPY_DECODER


RECORD = Record(cases=_cases, properties=jpeg.blocks)

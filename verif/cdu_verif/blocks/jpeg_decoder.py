"""The entropy-coded segments of grayscale JPEGs to samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import PIPELINED, PRECISIONS

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.jpeg_scans import JPEG_DECODER

    return JPEG_DECODER


RECORD = Record(cases=_cases, quick=[{}, PIPELINED], full=PRECISIONS)

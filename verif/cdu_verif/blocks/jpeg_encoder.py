"""Samples to the entropy-coded segments of grayscale JPEGs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import PIPELINED, PRECISIONS, ROUNDINGS

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.jpeg_scans import JPEG_ENCODER

    return JPEG_ENCODER


RECORD = Record(cases=_cases, quick=[*ROUNDINGS, PIPELINED], full=PRECISIONS)

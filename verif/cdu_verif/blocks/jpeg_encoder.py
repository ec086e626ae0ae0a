"""Samples to the entropy-coded segments of grayscale JPEGs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import PIPELINED, PRECISE, PRECISIONS, ROUNDINGS
from cdu_verif.formal import jpeg
from cdu_verif.formal.properties import StreamFacts

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


#: Cycles from reset in which a scan of one block can reach the output, either way.
FIRST_OUTPUT = 48


def _cases() -> Cases:
    from cdu_verif.cases.jpeg_scans import JPEG_ENCODER

    return JPEG_ENCODER


RECORD = Record(
    cases=_cases,
    quick=[{**ROUNDINGS[0], **PRECISE}, {**ROUNDINGS[1], **PIPELINED}],
    full=[ROUNDINGS[1], PIPELINED, *PRECISIONS],
    properties=partial(jpeg.segment, "jpeg_encoder"),
    streams=StreamFacts(first_output=FIRST_OUTPUT),
)

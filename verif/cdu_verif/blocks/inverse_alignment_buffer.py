"""The alignment buffer from blocks to rows of values."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_verif.blocks import Record
from cdu_verif.blocks.alignment_buffer import FIRST_OUTPUT, orders
from cdu_verif.cases.parameters import PORT_WIDTHS
from cdu_verif.formal.properties import StreamFacts

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.alignment_buffer import INVERSE_ALIGNMENT

    return INVERSE_ALIGNMENT


RECORD = Record(
    cases=_cases,
    quick=PORT_WIDTHS[::3],
    full=PORT_WIDTHS,
    streams=StreamFacts(first_output=FIRST_OUTPUT),
    properties=partial(orders, "inverse_alignment_buffer", False),
)

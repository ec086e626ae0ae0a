"""The half of a unit that compresses."""

from __future__ import annotations

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import HALVES
from cdu_verif.formal.properties import StreamFacts

RECORD = Record(
    benches=["units"],
    quick=HALVES,
    full=[
        {"value_format": "fp16", "scale_bits": 11},
        {"scale_bits": 24, "rounding": "trunc"},
        {"modes": ("jpeg-act",)},
        {"modes": ("sfpr", "brc")},
    ],
    streams=StreamFacts(reachable=8, first_output=None),
)

"""The half of a unit that decompresses."""

from __future__ import annotations

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import HALVES
from cdu_verif.formal.properties import StreamFacts

RECORD = Record(
    benches=["units"],
    quick=HALVES,
    full=[{"value_format": "fp16"}, {"modes": ("jpeg-act",)}, {"modes": ("sfpr", "brc")}],
    streams=StreamFacts(reachable=8, first_output=None),
)

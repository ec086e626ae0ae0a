"""The half of a unit that decompresses."""

from __future__ import annotations

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import HALVES, HALVES_FULL, WITH_MX
from cdu_verif.formal.properties import StreamFacts

RECORD = Record(
    benches=["units"],
    quick=[*HALVES, WITH_MX],
    full=[
        *HALVES_FULL,
        *({"value_format": "fp16"}, {"modes": ("jpeg-act",)}, {"modes": ("sfpr", "brc")}),
        {"cdus": 4, "value_format": "fp16", **WITH_MX},
    ],
    streams=StreamFacts(reachable=8, first_output=None),
)

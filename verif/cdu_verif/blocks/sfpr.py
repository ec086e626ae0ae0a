"""SFPR."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig
from cdu_spec.modes import Dtype

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import EVERY
from cdu_verif.formal import sfpr
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device, output_moves
from cdu_verif.formal.solver import BOUNDED, INDUCTION, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.sfpr import SFPR

    return SFPR


def _properties(config: CduConfig) -> list[Property]:
    # The format whose proof is quick enough for all inputs; the others differ in widths only.
    exact = config.adapted(value_format=Dtype.BF16.label, scale_bits=8)
    statement = "q = sat8(round_half_even(x * k)), exactly, for all x and k"
    label = f"sfpr[value_format={exact.value_format},scale_bits={exact.scale_bits}]"
    made = partial(block_device, "sfpr", exact)
    steady, stalled = (partial(sfpr.arithmetic_harness, exact, stalls=stalls) for stalls in (False, True))
    reach = 4 + exact.multiplier_stages
    return [
        output_moves("sfpr", config, 4 + config.multiplier_stages),
        Property(label, "arithmetic", f"{statement}, in all lanes.", made, Sby(INDUCTION, reach, steady)),
        Property(label, "arithmetic_stalls", f"{statement}, with any stalls.", made, Sby(BOUNDED, reach + 3, stalled)),
    ]


RECORD = Record(
    cases=_cases,
    quick=[
        {},
        {"value_format": "bf16", "scale_bits": 8, "multiplier_stages": 1},
        {"value_format": "fp16", "scale_bits": 8, **EVERY},
        {"scale_bits": 24, "multiplier_stages": 1, **EVERY},
    ],
    full=[
        *({"value_format": name, "scale_bits": bits} for name in ("fp32", "bf16", "fp16") for bits in (24, 11, 8)),
        *({"scale_bits": 11, "multiplier_stages": 1}, {"multiplier_stages": 1, **EVERY}, {"scale_bits": 24, **EVERY}),
    ],
    properties=_properties,
)

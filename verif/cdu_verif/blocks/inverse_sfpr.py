"""SFPR's inverse."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig
from cdu_spec.modes import JPEG_ACT_MODES, Dtype
from cdu_spec.sfpr import SFPR_RECIPROCAL_BITS

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import EVERY
from cdu_verif.formal import sfpr
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import output_moves, probed
from cdu_verif.formal.solver import INDUCTION, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.sfpr import INVERSE_SFPR

    return INVERSE_SFPR


def _properties(config: CduConfig) -> list[Property]:
    # Results are not rounded in this configuration
    modes = tuple(mode.label for mode in JPEG_ACT_MODES)
    exact = config.adapted(
        value_format=Dtype.FP32.label, reciprocal_bits=SFPR_RECIPROCAL_BITS, modes=modes, multiplier_stages=0
    )
    made = partial(probed, "inverse_sfpr", exact, sfpr.inverse_probes(exact))
    return [
        output_moves("inverse_sfpr", config, 4 + config.multiplier_stages),
        Property(
            f"inverse_sfpr[reciprocal_bits={exact.reciprocal_bits}]",
            "arithmetic",
            "y = q * r, exactly, for all q and r, in all lanes, with any stalls.",
            made,
            Sby(INDUCTION, 2, partial(sfpr.inverse_arithmetic_harness, exact)),
        ),
    ]


RECORD = Record(
    cases=_cases,
    quick=[{}, {"value_format": "bf16", **EVERY}, {"value_format": "fp16", "multiplier_stages": 1, **EVERY}],
    full=[{"value_format": "fp16", **EVERY}, {"multiplier_stages": 1}],
    properties=_properties,
)

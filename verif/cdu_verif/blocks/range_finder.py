"""Record of the range finder, which finds the ranges of blocks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu.delivery.blocks import ranged
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import RANGED_WIDTHS
from cdu_verif.formal import promises, ranges
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import HOLD, StreamFacts, probed, something_moves
from cdu_verif.formal.solver import INDUCTION, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.range_finder import RANGE_FINDER

    return RANGE_FINDER


def _with_ranges(config: CduConfig) -> BoundDevice:
    return probed("range_finder", config, ranges.finder_probes(config.port_beats))


def _properties(config: CduConfig) -> list[Property]:
    wide = config.adapted(cdus=8, value_port_bits=0)
    return [
        something_moves("range_finder", config, 4),
        Property(
            f"range_finder[cdus={wide.cdus}]",
            "hold",
            HOLD,
            partial(_with_ranges, wide),
            Sby(INDUCTION, 2, ranges.finder_rules),
        ),
        Property(
            "range_finder",
            "step",
            "D = m * 2**e is the least number of 8 significant bits that is not below max(1, ceil(R / B)): B * D >= R,"
            " 1 <= m <= 255, e <= 9, Z + B * D <= 65535, for all R and bits, with any stalls.",
            partial(probed, "range_finder", config, ranges.STEP_PROBES),
            Sby(INDUCTION, 2, ranges.step_harness),
        ),
    ]


RECORD = Record(
    cases=_cases,
    quick=RANGED_WIDTHS[::2],
    full=RANGED_WIDTHS,
    streams=StreamFacts(held=_with_ranges, rules=ranges.finder_rules),
    properties=_properties,
    promised=promises.tags(ranged),
)

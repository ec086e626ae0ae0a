"""Record of the gatherer, which gathers the rows of blocks from the lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.blocks.distributor import lane_order
from cdu_verif.cases.parameters import ARRAYS, RANGED_WIDTHS, VALUE_PORTS
from cdu_verif.formal import order
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import something_moves

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.lanes import GATHERER

    return GATHERER


def _properties(config: CduConfig) -> list[Property]:
    return [
        something_moves("gatherer", config, 4),
        lane_order("gatherer", config, "o__payload", order.gatherer_harness),
    ]


RECORD = Record(
    cases=_cases, quick=[ARRAYS[2], RANGED_WIDTHS[3]], full=[ARRAYS[1], RANGED_WIDTHS[2], *VALUE_PORTS], properties=_properties
)

"""Record of the distributor, which deals the rows of blocks out to the lanes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import ARRAYS, RANGED_WIDTHS, VALUE_PORTS
from cdu_verif.formal import invariants, order
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device, something_moves
from cdu_verif.formal.solver import INDUCTION, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.lanes import DISTRIBUTOR

    return DISTRIBUTOR


def lane_order(block: str, config: CduConfig, words: str, harness: Callable[..., str]) -> Property:
    """Return the property that lanes take or give rows in turn; ``words`` is the port with the rows of all lanes."""
    # Two lanes and words of two rows: the smallest array that uses all parts of these blocks.
    small = config.adapted(cdus=2, value_port_bits=0, modes=(Mode.SFPR.label,))

    def probed() -> BoundDevice:
        device = block_device(block, small)
        return device.probed(invariants.lane_probes(device, words, small.cdus, small.port_beats))

    return Property(
        f"{block}[cdus=2]",
        "order",
        "Rows leave once, in order, at the lane (from the lane) whose turn it is, marked where their block ends.",
        probed,
        Sby(INDUCTION, 2, partial(harness, lanes=small.cdus, beats=small.port_beats)),
    )


def _properties(config: CduConfig) -> list[Property]:
    return [
        something_moves("distributor", config, 4),
        lane_order("distributor", config, "i__payload", order.distributor_harness),
    ]


RECORD = Record(
    cases=_cases, quick=[ARRAYS[2], RANGED_WIDTHS[3]], full=[ARRAYS[1], RANGED_WIDTHS[2], *VALUE_PORTS], properties=_properties
)

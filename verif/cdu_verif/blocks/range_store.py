"""The store of ranges beside the alignment buffer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import RANGED_WIDTHS
from cdu_verif.formal import ranges
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import StreamFacts, moves, probed
from cdu_verif.formal.solver import INDUCTION, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases

#: Cycles within which a transfer happens.
_CYCLES = 3


def _cases() -> Cases:
    from cdu_verif.cases.range_store import RANGE_STORE

    return RANGE_STORE


def _with_rooms(config: CduConfig) -> BoundDevice:
    return probed("range_store", config, ranges.STORE_PROBES)


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            "range_store",
            "progress",
            moves("a transfer happens", _CYCLES),
            partial(_with_rooms, config),
            Sby(INDUCTION, 5, partial(ranges.store_progress, cycles=_CYCLES)),
        ),
        *(
            Property(
                f"range_store[cdus={chosen.cdus}]",
                "order",
                "Beats leave with the range that came with their block, in mode actnn with that of their tile's first one.",
                partial(probed, "range_store", chosen, ranges.order_probes(chosen.port_beats)),
                Sby(INDUCTION, 2, partial(ranges.store_order, beats=chosen.port_beats)),
            )
            for chosen in (config.adapted(cdus=cdus, value_port_bits=0) for cdus in (1, 8))
        ),
    ]


RECORD = Record(
    cases=_cases,
    quick=RANGED_WIDTHS[::2],
    full=RANGED_WIDTHS,
    streams=StreamFacts(held=_with_rooms, rules=ranges.store_rules),
    properties=_properties,
)

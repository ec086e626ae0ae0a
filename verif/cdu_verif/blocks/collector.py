"""Record of the collector, which joins the slices of the lanes to words of the packed port."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import ARRAYS, PACKED_PORTS, WITH_MX
from cdu_verif.formal import invariants, order
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import probed, something_moves
from cdu_verif.formal.solver import INDUCTION, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.lanes import COLLECTOR

    return COLLECTOR


def _order(config: CduConfig) -> Property:
    probes = invariants.collector_probes(config.cdus, config.slice_bytes, config.packed_bytes)
    text = partial(order.collector_harness, lanes=config.cdus, slice_bytes=config.slice_bytes, word_bytes=config.packed_bytes)
    return Property(
        f"collector[cdus={config.cdus},packed_port_bits={config.packed_port_bits}]",
        "order",
        "Bytes leave once, in order, without gaps; words are full, a job's last word ends with its last byte.",
        partial(probed, "collector", config, probes),
        Sby(INDUCTION, 2, text),
    )


def _properties(config: CduConfig) -> list[Property]:
    return [
        something_moves("collector", config, 4),
        *(
            _order(config.adapted(cdus=cdus, packed_port_bits=bits, modes=(Mode.SFPR.label,)))
            for cdus, bits in ((2, 128), (1, 256))
        ),
    ]


RECORD = Record(
    cases=_cases,
    quick=[*ARRAYS[::2], {"cdus": 3, **WITH_MX}],
    full=[*ARRAYS, *PACKED_PORTS, WITH_MX, {"cdus": 8, **WITH_MX}],
    properties=_properties,
)

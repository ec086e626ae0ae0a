"""The transposer between the passes of a transform."""

from __future__ import annotations

from functools import cache, partial

from cdu.transform.transposer import Transposer
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device, order
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import end_moves
from cdu_verif.formal.solver import REACHABILITY, Sby


def _properties(config: CduConfig) -> list[Property]:
    label = "transposer[width=1]"
    narrow = cache(lambda: device.of_component(Transposer(1), "transposer", config))
    return [
        Property(
            label,
            "order",
            "Every value leaves once, at its transposed place: none is lost, doubled or put in another order.",
            narrow,
            Sby(REACHABILITY, 0, partial(order.transposer_harness, width=1)),
        ),
        *(end_moves(label, narrow, end, 9) for end in ("i", "o")),
    ]


RECORD = Record(benches=(), streams=None, properties=_properties)

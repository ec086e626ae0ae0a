"""Record of the width converter, which makes words wider or narrower."""

from __future__ import annotations

from functools import cache, partial

from cdu.parts.width_converter import WidthConverter
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device, order
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import end_moves
from cdu_verif.formal.solver import REACHABILITY, Sby


def _conversion(i_bytes: int, o_bytes: int, config: CduConfig) -> list[Property]:
    label = f"width_converter[{i_bytes} to {o_bytes} bytes]"
    make = cache(lambda: device.of_component(WidthConverter(i_bytes, o_bytes), "width_converter", config))
    return [
        Property(
            label,
            "order",
            "Bytes leave once, in order, each in its own job; words are full but for the last one of a job, which may be"
            " empty.",
            make,
            Sby(REACHABILITY, 0, partial(order.width_harness, i_bytes=i_bytes, o_bytes=o_bytes)),
        ),
        end_moves(label, make, "o", max(i_bytes, o_bytes) // min(i_bytes, o_bytes)),
    ]


def _properties(config: CduConfig) -> list[Property]:
    return [*_conversion(2, 8, config), *_conversion(8, 2, config)]


RECORD = Record(benches=(), streams=None, properties=_properties)

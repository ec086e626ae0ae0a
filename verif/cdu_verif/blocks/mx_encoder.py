"""The encoder of MX."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig
from cdu_spec.mx import MX_FORMATS

from cdu_verif.blocks import Record
from cdu_verif.formal import device, mx
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import StreamFacts, block_device, output_moves, probed
from cdu_verif.formal.solver import BOUNDED, INDUCTION, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases

#: Cycles in which a block comes and, with a stall or without, leaves.
_CYCLES = 10
#: The format of which order and scales are proven: a row's way is the same in all.
_ORDERED = "mxfp4"


def _cases() -> Cases:
    from cdu_verif.cases.mx import MX_ENCODER

    return MX_ENCODER


def _with_line(config: CduConfig) -> BoundDevice:
    return probed("mx_encoder", config, mx.LINE_PROBES)


def _properties(config: CduConfig) -> list[Property]:
    def coded() -> BoundDevice:
        return device.of_component(mx.CodedValue(), "mx_element", config)

    elements = [
        Property(
            f"mx_encoder[{name}]",
            "element",
            "The code is the nearest one of the value over the scale, ties to even, limited: for all values, for all greatest"
            " magnitudes of the block, by both rules.",
            coded,
            Sby(INDUCTION, 1, partial(mx.element_harness, kind)),
        )
        for name, kind in MX_FORMATS.items()
    ]
    ordered = Property(
        f"mx_encoder[{_ORDERED}]",
        "block",
        "Rows of the first block leave in order, the first one with the scale of the greatest magnitude: values in any lane,"
        " zeros in the others.",
        partial(block_device, "mx_encoder", config),
        Sby(BOUNDED, _CYCLES, partial(mx.encoder_harness, MX_FORMATS[_ORDERED], 1)),
    )
    return [output_moves("mx_encoder", config, 8), *elements, ordered]


RECORD = Record(cases=_cases, streams=StreamFacts(held=_with_line, rules=mx.line_rules), properties=_properties)

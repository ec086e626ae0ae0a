"""The decoder of MX."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig
from cdu_spec.mx import MX_FORMATS

from cdu_verif.blocks import Record
from cdu_verif.formal import mx
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device, output_moves
from cdu_verif.formal.solver import REACHABILITY, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.mx import MX_DECODER

    return MX_DECODER


def _properties(config: CduConfig) -> list[Property]:
    values = [
        Property(
            f"mx_decoder[{name}]",
            "arithmetic",
            "A value is the code times the scale of its block, infinity and NaN included, for all codes, scales and stalls.",
            partial(block_device, "mx_decoder", config),
            Sby(REACHABILITY, 0, partial(mx.decoder_harness, kind)),
        )
        for name, kind in MX_FORMATS.items()
    ]
    return [output_moves("mx_decoder", config, 4), *values]


RECORD = Record(cases=_cases, properties=_properties)

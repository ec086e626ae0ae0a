"""Both transforms in one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.blocks.dct import WIDTHS
from cdu_verif.cases.parameters import PRECISIONS, TRANSFORMS
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device, output_moves
from cdu_verif.formal.transforms import TransformWidths

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.dct import TWO_WAY_DCT

    return TWO_WAY_DCT


def _properties(config: CduConfig) -> list[Property]:
    made = partial(block_device, "two_way_dct", config)
    widths = [
        Property("two_way_dct", name, f"{what}: {WIDTHS[0].lower()}{WIDTHS[1:]}", made, TransformWidths(config, inverse, True))
        for name, what, inverse in (("widths", "Forward", False), ("inverse_widths", "Inverse", True))
    ]
    return [output_moves("two_way_dct", config, 24), *widths]


RECORD = Record(
    cases=_cases,
    quick=TRANSFORMS,
    full=PRECISIONS,
    properties=_properties,
)

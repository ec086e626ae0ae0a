"""Record of the forward transform."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import PRECISIONS, TRANSFORMS
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device, output_moves
from cdu_verif.formal.transforms import TransformWidths

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.dct import DCT

    return DCT


#: Statement about the passes of a transform.
WIDTHS = "Each pass is the integer matrix of the specification, rounded half up; no word overflows, for all inputs."


def transform_properties(block: str, inverse: bool, config: CduConfig) -> list[Property]:
    """Return the properties of either transform that are proven."""
    variants = {
        config.adapted(**{name: value}): f"{block}[{name}={value}]"
        for name, value in (("sample_bits", 8), ("sample_bits", 9), ("dct_stages", 1))
    }
    return [
        output_moves(block, config, 24),
        *(
            Property(
                block if chosen == config else label,
                "widths",
                WIDTHS,
                partial(block_device, block, chosen),
                TransformWidths(chosen, inverse),
            )
            for chosen, label in variants.items()
        ),
    ]


RECORD = Record(cases=_cases, quick=TRANSFORMS, full=PRECISIONS, properties=partial(transform_properties, "dct", False))

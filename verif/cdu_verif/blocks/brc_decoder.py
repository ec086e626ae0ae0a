"""The decoder of BRC."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu.delivery.blocks import only
from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import SLICES
from cdu_verif.formal import coding, promises
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device, something_moves
from cdu_verif.formal.solver import REACHABILITY, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.payload import BRC_DECODER

    return BRC_DECODER


_CONTENT = "Rows of a block are those of the bytes in its slice, for all content."


def _properties(config: CduConfig) -> list[Property]:
    label = "brc_decoder"
    harness = Sby(REACHABILITY, 0, partial(coding.decoder_harness, config=config))
    return [
        something_moves(label, config, 12),
        Property(
            label,
            "content",
            _CONTENT,
            partial(block_device, label, config),
            harness,
        ),
    ]


RECORD = Record(
    cases=_cases,
    full=SLICES,
    properties=_properties,
    promised=promises.slices(partial(only, mode=Mode.BRC)),
)

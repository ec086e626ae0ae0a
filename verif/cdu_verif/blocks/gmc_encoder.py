"""The encoder of GMC."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import SLICES
from cdu_verif.formal import gmc
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import probed, something_moves
from cdu_verif.formal.solver import INDUCTION, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.gmc import GMC_ENCODER

    return GMC_ENCODER


def _properties(config: CduConfig) -> list[Property]:
    label = "gmc_encoder"
    stages = partial(probed, label, config, gmc.ENCODER_PROBES)
    return [
        *(
            Property(label, name, text, stages, Sby(INDUCTION, 1, partial(gmc.encoder_harness, lemma=lemma)))
            for lemma, (name, text) in enumerate(gmc.ENCODER_LEMMAS.items())
        ),
        Property(
            label,
            "slots",
            "Slots are the bits of a block one behind the other, what it begins with and its columns; the last one says so.",
            partial(probed, label, config, gmc.SLOTS_PROBES),
            Sby(INDUCTION, 1, gmc.slots_harness),
        ),
        something_moves(label, config, 16),
    ]


RECORD = Record(
    cases=_cases,
    quick=[{}, {"cdus": 4}, {"cdus": 8, "packed_port_bits": 128}],
    full=SLICES,
    properties=_properties,
)

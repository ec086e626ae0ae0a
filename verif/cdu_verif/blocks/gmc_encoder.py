"""The encoder of GMC."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from cdu.coding.gmc_store import BlockStore
from cdu.delivery.blocks import with_gmc
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import SLICES
from cdu_verif.formal import device, gmc, promises
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import probed
from cdu_verif.formal.solver import BOUNDED, INDUCTION, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases

#: Cycles from reset, in which a block of several slots is written and begins to leave; one more doubles the search.
_STORE_CYCLES = 15


def _cases() -> Cases:
    from cdu_verif.cases.gmc import GMC_ENCODER

    return GMC_ENCODER


def _properties(config: CduConfig) -> list[Property]:
    label = "gmc_encoder"
    store = cache(lambda: device.of_component(BlockStore(with_gmc(config)), "block_store", config))
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
        *(
            Property(label, name, text, store, Sby(BOUNDED, _STORE_CYCLES, partial(gmc.store_harness, lengths=lengths)))
            for name, text, lengths in (
                ("head", "Head, length and tag of a block are those of the format, for all slots.", True),
                ("body", "Every bit of a block stands where the format has it.", False),
            )
        ),
    ]


RECORD = Record(
    cases=_cases,
    quick=[{}, {"cdus": 8, "packed_port_bits": 128}],
    full=SLICES,
    properties=_properties,
    promised=promises.tags(with_gmc),
)

"""The decoder of GMC."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu.delivery.blocks import with_gmc
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import SLICES
from cdu_verif.formal import gmc, promises
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import probed, something_moves
from cdu_verif.formal.solver import INDUCTION, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.gmc import GMC_DECODER

    return GMC_DECODER


def _properties(config: CduConfig) -> list[Property]:
    label = "gmc_decoder"
    of_registers = {
        "column": (
            "Masks, classes and lengths of a column are those of the tables, for all bits and all classes before; any bits"
            " begin with one code word of a row.",
            gmc.COLUMN_PROBES,
            gmc.column_harness,
        ),
        "decodes": (
            "Whatever bytes come, what leaves is what the first slices of blocks, their columns and the fields in the window"
            " say; a slice enters only where there is room, a column is taken when its bits are there.",
            gmc.DECODER_PROBES,
            gmc.decoder_harness,
        ),
        "window": (
            "A slice enters the window at the place that `fill` tells and changes no other bit; the bits of a column, and no"
            " others, leave it.",
            gmc.WINDOW_PROBES,
            gmc.window_harness,
        ),
    }
    return [
        something_moves(label, config, 16),
        *(
            Property(label, name, text, partial(probed, label, config, probes), Sby(INDUCTION, 1, harness))
            for name, (text, probes, harness) in of_registers.items()
        ),
    ]


RECORD = Record(
    cases=_cases,
    quick=[{}, {"cdus": 8, "packed_port_bits": 128}],
    full=SLICES,
    properties=_properties,
    promised=promises.tags(with_gmc),
)

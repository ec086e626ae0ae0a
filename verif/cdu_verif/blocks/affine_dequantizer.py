"""The affine dequantiser."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu.delivery.blocks import affine
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import EVERY
from cdu_verif.formal import affine_codes, promises
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import output_moves, probed
from cdu_verif.formal.solver import INDUCTION, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.affine_dequantizer import AFFINE_DEQUANTIZER

    return AFFINE_DEQUANTIZER


def _arithmetic(config: CduConfig, lanes: tuple[int, ...]) -> Property:
    return Property(
        "affine_dequantizer",
        f"arithmetic_{''.join(map(str, lanes))}",
        "y = Z + code * D, for all inputs and stalls; no word overflows, -65536 < y < 65536."
        f" Lanes {', '.join(map(str, lanes))}.",
        partial(probed, "affine_dequantizer", config, affine_codes.DEQUANTIZER_PROBES),
        Sby(INDUCTION, 2, partial(affine_codes.dequantizer_harness, modes=config.built_modes, lanes=lanes)),
    )


def _properties(config: CduConfig) -> list[Property]:
    # The arithmetic of all lanes together is too much for the solver.
    together = ((0, 1, 2, 3), (4, 5, 6, 7))
    return [
        output_moves("affine_dequantizer", config, 4),
        *(_arithmetic(affine(config), lanes) for lanes in together),
    ]


RECORD = Record(cases=_cases, quick=[EVERY], properties=_properties, promised=promises.tags(affine))

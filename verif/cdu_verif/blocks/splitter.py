"""Record of the splitter, which cuts words of the packed port into the blocks of the lanes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import CODERS, EVERY, PACKED_PORTS, RANGED_WIDTHS, WITH_MX
from cdu_verif.formal import splitting
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device, something_moves
from cdu_verif.formal.solver import BOUNDED, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases

#: Bounded searches: parameters, and the number of cycles from reset.
_BOUNDS: tuple[tuple[dict[str, Any], int], ...] = (
    ({"modes": ("sfpr", "brc")}, 7),
    ({"modes": ("sfpr+zvc",)}, 6),
    ({"cdus": 8, "packed_port_bits": 128, "modes": ("sfpr", "sfpr+zvc", "brc")}, 6),
)
#: Cycles from reset in which the first blocks of a job leave.
_JOBS_CYCLES = 10
#: Cycles from reset in which the first rows of a job of mode mx leave.
_MX_CYCLES = 7
#: Free bits of every byte of a payload in these searches: masks then have 0 to 16 ones.
_FREE_OF_BYTE = 0x11


def _cases() -> Cases:
    from cdu_verif.cases.lanes import SPLITTER

    return SPLITTER


def _order(config: CduConfig, depth: int) -> Property:
    return Property(
        f"splitter[cdus={config.cdus},modes={'/'.join(config.modes)}]",
        "order",
        "Every job's bytes leave once, in order, cut into blocks as masks, modes and jobs say, with their tags, lane by lane;"
        " zeros where they end early.",
        partial(block_device, "splitter", config),
        Sby(BOUNDED, depth, partial(splitting.splitter_harness, config, free_of_byte=_FREE_OF_BYTE)),
    )


def _mx(config: CduConfig, depth: int) -> Property:
    return Property(
        f"splitter[cdus={config.cdus},modes={'/'.join(config.modes)}]",
        "mx",
        "Every job's bytes leave once, in order, past the lanes, cut into the rows that are decoded in a cycle, each with the"
        " scales of the blocks that begin in it; zeros where they end early.",
        partial(block_device, "splitter", config),
        Sby(BOUNDED, depth, partial(splitting.mx_harness, config, free_of_byte=_FREE_OF_BYTE)),
    )


def _jobs(config: CduConfig) -> Property:
    return Property(
        "splitter",
        "jobs",
        "A job of any number of beats has its last block where these end; the splitter is not idle with more than two to come.",
        partial(block_device, "splitter", config),
        Sby(BOUNDED, _JOBS_CYCLES, splitting.jobs_harness),
    )


def _properties(config: CduConfig) -> list[Property]:
    return [
        something_moves("splitter", config, 4),
        _jobs(config),
        *(_order(config.adapted(**chosen), depth) for chosen, depth in _BOUNDS),
        _mx(config.adapted(modes=("sfpr", "mx")), _MX_CYCLES),
    ]


RECORD = Record(
    cases=_cases,
    benches=["blocks", "broken_jobs"],
    quick=[{}, {"cdus": 3, "coders": ("gmc",), **EVERY}, {"cdus": 8, **EVERY, **CODERS}, {"cdus": 3, **WITH_MX}],
    full=[
        *({"cdus": 3, **EVERY}, {"cdus": 4, "coders": ("gmc",)}),
        EVERY,
        {"cdus": 2},
        *RANGED_WIDTHS[2:],
        CODERS,
        *PACKED_PORTS,
        *({**port, **CODERS} for port in PACKED_PORTS),
        *({"cdus": cdus, **WITH_MX} for cdus in (1, 2, 4, 8)),
    ],
    properties=_properties,
)

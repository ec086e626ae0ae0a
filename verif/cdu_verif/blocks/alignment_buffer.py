"""The alignment buffer from rows of values to blocks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import PORT_WIDTHS, RANGED_WIDTHS
from cdu_verif.formal import order
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import StreamFacts, block_device
from cdu_verif.formal.solver import BOUNDED, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases

#: Cycles from reset in which either buffer can offer something: a whole row of tiles has to come before.
FIRST_OUTPUT = 80
#: Bounded searches: CDUs (and rows per word) with the blocks of every tile (any if None) and the cycles from reset.
_BOUNDS = ((1, None, 10), (4, 2, 12), (4, 3, 12))


def _cases() -> Cases:
    from cdu_verif.cases.alignment_buffer import ALIGNMENT

    return ALIGNMENT


def orders(block: str, to_blocks: bool, config: CduConfig) -> list[Property]:
    """Rows leave in the other order, of either buffer."""
    return [
        _order(block, to_blocks, config.adapted(cdus=cdus, value_port_bits=0, modes=(Mode.SFPR.label,)), width, depth)
        for cdus, width, depth in _BOUNDS
    ]


def _order(block: str, to_blocks: bool, config: CduConfig, width: int | None, depth: int) -> Property:
    text = partial(order.alignment_harness, beats=config.port_beats, to_blocks=to_blocks, width=width)
    tiles = f"tiles of {width} blocks" if width else "tiles of every width"
    return Property(
        f"{block}[cdus={config.cdus}]",
        f"order_{width}" if width else "order",
        f"Rows of {tiles} leave once, at their place in the other order.",
        partial(block_device, block, config),
        Sby(BOUNDED, depth, text),
    )


RECORD = Record(
    cases=_cases,
    quick=[PORT_WIDTHS[0], *RANGED_WIDTHS[2:]],
    full=[PORT_WIDTHS[1]],
    streams=StreamFacts(first_output=FIRST_OUTPUT),
    properties=partial(orders, "alignment_buffer", True),
)

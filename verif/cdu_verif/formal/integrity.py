"""Properties of the blocks that append and check a CRC."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from amaranth.lib.wiring import Component
from cdu_spec.config import CduConfig

from cdu_verif.formal import device
from cdu_verif.formal.binding import fields, instance
from cdu_verif.formal.device import Device
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import INDUCTION, Sby
from cdu_verif.formal.stream_rules import with_assumptions


def words_property(
    block: str,
    name: str,
    statement: str,
    made: Callable[[], Component[Any]],
    config: CduConfig,
    *,
    probes: Mapping[str, int],
    parameters: Mapping[str, int],
    ports: Mapping[str, str],
    words: Sequence[str],
) -> Property:
    """Return a property of a block, proven with the harness ``BLOCK_rules``, which observes the streams ``words``."""

    def harness(found: Device) -> str:
        bound = dict(ports)
        for word in words:
            bound |= fields(found, f"{word}__payload", "data", "count", "last")
        return with_assumptions(found, instance(f"{block}_rules", parameters, bound))

    def probed() -> Device:
        return device.of_component(made(), block, config).probed(probes)

    return Property(block, name, statement, probed, Sby(INDUCTION, 2, harness))

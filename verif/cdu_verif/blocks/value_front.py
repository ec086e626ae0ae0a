"""The end of the value side that compresses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import VALUE_SIDE, VALUE_SIDE_FULL, WITH_MX
from cdu_verif.formal import progress
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device, moves
from cdu_verif.formal.solver import BOUNDED, Sby

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.value_side import VALUE_FRONT

    return VALUE_FRONT


def progress_of_jobs(block: str, config: CduConfig) -> list[Property]:
    """Some stream of either end transfers, in the cycles from reset that the proof reaches."""
    cycles, reach = 16, 30
    text = partial(progress.job_progress_harness, cycles=cycles)
    made = partial(block_device, block, config)
    return [Property(block, "progress", moves("a transfer happens", cycles), made, Sby(BOUNDED, reach, text))]


RECORD = Record(
    cases=_cases,
    benches=["blocks", "broken_jobs"],
    quick=[*VALUE_SIDE, {"scale_bits": 24, **WITH_MX}],
    full=[*VALUE_SIDE_FULL, WITH_MX, {"cdus": 8, **WITH_MX}],
    properties=partial(progress_of_jobs, "value_front"),
)

"""The end of the value side that decompresses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdu_verif.blocks import Record
from cdu_verif.blocks.value_front import properties_of_jobs
from cdu_verif.cases.parameters import VALUE_SIDE, VALUE_SIDE_FULL

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.value_side import VALUE_BACK

    return VALUE_BACK


RECORD = Record(
    cases=_cases,
    benches=["blocks", "broken_jobs"],
    quick=VALUE_SIDE,
    full=VALUE_SIDE_FULL,
    properties=partial(properties_of_jobs, "value_back"),
)

"""Cases of the blocks that have several streams at an end."""

from __future__ import annotations

from collections.abc import Mapping

from cdu_verif.cases.array_parts import COLLECTOR, DISTRIBUTOR, GATHERER, SPLITTER, PartCases
from cdu_verif.cases.range_store import RANGE_STORE

#: Cases by block name.
PARTS: Mapping[str, PartCases] = {
    "distributor": DISTRIBUTOR,
    "gatherer": GATHERER,
    "collector": COLLECTOR,
    "splitter": SPLITTER,
    "range_store": RANGE_STORE,
}

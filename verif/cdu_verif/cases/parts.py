"""Cases of the blocks that have several streams at an end."""

from __future__ import annotations

from collections.abc import Mapping

from cdu_verif.cases.affine_quantizer import AFFINE_QUANTIZER
from cdu_verif.cases.array_parts import COLLECTOR, DISTRIBUTOR, GATHERER, SPLITTER, PartCases
from cdu_verif.cases.range_finder import RANGE_FINDER
from cdu_verif.cases.range_store import RANGE_STORE

#: Cases by block name.
PARTS: Mapping[str, PartCases] = {
    "distributor": DISTRIBUTOR,
    "gatherer": GATHERER,
    "collector": COLLECTOR,
    "splitter": SPLITTER,
    "range_finder": RANGE_FINDER,
    "affine_quantizer": AFFINE_QUANTIZER,
    "range_store": RANGE_STORE,
}

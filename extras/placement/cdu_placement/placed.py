"""Netlist with the place of every cell and the wires between them."""

from __future__ import annotations

from dataclasses import dataclass

from cdu_synth.area.timing import Netlist

from cdu_placement.placer import Placement
from cdu_placement.wires import Routed


@dataclass(frozen=True)
class Placed:
    """A netlist with its placement, wires and slowest path."""

    netlist: Netlist
    placement: Placement
    routed: Routed
    critical_path_ns: float

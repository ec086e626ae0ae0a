"""Proofs by looking at the netlist: no solver, no bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cdu_tools import yosys

from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import UNBOUNDED, Verdict


@dataclass(frozen=True)
class Selection:
    """Yosys commands that fail when the netlist lacks the property."""

    script: Callable[[BoundDevice], str]
    engine = "cone of the netlist (Yosys)"
    reach = UNBOUNDED

    def prove(self, device: BoundDevice, folder: Path) -> Verdict:
        """Run the script."""
        try:
            yosys.run(self.script(device), folder, yosys.writer())
        except yosys.YosysError as error:
            return Verdict(False, str(error))
        return Verdict(True)

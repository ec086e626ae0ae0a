"""Measurement of one synthesised module with one stimulus after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdu_tools import yosys

from cdu_synth.area.kept_netlist import kept_netlist
from cdu_synth.area.timing import Netlist
from cdu_synth.library.liberty import Library
from cdu_synth.power import power_report
from cdu_synth.power.activity import Stimulus
from cdu_synth.power.cell_models import cell_models
from cdu_synth.power.energies import energies
from cdu_synth.power.gate_simulator import GateSimulationError, GateSimulator
from cdu_synth.power.mapped import MappedModule
from cdu_synth.power.power import power


class GateMeter:
    """Simulate a netlist and compute its power.

    Parameters
    ----------
    verilog, top
        Generated Verilog and the name of its top.
    library, clock_ns, recipe, build
        Arguments of :func:`cdu_synth.area.flow.synthesise`; the figures are for this clock period, whether or not it is met.
    """

    def __init__(self, verilog: str, top: str, library: Library, clock_ns: float, recipe: str, build: yosys.Engine) -> None:
        design, self.cost = kept_netlist(verilog, top, library, clock_ns, recipe, build)
        self._module, self._netlist = MappedModule.of(design, top), Netlist.of(design, top)
        self._library, self._clock_ns, self._build = library, clock_ns, build
        self._energies = energies(library, self._module.kinds)
        self._simulator = GateSimulator(self._module, library)

    @property
    def volts(self) -> float:
        """Return the supply voltage of the library's corner."""
        return self._energies.volts

    def netlist(self) -> str:
        """Return the netlist with models of its cells, Verilog for any simulator."""
        return self._module.verilog() + cell_models(self._library, self._module.kinds, self._build)

    def measure(
        self,
        inputs: Mapping[str, Sequence[int]],
        expected: Mapping[str, Sequence[int]],
        settings: Mapping[str, int],
        values: int,
    ) -> dict[str, Any]:
        """Return the figures of one run (:func:`cdu_synth.power.power_report.entry`), and the critical path of the netlist.

        Raises GateSimulationError if the output words differ from the expected ones.
        """
        counts = {stream: len(words) for stream, words in expected.items()}
        received, activity = self._simulator.run(Stimulus(inputs, counts, settings))
        for stream, words in expected.items():
            pairs = enumerate(zip(received[stream], words, strict=True))
            wrong = [number for number, (got, wanted) in pairs if got != wanted]
            if wrong:
                where = f"{len(wrong)} words of {stream}, the first is word {wrong[0]}"
                raise GateSimulationError(f"the netlist of {self._module.name} differs from the golden model: {where}")
        parts = power(self._module, self._netlist, self._library, self._energies, activity)
        figures = power_report.entry(parts, self._clock_ns, activity.cycles, values, self._energies.has_internal)
        return figures | {
            "words_checked": sum(counts.values()),
            "critical_path_ns": self.cost.critical_path_ns,
            "ge": self.cost.ge,
        }

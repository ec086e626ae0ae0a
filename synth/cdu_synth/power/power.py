"""Power of a netlist from its activity: leakage, switching of nets, energy inside cells, clock.

Assumptions, as usual before layout: nets have the capacitance of the pins that they drive and no wires; there is no clock
tree, only the clock pins of flip-flops and clock gates at an ideal edge; outputs have no load; a net takes one value per
cycle, so there are no glitches; data settle while the clock is high. Transitions are those of the built-in timing analysis.
Nets driven by inputs are counted, because charging them costs energy too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields

from cdu_synth.area import breakdown
from cdu_synth.area.timing import Netlist, Timing
from cdu_synth.library.liberty import Library
from cdu_synth.power.activity import Activity
from cdu_synth.power.energies import Energies, InternalEnergy
from cdu_synth.power.mapped import MappedCell, MappedModule
from cdu_synth.power.pin_states import PinStates

#: Row besides those of the breakdown: the nets that input ports drive.
INPUTS = "(input nets)"


@dataclass
class Power:
    """Leakage in uW, and energies per clock cycle in fJ.

    Parameters
    ----------
    leakage_uw
        Leakage by the states that the cells were in, if the library has more than one figure.
    switching_fj
        Half of C V^2 for each change of a net except the clock.
    internal_fj
        Energy inside cells at changes of inputs and outputs, without clock pins.
    clock_fj
        C V^2 of the clock pins, and the energy inside flip-flops and clock gates at both edges of the clock; a gated clock has
        edges in the cycles in which it is enabled.
    """

    leakage_uw: float = 0.0
    switching_fj: float = 0.0
    internal_fj: float = 0.0
    clock_fj: float = 0.0

    def __iadd__(self, other: Power) -> Power:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
        return self

    @property
    def dynamic_fj(self) -> float:
        """Return the energy per cycle without leakage."""
        return self.switching_fj + self.internal_fj + self.clock_fj

    def milliwatts(self, clock_ns: float) -> float:
        """Return the total power at a clock period."""
        return self.leakage_uw / 1e3 + self.dynamic_fj / clock_ns / 1e3

    def picojoules(self, clock_ns: float, cycles: float) -> float:
        """Return the energy of ``cycles`` cycles at a clock period."""
        return (self.dynamic_fj + self.leakage_uw * clock_ns) * cycles / 1e3


def power(module: MappedModule, netlist: Netlist, library: Library, energies: Energies, activity: Activity) -> dict[str, Power]:
    """Return power by the rows of :mod:`cdu_synth.area.breakdown`; cells without a place, and single blocks, are in the rest.

    Parameters
    ----------
    module, netlist
        The netlist with the names of its cells, and in the form for timing.
    library, energies
        Library of the cells, and their energies.
    activity
        Activity of its nets.
    """
    meter = _Meter(netlist, library, energies, activity)
    (clock,) = module.ports["clk"].nets
    found: defaultdict[str, Power] = defaultdict(Power)
    for cell in module.cells:
        found[breakdown.station(cell.place).row] += meter.cell(cell)
    for port in module.ports.values():
        if port.direction == "input":
            found[INPUTS].switching_fj += sum(meter.switching(net) for net in port.nets if net != clock)
    return dict(found)


def total(parts: Mapping[str, Power]) -> Power:
    """Return the sum."""
    result = Power()
    for part in parts.values():
        result += part
    return result


class _Meter:
    def __init__(self, netlist: Netlist, library: Library, energies: Energies, activity: Activity) -> None:
        self._timing = Timing(netlist, library)
        self._library, self._energies, self._activity = library, energies, activity
        self._square = energies.capacitance_ff * energies.volts**2

    def switching(self, net: int | str) -> float:
        """Return the energy per cycle of charging a net, fJ."""
        return self._activity.rate(net) * self._timing.load(net) * self._square / 2

    def cell(self, cell: MappedCell) -> Power:
        """Return the power of one cell: leakage, its outputs' nets, and internal energy."""
        kind, consumed = self._library.cells[cell.kind], self._energies.cells[cell.kind]
        states = PinStates(kind, cell.pins, consumed.flip_flop, self._activity)
        result = Power(leakage_uw=_mean(states, consumed.leakages))
        result.switching_fj = sum(self.switching(cell.pins[pin]) for pin in kind.functions if pin in cell.pins)
        gate = kind.clock_gate
        clock = consumed.flip_flop.clock if consumed.flip_flop else gate.clock if gate else None
        for pin, groups in consumed.pins.items():
            if gate and pin == gate.output:
                result.clock_fj += self._output(cell, pin, groups, states)
            elif pin in kind.functions:
                result.internal_fj += self._output(cell, pin, groups, states)
            elif pin == clock:
                result.clock_fj += self._input(cell, pin, groups, states, {})
                result.clock_fj += kind.capacitances[pin] * self._square * self._activity.rate(cell.pins[pin]) / 2
            else:
                result.internal_fj += self._input(cell, pin, groups, states, {clock: True} if clock else {})
        return result

    def _input(
        self, cell: MappedCell, pin: str, groups: tuple[InternalEnergy, ...], states: PinStates, fixed: Mapping[str, bool]
    ) -> float:
        """Return the energy per cycle inside a cell at the edges of an input: each group in its condition's share of time."""
        net = cell.pins.get(pin, "0")
        slew, edges = self._timing.transition(net), self._activity.rate(net) / 2
        shares = _shares(states, [group.when for group in groups], fixed)
        units = sum(share * _both(group, slew, 0.0) for group, share in zip(groups, shares, strict=True))
        return edges * units * self._energies.energy_fj

    def _output(self, cell: MappedCell, pin: str, groups: tuple[InternalEnergy, ...], states: PinStates) -> float:
        """Return the energy per cycle inside a cell at the edges of an output.

        It is the mean of the groups, weighted by how often their inputs change in their state.
        """
        net = cell.pins.get(pin)
        rate = states.change_rate if net is None else self._activity.rate(net)
        load = 0.0 if net is None else self._timing.load(net)
        shares = _shares(states, [group.when for group in groups], {})
        weights, units = [], []
        for group, share in zip(groups, shares, strict=True):
            causes = [cell.pins.get(name, "0") for name in group.related]
            weights.append(share * sum(self._activity.rate(cause) for cause in causes))
            units.append(_both(group, max(map(self._timing.transition, causes), default=0.0), load))
        if not any(weights):
            weights = [1.0] * len(groups)
        mean = sum(w * u for w, u in zip(weights, units, strict=True)) / sum(weights) if groups else 0.0
        return rate / 2 * mean * self._energies.energy_fj


def _both(group: InternalEnergy, slew: float, load: float) -> float:
    """Return the energy of a rising and a falling edge together, in units of the library."""
    return sum(one.at(slew, load) for one in (group.rise, group.fall) if one)


def _shares(states: PinStates, conditions: list[str], fixed: Mapping[str, bool]) -> list[float]:
    """Return the shares of time of one pin's conditions; a group without a condition has the rest."""
    known = [states.probability(when, fixed) if when else 0.0 for when in conditions]
    rest = max(1 - sum(known), 0.0)
    return [share if when else rest for share, when in zip(known, conditions, strict=True)]


def _mean(states: PinStates, leakages: Mapping[str, float]) -> float:
    shares = _shares(states, list(leakages), {})
    return sum(share * value for share, value in zip(shares, leakages.values(), strict=True))

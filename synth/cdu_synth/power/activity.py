"""Stimulus of a netlist, and the activity of its nets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cdu_synth.area.timing import Net


@dataclass(frozen=True)
class Activity:
    """Activity of the nets of a netlist in a simulation.

    Parameters
    ----------
    cycles
        Number of clock cycles.
    toggles
        Changes of each net from one cycle to the next, both directions together.
    high
        Share of the cycles in which each net is 1.
    """

    cycles: int
    toggles: Mapping[int, int]
    high: Mapping[int, float]

    def rate(self, net: Net) -> float:
        """Return the changes of a net per cycle; 0 for constants."""
        return self.toggles.get(net, 0) / self.cycles if isinstance(net, int) else 0.0

    def probability(self, net: Net) -> float:
        """Return the share of the cycles in which a net or a constant is 1."""
        return self.high.get(net, 0.0) if isinstance(net, int) else float(net == "1")


@dataclass(frozen=True)
class Stimulus:
    """Inputs of a module in a simulation, and the number of words expected from it.

    Parameters
    ----------
    inputs
        Words to send by input stream; offered as fast as they are taken.
    expected
        Number of words to receive by output stream; taken as fast as they are offered.
    settings
        Values of input ports that are not streams, constant; 0 for ports not listed.
    starts
        Whether the port ``start`` is pulsed first.
    """

    inputs: Mapping[str, Sequence[int]]
    expected: Mapping[str, int]
    settings: Mapping[str, int] = field(default_factory=dict)
    starts: bool = False

"""What is played to a netlist, and what its nets did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cdu_synth.area.timing import Net


@dataclass(frozen=True)
class Activity:
    """What the nets of a netlist did.

    Parameters
    ----------
    cycles
        Clock cycles.
    toggles
        By net: changes from one cycle to the next, both directions together.
    high
        By net: share of the cycles at 1.
    """

    cycles: int
    toggles: Mapping[int, int]
    high: Mapping[int, float]

    def rate(self, net: Net) -> float:
        """Changes of a net per cycle; 0 for constants."""
        return self.toggles.get(net, 0) / self.cycles if isinstance(net, int) else 0.0

    def probability(self, net: Net) -> float:
        """Share of the cycles that a net or a constant is 1."""
        return self.high.get(net, 0.0) if isinstance(net, int) else float(net == "1")


@dataclass(frozen=True)
class Stimulus:
    """What goes into a module, and how much must come out.

    Parameters
    ----------
    inputs
        Words to be sent, by input stream, offered as fast as they are taken.
    expected
        Numbers of words that must come, by output stream, taken as fast as they are offered.
    settings
        Bits of input ports that are no streams, constant; 0 for the others.
    starts
        Pulse the port ``start`` before.
    """

    inputs: Mapping[str, Sequence[int]]
    expected: Mapping[str, int]
    settings: Mapping[str, int] = field(default_factory=dict)
    starts: bool = False

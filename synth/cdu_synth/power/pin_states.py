"""Probabilities of conditions on a cell's pins (``when`` of Liberty), from the activity of its nets.

Pins are assumed independent, apart from state and data of a flip-flop: the rate at which these differ before a clock edge is
the rate at which the flip-flop changes, which was counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from itertools import product

from cdu_synth.area.timing import Net
from cdu_synth.library.cell_groups import FlipFlop
from cdu_synth.library.functions import evaluate
from cdu_synth.library.liberty import Cell
from cdu_synth.power.activity import Activity


class PinStates:
    """Compute probabilities of the states of one cell.

    Parameters
    ----------
    cell, pins
        Type of the cell, and its nets by pin.
    flip_flop
        Flip-flop of the cell, None for a gate.
    activity
        Activity of the nets.
    """

    def __init__(self, cell: Cell, pins: Mapping[str, Net], flip_flop: FlipFlop | None, activity: Activity) -> None:
        self._pins, self._activity = pins, activity
        #: Pins that show the state, and whether inverted; also the data pin, where the next state depends on one pin.
        self._state: dict[str, bool] = {}
        self._data: dict[str, bool] = {}
        self._high = self._rate = 0.0
        if flip_flop:
            self._state = {pin: _inverted(text, flip_flop) for pin, text in cell.functions.items()}
            names, rows = minterms(flip_flop.next_state)
            if len(names) == 1 and len(rows) == 1:
                self._data = {names[0]: not rows[0][0]}
            shown = [pin for pin in self._state if pin in pins]
            if shown:
                high = activity.probability(pins[shown[0]])
                self._high = 1 - high if self._state[shown[0]] else high
                self._rate = activity.rate(pins[shown[0]])

    @property
    def change_rate(self) -> float:
        """Return the changes of a flip-flop's state per cycle."""
        return self._rate

    def probability(self, condition: str, fixed: Mapping[str, bool] | None = None) -> float:
        """Return the share of time in which a condition holds, 1 for an empty one; ``fixed`` pins have one value."""
        if not condition:
            return 1.0
        names, rows = minterms(condition)
        return sum(self._row(names, row, fixed or {}) for row in rows)

    def _row(self, names: tuple[str, ...], row: tuple[bool, ...], fixed: Mapping[str, bool]) -> float:
        result, states, nexts = 1.0, set[bool](), set[bool]()
        for name, value in zip(names, row, strict=True):
            if name in self._state:
                states.add(value != self._state[name])
            elif name in self._data:
                nexts.add(value != self._data[name])
            elif name in fixed:
                result *= fixed[name] == value
            else:
                high = self._activity.probability(self._pins.get(name, "0"))
                result *= high if value else 1 - high
        if len(states) > 1:
            return 0.0
        return result * self._joint(states, nexts)

    def _joint(self, states: set[bool], nexts: set[bool]) -> float:
        """Return the joint probability of a state and of the data for the next one, where they are given."""
        if not states and not nexts:
            return 1.0
        if states and nexts and states != nexts:
            return self._rate / 2
        high = True in (states or nexts)
        share = self._high if high else 1 - self._high
        return max(share - self._rate / 2, 0.0) if states and nexts else share


@cache
def minterms(condition: str) -> tuple[tuple[str, ...], tuple[tuple[bool, ...], ...]]:
    """Return the variables of a Liberty function, and the rows of values for which it is true."""
    names = tuple(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", condition)))
    rows = product((False, True), repeat=len(names))
    return names, tuple(row for row in rows if evaluate(condition, dict(zip(names, row, strict=True))))


def _inverted(function: str, flip_flop: FlipFlop) -> bool:
    """Return whether an output of a flip-flop shows the inverse of its state."""
    return evaluate(function, {flip_flop.state: False, flip_flop.inverse: True})

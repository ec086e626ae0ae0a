"""A stream from one clock to another."""

from __future__ import annotations

from amaranth.utils import exact_log2
from cdu.parts.clock_crossing import ClockCrossing
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import binding, device
from cdu_verif.formal.device import BoundDevice, Probe
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import REACHABILITY, Sby

#: Words of the FIFO that is proven.
_DEPTH = 4
#: Pointers that cross, in Gray code.
_POINTERS = {"written": "fifo.produce_w_gry", "read": "fifo.consume_r_gry"}


def _crossing(config: CduConfig) -> BoundDevice:
    clocked = config.adapted(own_clocks=("registers",), reset_kind="async")
    made = device.of_component(ClockCrossing(1, "registers", "sync", _DEPTH), "clock_crossing", clocked)
    return made.probed(dict.fromkeys(_POINTERS.values(), exact_log2(_DEPTH) + 1))


def _rules(made: BoundDevice) -> str:
    pointers = {name: Probe(path, 0).wire for name, path in _POINTERS.items()}
    return device.harness(made, binding.instance("clock_crossing_rules", {"DEPTH": _DEPTH}, pointers))


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            "clock_crossing",
            "order",
            "Words cross between any two clocks once, in order, where there is room; what crosses changes one bit at a time.",
            lambda: _crossing(config),
            Sby(REACHABILITY, 0, _rules, clocks=True),
        )
    ]


RECORD = Record(benches=(), streams=None, properties=_properties)

"""Constraints of a unit or block in SDC: clocks, delays at the ports, and paths between clocks. No name of a cell is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cdu_spec.config import CduConfig

from cdu.delivery.crossings import RESET, Crossing
from cdu.delivery.interfaces import clock_pair

#: Default of every clock's period in ns. It is to be replaced: it is no promise of any library.
PERIOD_NS = 10.0
#: Default of the delays outside the ports, as a part of the period.
_OUTSIDE = 0.2

_HEAD = """\
# {top}: constraints. All times are in ns. Replace a parameter by setting it before this file is read.
"""
_CLOCK = """
if {{![info exists {clock}_period]}} {{set {clock}_period {period}}}
if {{![info exists {clock}_input_delay]}} {{set {clock}_input_delay [expr {{{outside} * ${clock}_period}}]}}
if {{![info exists {clock}_output_delay]}} {{set {clock}_output_delay [expr {{{outside} * ${clock}_period}}]}}
create_clock -name {clock} -period ${clock}_period{port}
"""
_CROSSED = """
# From {begin} to {end}: {count} registers, listed in {name}.json, which data reach within a period of {end}.
set_max_delay -ignore_clock_latency -from [get_clocks {begin}] -to [get_clocks {end}] ${end}_period
set_false_path -hold -from [get_clocks {begin}] -to [get_clocks {end}]
"""
_RESET = "set_false_path -from [get_ports {port}] -to [get_clocks {end}]\n"


def sdc(name: str, top: str, ports: Sequence[Mapping[str, Any]], crossings: Sequence[Crossing], config: CduConfig) -> str:
    """Return the text of NAME.sdc for the ports that a manifest lists and the crossings between their clocks."""
    names = {port["name"] for port in ports}
    text = [_HEAD.format(top=top)]
    for clock, _ in config.clock_ports.values():
        port = f" [get_ports {clock}]" if clock in names else ""  # without one: a clock of the surroundings
        text.append(_CLOCK.format(clock=clock, period=PERIOD_NS, outside=_OUTSIDE, port=port))
        for direction in ("input", "output"):
            at_clock = [
                port["name"]
                for port in ports
                if port["direction"] == direction and clock_pair(port["name"], config)[0] == clock != port["name"]
            ]
            if at_clock:
                ends = " ".join(at_clock)
                text.append(f"set_{direction}_delay ${clock}_{direction}_delay -clock {clock} [get_ports {{{ends}}}]\n")
    return "".join([*text, *_between(name, crossings)])


def _between(name: str, crossings: Sequence[Crossing]) -> Iterator[str]:
    """Yield the constraints of paths from one clock to another."""
    for begin, end in sorted({(crossing.begin, crossing.end) for crossing in crossings}):
        found = [crossing for crossing in crossings if (crossing.begin, crossing.end) == (begin, end)]
        yield _CROSSED.format(begin=begin, end=end, count=len({one.register for one in found}), name=name)
        resets = {source for crossing in found if crossing.kind == RESET for source in crossing.sources}
        yield from (_RESET.format(port=port, end=end) for port in sorted(resets))

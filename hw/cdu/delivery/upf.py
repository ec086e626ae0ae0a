"""Power intent of a unit in UPF (IEEE 1801): a sketch with one domain that can be switched off, to be completed for a chip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_TEXT = """\
# {top}: a sketch of its power intent, to be completed with the supplies and switches of the chip.
# The unit may lose its power when {when}.
# Nothing is retained: reset it afterwards and write the registers and tables again.
upf_version 2.1
set_design_top {top}
create_supply_port VDD
create_supply_port VSS
create_supply_net VDD
create_supply_net VSS
connect_supply_net VDD -ports VDD
connect_supply_net VSS -ports VSS
create_supply_set unit_supply -function {{power VDD}} -function {{ground VSS}}
create_power_domain unit -elements {{.}} -supply {{primary unit_supply}}
# Outputs are 0 without power: nothing is valid, nothing is taken, no interrupt.
create_logic_port isolate -direction in
set_isolation outputs -domain unit -applies_to outputs{others} -clamp_value 0 -isolation_signal isolate -location parent
"""
_IDLE = """\
# Its clock may stay off.
set_isolation idle -domain unit -elements {idle} -clamp_value 1 -isolation_signal isolate -location parent
"""


def upf(top: str, ports: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of NAME.upf for the unit with the top module ``top``; ``ports`` are those of the manifest."""
    if any(port["name"] == "idle" for port in ports):
        when, others = "`idle` is high and no job is queued", " -exclude_elements {idle}"
        return _TEXT.format(top=top, when=when, others=others) + _IDLE
    return _TEXT.format(top=top, when="no job is queued or under way, and all transfers at its ports have ended", others="")

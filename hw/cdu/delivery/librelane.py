"""Configuration of LibreLane's flow ``Classic`` for a unit or block; PDK and floorplan are the user's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cdu_spec.config import CduConfig

from cdu.delivery.sdc import PERIOD_NS


def librelane(name: str, top: str, ports: Sequence[Mapping[str, Any]], config: CduConfig) -> str:
    """Return the text of NAME_librelane.yaml for the ports that a manifest lists."""
    names = {port["name"] for port in ports}
    clocks = [clock for clock, _ in config.clock_ports.values() if clock in names]
    values: dict[str, Any] = {
        "meta": {"version": 2, "flow": "Classic"},
        "DESIGN_NAME": top,
        "VERILOG_FILES": [f"dir::{name}.v"],
        "CLOCK_PORT": clocks or None,
        "CLOCK_PERIOD": PERIOD_NS,
        "PNR_SDC_FILE": f"dir::{name}.sdc",
        "SIGNOFF_SDC_FILE": f"dir::{name}.sdc",
    }
    return json.dumps(values, indent=2) + "\n"

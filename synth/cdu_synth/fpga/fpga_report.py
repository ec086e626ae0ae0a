"""Report of a unit on an FPGA: ``report.json`` and ``report.md``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cdu.delivery import verilog
from cdu_spec.config import CduConfig
from cdu_tools.files import write_whole

from cdu_synth.fpga import nextpnr
from cdu_synth.fpga.fpga import GOAL_MHZ, Placement
from cdu_synth.fpga.fpga_devices import Target

CAVEAT = (
    "Placed and routed out of context, that is without pads and with nothing around it; not run on a board. The frequency is "
    "that of paths between registers with an ideal clock; paths from inputs and to outputs are not timed. Another seed changes "
    "it by some percent, the goal does not change it."
)
#: Heads of the columns of a table, by resource.
HEADS = {"lut4": "LUT4", "lut4_as_ram": "of these RAM", "flip_flops": "FF", "dsp": "DSP", "block_ram": "BRAM"}


def report(
    placements: Mapping[str, Placement], config: CduConfig, target: Target, seed: int, command: str, yosys_version: str
) -> dict[str, Any]:
    """The content of ``report.json``.

    Parameters
    ----------
    placements
        What every block, and the unit under the name of its configuration, takes.
    config
        Configuration that they were built for.
    target, seed
        What they were placed on, and the seed.
    command
        The command line that makes this report.
    yosys_version
        The Yosys that was used, ``name version``.
    """
    tool = target.family.tool
    return {
        "fpga": target.family.name,
        "devices": list(target.devices),
        "package": target.family.package,
        "speed_grade": target.speed,
        "seed": seed,
        "goal_mhz": GOAL_MHZ,
        "config": config.to_dict(),
        "command": command,
        "versions": verilog.versions() | {"synthesis": yosys_version, tool: nextpnr.version(tool)},
        "blocks": {name: _entry(placement) for name, placement in placements.items()},
    }


def write(folder: Path, content: dict[str, Any]) -> list[Path]:
    """Write both files of a report into an existing folder and return their paths."""
    paths = [folder / name for name in ("report.json", "report.md")]
    write_whole(paths[0], json.dumps(content, indent=2) + "\n")
    write_whole(paths[1], markdown(content))
    return paths


def markdown(content: dict[str, Any]) -> str:
    """The report as a page with a table."""
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    return f"""\
# Configuration {content["config"]["name"]} on {content["fpga"]}

{table(content["blocks"])}

Percentages are of what the device has. {CAVEAT}

- command: `{content["command"]}`
- devices tried, from small to large: {", ".join(content["devices"])}; speed grade {content["speed_grade"]}, \
package {content["package"]}, seed {content["seed"]}, goal {content["goal_mhz"]:g} MHz
- configuration: `{json.dumps(content["config"])}`
- versions: {versions}
"""


def table(entries: Mapping[str, dict[str, Any]]) -> str:
    """A table with a row for each of the blocks of a report."""
    rows = [["block", "device", *HEADS.values(), "MHz", "slowest path"], ["---"] * 2 + ["---:"] * (len(HEADS) + 1) + ["---"]]
    rows += [[name, *cells(block), block["problem"] or _path(block["critical_path"])] for name, block in entries.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def cells(entry: dict[str, Any]) -> list[str]:
    """Device, resources in the order of :data:`HEADS` and MHz of a block, as texts."""
    row = [entry["device"]]
    for resource in HEADS:
        used, available = entry[resource], entry["available"][resource]
        row.append(f"{used:,} ({used / available:.0%})" if used else "0")
    return [*row, f"{entry['mhz']:.1f}" if entry["mhz"] else ""]


def _path(path: dict[str, Any] | None) -> str:
    if path is None:
        return "none between registers"
    delays = f"{path['logic_ns']:.1f} ns in {path['levels']} cells, {path['routing_ns']:.1f} ns in wires"
    return f"`{path['start']}` to `{path['end']}`: {delays}; in {', '.join(f'`{name}`' for name in path['modules'])}"


def _entry(placement: Placement) -> dict[str, Any]:
    return {
        "device": placement.device,
        **placement.used,
        "available": placement.available,
        "mhz": placement.mhz,
        "problem": placement.problem,
        "critical_path": asdict(placement.path) if placement.path else None,
    }

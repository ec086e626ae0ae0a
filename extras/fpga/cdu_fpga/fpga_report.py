"""Report of a unit on an FPGA: ``report.json`` and ``report.md``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from cdu_synth.area import provenance
from cdu_tools.report import Page, Report, Table, json_text

from cdu_fpga.fpga import GOAL_MHZ, FpgaPlacement
from cdu_fpga.fpga_devices import Target

CAVEAT = (
    "Placed and routed out of context, that is without pads and with nothing around it; not run on a board. The frequency is "
    "that of paths between registers with an ideal clock; paths from inputs and to outputs are not timed. Another seed changes "
    "it by some percent, the goal does not change it."
)
#: Heads of the columns of a table, by resource.
HEADS = {"lut4": "LUT4", "lut4_as_ram": "of these RAM", "flip_flops": "FF", "dsp": "DSP", "block_ram": "BRAM"}


def report(placements: Mapping[str, FpgaPlacement], made_with: Mapping[str, Any], target: Target, seed: int) -> dict[str, Any]:
    """Return the content of ``report.json``.

    Parameters
    ----------
    placements
        Placement of every block, and of the unit under the name of its configuration.
    made_with
        Entries of :func:`cdu_synth.area.provenance.provenance`.
    target, seed
        Devices of the placements, and the seed.
    """
    return {
        "fpga": target.family.name,
        "devices": list(target.devices),
        "package": target.family.package,
        "speed_grade": target.speed,
        "seed": seed,
        "goal_mhz": GOAL_MHZ,
        **made_with,
        "blocks": {name: _entry(placement) for name, placement in placements.items()},
    }


def of_content(content: dict[str, Any]) -> Report:
    """Return the files of a report."""
    return Report(content, {"report.json": json_text(content), "report.md": markdown(content)})


def markdown(content: dict[str, Any]) -> str:
    """Return the report as a page with a table."""
    how = f"speed grade {content['speed_grade']}, package {content['package']}, seed {content['seed']}"
    tried = f"{', '.join(content['devices'])}; {how}, goal {content['goal_mhz']:g} MHz"
    facts = provenance.facts(content) | {"devices tried, from small to large": tried}
    parts: list[str | Table] = [table(content["blocks"]), f"Percentages are of what the device has. {CAVEAT}"]
    return Page(f"Configuration {content['unit']} on {content['fpga']}", parts, facts).markdown()


def table(entries: Mapping[str, dict[str, Any]]) -> Table:
    """Return a table with a row for each block of a report."""
    rows = [[name, *cells(block), block["problem"] or _path(block["critical_path"])] for name, block in entries.items()]
    return Table(["block", "device", *HEADS.values(), "MHz", "slowest path"], rows)


def cells(entry: dict[str, Any]) -> list[str]:
    """Return device, resources in the order of :data:`HEADS` and MHz of a block, as texts."""
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


def _entry(placement: FpgaPlacement) -> dict[str, Any]:
    return {
        "device": placement.device,
        **placement.used,
        "available": placement.available,
        "mhz": placement.mhz,
        "problem": placement.problem,
        "critical_path": asdict(placement.path) if placement.path else None,
    }

"""Cost report of a unit: ``report.json``, ``report.md``, ``area.png``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdu import verilog
from cdu_spec.config import CduConfig
from cdu_spec.files import write_whole

from cdu_synth.flow import Cost
from cdu_synth.liberty import Library

CAVEAT = (
    "Pre-layout estimate, not a tape-out result: no wires, no clock tree, ideal clock, one corner. Gates are mapped by "
    "Yosys and ABC, high fan-out is buffered, gates are sized. The critical path includes clock-to-output delay and setup; "
    "inputs arrive at 0, nothing is charged behind outputs. Memories are made of flip-flops."
)


def report(
    costs: Mapping[str, Cost], config: CduConfig, library: Library, clock_ns: float, command: str, yosys_version: str
) -> dict[str, Any]:
    """The content of ``report.json``.

    Parameters
    ----------
    costs
        What every block, and the unit under the name of its configuration, costs.
    config
        Configuration that they were built for.
    library
        Library that they were mapped onto.
    clock_ns
        Period that was asked for.
    command
        The command line that makes this report.
    yosys_version
        The Yosys that was used, ``name version``.
    """
    return {
        "pdk": library.name,
        "library_files": [path.name for path in library.files],
        "library_sha256": library.sha256,
        "gate": {"name": library.gate.name, "area_um2": library.gate.area},
        "clock_ns": clock_ns,
        "config": config.to_dict(),
        "command": command,
        "versions": verilog.versions() | {"synthesis": yosys_version},
        "blocks": {name: _entry(cost) for name, cost in costs.items()},
    }


def write(folder: Path, content: dict[str, Any]) -> list[Path]:
    """Write the three files of a report into an existing folder and return their paths."""
    paths = [folder / name for name in ("report.json", "report.md", "area.png")]
    write_whole(paths[0], json.dumps(content, indent=2) + "\n")
    write_whole(paths[1], markdown(content))
    write_whole(paths[2], chart(content))
    return paths


def markdown(content: dict[str, Any]) -> str:
    """The report as a page with a table."""
    gate, power = content["gate"], any("leakage_uw" in block for block in content["blocks"].values())
    head = ["block", "um2", "kGE", "flip-flops", "cells", "critical path (ns)", "MHz", "slowest path", "mapping"]
    head += ["leakage (uW)"] if power else []
    rows = [head, ["---"] + ["---:"] * 6 + ["---", "---"] + ["---:"] * power]
    for name, block in content["blocks"].items():
        path = block["critical_path"]
        row = [name, f"{block['area_um2']:,.0f}", f"{block['ge'] / 1e3:.2f}", f"{block['flip_flops']:,}"]
        row += [f"{block['cells']:,}", f"{block['critical_path_ns']:.2f}", f"{block['mhz']:.0f}"]
        row += [f"`{path['start']}` to `{path['end']}`, {path['cells']} cells" if path["start"] else "", block["mapping"]]
        rows.append(row + ([f"{block['leakage_uw']:.3g}" if "leakage_uw" in block else ""] if power else []))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    return f"""\
# Cost of configuration {content["config"]["name"]} in {content["pdk"]}

{table}

Goal: {content["clock_ns"]} ns. Every block is mapped in several ways; the smallest result that meets the goal is shown,
or the fastest when none does.
1 GE = {gate["name"]} = {gate["area_um2"]} um2.

{CAVEAT}

- command: `{content["command"]}`
- configuration: `{json.dumps(content["config"])}`
- versions: {versions}
- library: {", ".join(content["library_files"])}, SHA-256 of the unpacked text {content["library_sha256"]}
"""


def chart(content: dict[str, Any]) -> bytes:
    """Horizontal bars of the areas, largest first, as PNG."""
    import io

    from matplotlib.figure import Figure

    blocks = sorted(content["blocks"].items(), key=lambda item: item[1]["ge"])
    figure = Figure(figsize=(8, 1.2 + 0.36 * len(blocks)), layout="constrained")
    axes = figure.add_subplot()
    bars = axes.barh([name for name, _ in blocks], [block["ge"] / 1e3 for _, block in blocks], color="#3b6ea5")
    labels = [f"{block['ge'] / 1e3:.2f} kGE, {block['mhz']:.0f} MHz" for _, block in blocks]
    axes.bar_label(bars, labels, padding=4, fontsize=9)
    axes.margins(x=0.36)
    axes.set_xlabel(f"area in kGE (1 GE = {content['gate']['area_um2']} um²), pre-layout")
    axes.set_title(f"Configuration {content['config']['name']} in {content['pdk']}")
    axes.spines[["top", "right"]].set_visible(False)
    image = io.BytesIO()
    # Without the version of matplotlib in the file, equal figures are equal bytes.
    figure.savefig(image, format="png", dpi=120, metadata={"Software": None})
    return image.getvalue()


def _entry(cost: Cost) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "area_um2": cost.area_um2,
        "ge": cost.ge,
        "flip_flops": cost.flip_flops,
        "cells": cost.cells,
        "critical_path_ns": cost.critical_path_ns,
        "mhz": round(cost.mhz, 1),
        "critical_path": {"start": cost.start, "end": cost.end, "cells": cost.levels},
        "mapping": cost.recipe,
    }
    if cost.leakage_uw is not None:
        entry["leakage_uw"] = cost.leakage_uw
    return entry

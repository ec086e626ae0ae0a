"""Cost report of a unit: ``report.json``, ``report.md``, ``area.png``, ``sweep.png``."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from cdu_tools.report import Page, Report, Table, json_text

from cdu_synth.area import breakdown, clock_sweep, provenance
from cdu_synth.area.flow import Cost
from cdu_synth.area.opensta import OpenSta
from cdu_synth.library.liberty import Library

_TIMING = {"opensta": "OpenSTA", "builtin": "built-in (cdu_synth.area.timing), version"}
CAVEAT = (
    "Pre-layout estimate, not a tape-out result: no wires, no clock tree, ideal clock, one corner. Gates are mapped by "
    "Yosys and ABC, high fan-out is buffered, gates are sized. The critical path includes clock-to-output delay and setup; "
    "inputs arrive at 0, nothing is charged behind outputs. Memories without a macro are made of flip-flops."
)


def report(
    costs: Mapping[str, Cost],
    made_with: Mapping[str, Any],
    library: Library,
    sta: OpenSta | None = None,
    sweep: Mapping[str, Mapping[float, Cost]] | None = None,
) -> dict[str, Any]:
    """Return the content of ``report.json``.

    Parameters
    ----------
    costs
        Cost of every block, and of the unit under the name of its configuration.
    made_with
        Entries of :func:`cdu_synth.area.provenance.provenance`.
    library
        Library of the cells.
    sta
        The OpenSTA that computed the timing; None for the built-in timing.
    sweep
        Costs of every block by target period; used only with several periods.
    """
    swept = {name: clock_sweep.points(of_periods) for name, of_periods in (sweep or {}).items() if len(of_periods) > 1}
    builtin = {"tool": "builtin", "version": made_with["versions"]["cdu"]}
    return {
        **made_with,
        "timing": {"tool": "opensta", "version": sta.version} if sta else builtin,
        "blocks": {name: _entry(cost, library) for name, cost in costs.items()},
        **({"sweep": swept} if swept else {}),
    }


def of_content(content: dict[str, Any]) -> Report:
    """Return the files of a report."""
    files: dict[str, str | bytes] = {
        "report.json": json_text(content),
        "report.md": markdown(content),
        "area.png": chart(content),
    }
    if "sweep" in content:
        files["sweep.png"] = clock_sweep.chart(content)
    return Report(content, files)


def markdown(content: dict[str, Any]) -> str:
    """Return the report as a page with a table."""
    parts: list[str | Table] = [
        _table(content["blocks"]),
        f"Goal: {content['clock_ns']} ns. Every block is mapped in several ways; the smallest result that meets the goal is "
        f"shown,\nor the fastest when none does.\n{provenance.gate(content)}",
    ]
    for name, block in content["blocks"].items():
        if "breakdown" in block:
            parts += [f"## {name} by rows of JPEG-ACT's table", *_breakdown(block)]
    if "sweep" in content:
        parts += ["## Area against period", clock_sweep.table(content["sweep"])]
    timing = f"{_TIMING[content['timing']['tool']]} {content['timing']['version']}"
    facts = provenance.facts(content) | {"static timing": timing}
    return Page(f"Cost of configuration {content['unit']} in {content['pdk']}", [*parts, CAVEAT], facts).markdown()


def _table(blocks: Mapping[str, dict[str, Any]]) -> Table:
    """Return a table with a row per block."""
    power = any("leakage_uw" in block for block in blocks.values())
    head = ["block", "um2", "kGE", "flip-flops", "clock gates", "cells", "critical path (ns)", "MHz", "slowest path", "mapping"]
    macros = any("macros" in block for block in blocks.values())
    rows = []
    for name, block in blocks.items():
        path = block["critical_path"]
        row = [name, f"{block['area_um2']:,.0f}", f"{block['ge'] / 1e3:.2f}", f"{block['flip_flops']:,}"]
        row += [str(block["clock_gates"]), f"{block['cells']:,}", f"{block['critical_path_ns']:.2f}", f"{block['mhz']:.0f}"]
        row += [f"`{path['start']}` to `{path['end']}`, {path['cells']} cells" if path["start"] else "", block["mapping"]]
        row += [f"{block['leakage_uw']:.3g}" if "leakage_uw" in block else ""] if power else []
        rows.append(row + ([_macros(block)] if macros else []))
    return Table(head + (["leakage (uW)"] if power else []) + (["macros beside (um2)"] if macros else []), rows)


def _macros(block: dict[str, Any]) -> str:
    """Return the number of a block's memories that are not in its area, and their area if it is known."""
    found = block.get("macros", {"count": 0, "area_um2": 0})
    return f"{found['count']} ({found['area_um2']:,.0f})" if found["area_um2"] else str(found["count"])


def _breakdown(block: dict[str, Any]) -> list[str | Table]:
    """Return the rows of a block, their sum, and its slowest paths."""
    power = all("leakage_uw" in row for row in block["breakdown"].values())
    head = ["row", "um2", "kGE", "share", "flip-flops", "cells"] + (["leakage (uW)"] if power else [])
    rows = []
    for name, row in [*block["breakdown"].items(), ("**sum**", {**block, "share": 1.0})]:
        figures = [f"{row['area_um2']:,.0f}", f"{row['ge'] / 1e3:.2f}", f"{row['share']:.1%}", f"{row['flip_flops']:,}"]
        rows.append([name, *figures, f"{row['cells']:,}"] + ([f"{row['leakage_uw']:.3g}"] if power else []))
    paths = [
        [f"{path['delay_ns']:.2f}", str(path["cells"]), _end(path["start"]), _end(path["end"]), _through(path["stations"])]
        for path in block["slow_paths"]
    ]
    ends = Table(["ns", "cells", "from", "to", "through"], paths)
    return [Table(head, rows), breakdown.NOTE, "Slowest paths, each to another register or port:", ends]


def _through(stations: list[dict[str, str]]) -> str:
    return " > ".join(f"{stop['row']} (`{stop['instance'] or 'top'}`)" for stop in stations)


def _end(end: dict[str, Any]) -> str:
    """Return an end of a path with the module and line that declare it."""
    return f"`{end['net']}` ({end['module']}" + (f", line {end['line']})" if end["line"] else ")")


def chart(content: dict[str, Any]) -> bytes:
    """Return horizontal bars of the areas as PNG: blocks, largest first, and a panel with the rows of each breakdown."""
    from matplotlib.figure import Figure

    blocks = sorted(content["blocks"].items(), key=lambda item: item[1]["ge"])
    panels = [("", [(name, block, f"{block['mhz']:.0f} MHz") for name, block in blocks])]
    for name, block in content["blocks"].items():
        if "breakdown" in block:
            rows = reversed(block["breakdown"].items())
            panels.append((f"{name} by rows of JPEG-ACT's table", [(row, part, f"{part['share']:.1%}") for row, part in rows]))
    heights = [0.9 + 0.36 * len(bars) for _, bars in panels]
    figure = Figure(figsize=(8, 0.5 + sum(heights)), layout="constrained")
    all_axes = figure.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0]
    for axes, (title, bars) in zip(all_axes, panels, strict=True):
        sizes = [part["ge"] / 1e3 for _, part, _ in bars]
        drawn = axes.barh([name for name, _, _ in bars], sizes, color="#5b8c5a" if title else "#3b6ea5")
        labels = [f"{size:.2f} kGE, {more}" for size, (_, _, more) in zip(sizes, bars, strict=True)]
        axes.bar_label(drawn, labels, padding=4, fontsize=9)
        axes.margins(x=0.36)
        axes.set_title(title or f"Configuration {content['unit']} in {content['pdk']}")
        axes.spines[["top", "right"]].set_visible(False)
    all_axes[-1].set_xlabel(f"area in kGE (1 GE = {content['gate']['area_um2']} um²), pre-layout")
    image = io.BytesIO()
    # The version of matplotlib is not written to the file, so that equal figures are equal bytes.
    figure.savefig(image, format="png", dpi=120, metadata={"Software": None})
    return image.getvalue()


def _entry(cost: Cost, library: Library) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "area_um2": cost.area_um2,
        "ge": cost.ge,
        "flip_flops": cost.flip_flops,
        "clock_gates": cost.clock_gates,
        "cells": cost.cells,
        "critical_path_ns": cost.critical_path_ns,
        "mhz": round(cost.mhz, 1),
        "critical_path": {"start": cost.start, "end": cost.end, "cells": cost.levels},
        "mapping": cost.recipe,
    }
    if cost.leakage_uw is not None:
        entry["leakage_uw"] = cost.leakage_uw
    if cost.macros:
        entry["macros"] = {"count": cost.macros, "area_um2": cost.macros_um2}
    if cost.shares:
        entry["breakdown"] = {share.row: _row(share, cost, library) for share in cost.shares}
        entry["slow_paths"] = [asdict(path) for path in cost.slow_paths]
    return entry


def _row(share: breakdown.Share, cost: Cost, library: Library) -> dict[str, Any]:
    row: dict[str, Any] = {
        "area_um2": round(share.area_um2, 3),
        "ge": round(share.area_um2 / library.gate.area, 1),
        "share": round(share.area_um2 / cost.area_um2, 4),
        "flip_flops": share.flip_flops,
        "cells": share.cells,
    }
    if share.leakage_uw is not None:
        row["leakage_uw"] = round(share.leakage_uw, 3)
    return row

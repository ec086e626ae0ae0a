"""Report of ``cdu place``: ``report.json``, ``report.md``, and a picture of every block."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from cdu_synth.area import provenance
from cdu_synth.area.timing import Netlist
from cdu_synth.library.liberty import Library
from cdu_tools.report import Page, Report, Table, json_text

from cdu_placement.placed import Placed
from cdu_placement.placer import Placement

_CAVEAT = (
    "Placed, not routed: every net is a tree of wires along rows and columns between the centres of its cells, with one "
    "resistance and capacitance per um, as short as if it were alone. No clock tree: the clock is ideal, and its wires and "
    "buffers are not counted. Optimised: trees of buffers on the slowest paths built anew where the cells are, gates "
    "there made larger, cells moved to make room, wires and clock taken again. One corner."
)
#: Number of parts of a block that have a colour of their own; the others are grey.
_COLOURED = 9
_GREY = "#c8c8c8"


def entry(netlist: Netlist, library: Library, without_ns: float, first: Placed, final: Placed) -> dict[str, Any]:
    """Return a block's entry in the report: as placed first, and with buffers and gates made for its wires."""

    def area(cells: Netlist) -> float:
        return sum(library.cells[kind].area for kind, _ in cells.cells)

    die = (final.placement.width_um, final.placement.height_um)
    return {
        "cells": len(netlist.cells),
        "area_um2": area(netlist),
        "ge": area(netlist) / library.gate.area,
        "die_um": list(die),
        "use": area(final.netlist) / (die[0] * die[1]),
        "wire_mm": final.routed.length_um / 1000,
        "without_wires_ns": without_ns,
        "placed_ns": first.critical_path_ns,
        "optimised_ns": final.critical_path_ns,
        "optimised_area": area(final.netlist) / area(netlist),
    }


def of_content(content: dict[str, Any], files: Mapping[str, str | bytes]) -> Report:
    """Return the files of a report, with pictures and wires."""
    return Report(content, {"report.json": json_text(content), "report.md": markdown(content), **files})


def markdown(content: dict[str, Any]) -> str:
    """Return the report as a page."""
    head = [
        "block",
        "cells",
        "kGE",
        "die (um)",
        "used",
        "wire (mm)",
        "without wires (ns)",
        "placed (ns)",
        "optimised (ns)",
        "its area",
    ]
    rows = [
        [
            name,
            f"{block['cells']:,}",
            f"{block['ge'] / 1e3:.2f}",
            f"{block['die_um'][0]:.0f} x {block['die_um'][1]:.0f}",
            f"{block['use']:.0%}",
            f"{block['wire_mm']:,.0f}",
            f"{block['without_wires_ns']:.2f}",
            f"{block['placed_ns']:.2f}",
            f"{block['optimised_ns']:.2f}",
            f"{block['optimised_area'] - 1:+.1%}",
        ]
        for name, block in content["blocks"].items()
    ]
    wire = "A um of wire has {ohm_per_um:g} ohm and {ff_per_um:g} fF.".format(**content["wire"])
    pictures = [f"![{name}: its cells by the part that they belong to]({name}.png)" for name in content["blocks"]]
    title = f"Blocks of configuration {content['unit']} placed in {content['pdk']}"
    return Page(
        title, [Table(head, rows), f"{wire} {provenance.gate(content)}", *pictures, _CAVEAT], provenance.facts(content)
    ).markdown()


def picture(name: str, netlist: Netlist, library: Library, placement: Placement) -> bytes:
    """Return the die as PNG: a cell is a bar in its row, in the colour of the part of the block that it belongs to."""
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    parts = _parts(netlist, library)
    order = [part for part, _ in Counter(parts).most_common() if part][:_COLOURED]
    colours = {part: f"C{index}" for index, part in enumerate(order)}
    height = placement.height_um / max(1, round(placement.height_um / _row_height(placement)))
    bars = [
        [(x - w / 2, y - height / 2), (x + w / 2, y - height / 2), (x + w / 2, y + height / 2), (x - w / 2, y + height / 2)]
        for (x, y), w in zip(placement.centres_um, placement.widths_um, strict=True)
    ]
    figure = Figure(figsize=(8, 6.4), layout="constrained")
    axes = figure.subplots()
    axes.add_collection(PolyCollection(bars, facecolors=[colours.get(part, _GREY) for part in parts], linewidths=0))
    axes.set(xlim=(0, placement.width_um), ylim=(0, placement.height_um), aspect="equal", xlabel="um", ylabel="um")
    axes.set_title(f"{name}: {len(parts):,} cells, {placement.width_um:.0f} x {placement.height_um:.0f} um")
    shown = [Patch(color=colour, label=part) for part, colour in colours.items()]
    if set(parts) - set(order):
        shown.append(Patch(color=_GREY, label="rest"))
    figure.legend(handles=shown, loc="outside right upper", frameon=False, fontsize=8)
    image = io.BytesIO()
    # The version of matplotlib is not written to the file, so that equal figures are equal bytes.
    figure.savefig(image, format="png", dpi=120, metadata={"Software": None})
    return image.getvalue()


def _row_height(placement: Placement) -> float:
    """Return the least distance in um between rows that have cells."""
    ys = sorted({round(y, 4) for _, y in placement.centres_um})
    return min((after - before for before, after in pairwise(ys)), default=placement.height_um)


def _parts(netlist: Netlist, library: Library) -> list[str]:
    """Return the part of the block that each cell belongs to: as many levels of instances as it takes to tell several apart.

    The parts of blocks that were mapped flat are the kinds of their cells.
    """
    paths = [place.split(".") if place else [] for place in netlist.places]
    if not any(paths):
        return [_kind(library, kind) for kind, _ in netlist.cells]
    shared = 0
    while len({tuple(path[: shared + 1]) for path in paths if len(path) > shared}) == 1:
        shared += 1
    return [".".join(path[: shared + 1]) if len(path) > shared else "" for path in paths]


def _kind(library: Library, name: str) -> str:
    cell = library.cells[name]
    if cell.flip_flop or cell.clock_gate:
        return "flip-flops" if cell.flip_flop else "clock gates"
    return "buffers, inverters" if len(cell.capacitances) == 1 else "gates"

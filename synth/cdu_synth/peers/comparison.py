"""Report of a comparison with other designs: ``compare.json``, ``compare.md``, ``compare.png``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdu.delivery import verilog
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES
from cdu_tools.files import write_whole

from cdu_synth.area.flow import Cost
from cdu_synth.area.report import CAVEAT
from cdu_synth.library.liberty import Library
from cdu_synth.peers.peers import Recipe

#: Whose a design is: a block of this project, one with a recipe, or one that the user named.
OURS, PEER, GIVEN = "ours", "peer", "given"
_COLOURS = {OURS: "#3b6ea5", PEER: "#b3672e", GIVEN: "#7a7a7a"}
#: Blocks of a lane, which takes or gives a row of values per cycle, and those that have all lanes in them.
_LANE_BLOCKS = (
    *("sfpr", "inverse_sfpr", "dct", "idct", "two_way_dct", "shift_quantizer", "inverse_shift_quantizer"),
    *("affine_quantizer", "affine_dequantizer"),
    *(f"{coder}_{way}" for coder in ("zvc", "brc", "affine") for way in ("encoder", "decoder")),
)
_UNIT_BLOCKS = ("compressor", "decompressor", "array")


@dataclass(frozen=True)
class Design:
    """One row of a comparison.

    Parameters
    ----------
    name, origin
        Name of the row, and :data:`OURS`, :data:`PEER` or :data:`GIVEN`.
    cost
        What it costs; None when it could not be synthesised.
    problem
        Why there is no cost, a sentence.
    does
        What it does, in a phrase.
    samples_per_cycle, rate_source
        Greatest rate in uncompressed values, and where that is from; None and empty when unknown.
    accuracy, accuracy_source
        What is known about its errors, and where that is from.
    recipe, verified
        Recipe of a peer, and whether its sources were compared with its commit.
    absent
        Whether there is no cost because the sources are not here.
    """

    name: str
    origin: str
    cost: Cost | None
    problem: str = ""
    does: str = ""
    samples_per_cycle: float | None = None
    rate_source: str = ""
    accuracy: str = ""
    accuracy_source: str = ""
    recipe: Recipe | None = None
    verified: bool = False
    absent: bool = False

    def entry(self) -> dict[str, Any]:
        """The row of ``compare.json``."""
        row: dict[str, Any] = {"name": self.name, "origin": self.origin, "does": self.does}
        row |= {"samples_per_cycle": self.samples_per_cycle, "rate_source": self.rate_source}
        row |= {"accuracy": self.accuracy, "accuracy_source": self.accuracy_source}
        if self.recipe:
            row |= {name: getattr(self.recipe, name) for name in ("address", "commit", "licence", "top")}
            row["commit_verified"] = self.verified
        if self.cost is None:
            return row | {"problem": self.problem}
        cost, rate = self.cost, self.samples_per_cycle
        row |= {"area_um2": cost.area_um2, "ge": cost.ge, "flip_flops": cost.flip_flops, "cells": cost.cells}
        row |= {"critical_path_ns": cost.critical_path_ns, "mhz": round(cost.mhz, 1), "mapping": cost.recipe}
        row["ge_per_sample_per_cycle"] = round(cost.ge / rate, 1) if rate else None
        row["million_samples_per_s"] = round(cost.mhz * rate, 1) if rate and cost.mhz else None
        return row


def own_rate(block: str | None, config: CduConfig) -> int | None:
    """Values per cycle of a block of this project, or of the unit (None); None for a block that values do not pass."""
    if block in _LANE_BLOCKS:
        return LANES
    return LANES * config.cdus if block is None or block in _UNIT_BLOCKS else None


def comparison(
    designs: Sequence[Design], config: CduConfig, library: Library, clock_ns: float, command: str, yosys_version: str
) -> dict[str, Any]:
    """The content of ``compare.json``: a row per design, and what the run was made with as in ``report.json``."""
    return {
        "pdk": library.name,
        "library_files": [path.name for path in library.files],
        "library_sha256": library.sha256,
        "gate": {"name": library.gate.name, "area_um2": library.gate.area},
        "clock_ns": clock_ns,
        "config": config.to_dict(),
        "command": command,
        "versions": verilog.versions() | {"synthesis": yosys_version},
        "designs": [design.entry() for design in designs],
    }


def write(folder: Path, content: dict[str, Any]) -> list[Path]:
    """Write the three files into an existing folder and return their paths."""
    paths = [folder / name for name in ("compare.json", "compare.md", "compare.png")]
    write_whole(paths[0], json.dumps(content, indent=2) + "\n")
    write_whole(paths[1], markdown(content))
    write_whole(paths[2], chart(content))
    return paths


def markdown(content: dict[str, Any]) -> str:
    """The comparison as a page with a table, and what stands behind its rows."""
    head = ["design", "um2", "kGE", "flip-flops", "critical path (ns)", "MHz", "samples/cycle", "GE per sample/cycle"]
    head += ["Msample/s", "mapping", "accuracy"]
    rows = [head, ["---"] + ["---:"] * 8 + ["---", "---"]]
    behind, absent = [], []
    for design in content["designs"]:
        name = design["name"] if design["origin"] == OURS else f"*{design['name']}*"
        notes = [design["does"], design["rate_source"], design["accuracy_source"]]
        if "address" in design:
            state = "" if design["commit_verified"] else " (not verified: no git checkout)"
            notes += [
                f"{design['address']}, commit {design['commit']}{state}, licence {design['licence']}, top {design['top']}"
            ]
        if "problem" in design:
            absent.append(f"- {name}: {design['problem']}")
            continue
        behind.append(f"- {name}: {'; '.join(note for note in notes if note)}" if any(notes) else f"- {name}")
        row = [name, f"{design['area_um2']:,.0f}", f"{design['ge'] / 1e3:.2f}", f"{design['flip_flops']:,}"]
        row += [f"{design['critical_path_ns']:.2f}", f"{design['mhz']:.0f}", _number(design["samples_per_cycle"], "g")]
        row += [_number(design["ge_per_sample_per_cycle"], ",.0f"), _number(design["million_samples_per_s"], ",.0f")]
        rows.append([*row, design["mapping"], design["accuracy"] or "not known"])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    gate = content["gate"]
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    missing = "\nNot synthesised:\n\n" + "\n".join(absent) + "\n" if absent else ""
    return f"""\
# Comparison in {content["pdk"]}

{table}

Names in italics are designs of others. All were mapped in this run, by the same scripts onto the same library, with the same
goal of {content["clock_ns"]} ns: the smallest of several mappings that meets it is shown, or the fastest when none does.
1 GE = {gate["name"]} = {gate["area_um2"]} um2.
Samples are uncompressed values; the rate is the greatest that the ports allow. Designs differ in what they do: read below.
{missing}
{CAVEAT}

{chr(10).join(behind)}

- command: `{content["command"]}`
- configuration: `{json.dumps(content["config"])}`
- versions: {versions}
- library: {", ".join(content["library_files"])}, SHA-256 of the unpacked text {content["library_sha256"]}
"""


def chart(content: dict[str, Any]) -> bytes:
    """Horizontal bars of GE per sample and cycle, smallest first, as PNG; designs of unknown rate are left out."""
    import io

    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    known = [design for design in content["designs"] if design.get("ge_per_sample_per_cycle")]
    designs = sorted(known, key=lambda design: -design["ge_per_sample_per_cycle"])
    figure = Figure(figsize=(8, 1.6 + 0.36 * len(designs)), layout="constrained")
    axes = figure.add_subplot()
    values = [design["ge_per_sample_per_cycle"] for design in designs]
    colours = [_COLOURS[design["origin"]] for design in designs]
    bars = axes.barh([design["name"] for design in designs], values, color=colours)
    labels = [f"{design['ge_per_sample_per_cycle']:,.0f}, {design['mhz']:.0f} MHz" for design in designs]
    axes.bar_label(bars, labels, padding=4, fontsize=9)
    axes.margins(x=0.3)
    axes.set_xlabel(f"GE per sample/cycle (1 GE = {content['gate']['area_um2']} um²), pre-layout")
    axes.set_title(f"Same scripts, same library: {content['pdk']}, goal {content['clock_ns']} ns")
    axes.spines[["top", "right"]].set_visible(False)
    shown = dict.fromkeys(design["origin"] for design in designs)
    axes.legend(handles=[Patch(color=_COLOURS[origin], label=origin) for origin in shown], loc="upper right", frameon=False)
    image = io.BytesIO()
    # Without the version of matplotlib in the file, equal figures are equal bytes.
    figure.savefig(image, format="png", dpi=120, metadata={"Software": None})
    return image.getvalue()


def _number(value: float | None, how: str) -> str:
    return "not known" if value is None else format(value, how)

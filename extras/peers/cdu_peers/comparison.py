"""Report of a comparison with other designs: ``compare.json``, ``compare.md``, ``compare.png``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES
from cdu_synth.area import provenance
from cdu_synth.area.flow import Cost
from cdu_synth.area.report import CAVEAT
from cdu_tools.report import Page, Report, Table, json_text

from cdu_peers.peers import PeerRecipe

#: Origin of a design: a block of this project, an open core with a recipe, or a design given by the user.
OURS, PEER, GIVEN = "ours", "peer", "given"
_COLOURS = {OURS: "#3b6ea5", PEER: "#b3672e", GIVEN: "#7a7a7a"}
#: Blocks of a lane, which take or give a row of values per cycle, and blocks that contain all lanes.
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
        Cost of the design; None if it could not be synthesised.
    problem
        Reason why there is no cost, a sentence.
    does
        Function of the design, a phrase.
    samples_per_cycle, rate_source
        Greatest rate in uncompressed values per cycle, and its source; None and empty if unknown.
    accuracy, accuracy_source
        What is known about the errors of the design, and its source.
    recipe, verified
        Recipe of an open core, and whether its sources were compared with their commit.
    absent
        Whether there is no cost because the sources are missing.
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
    recipe: PeerRecipe | None = None
    verified: bool = False
    absent: bool = False

    def entry(self) -> dict[str, Any]:
        """Return the row of ``compare.json``."""
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
    """Return the values per cycle of a block of this project or of the unit (None); None for a block without values."""
    if block in _LANE_BLOCKS:
        return LANES
    return LANES * config.cdus if block is None or block in _UNIT_BLOCKS else None


def of_designs(designs: Sequence[Design], made_with: Mapping[str, Any]) -> Report:
    """Return the report of a comparison: the provenance of the run, and a row per design."""
    content = {**made_with, "designs": [design.entry() for design in designs]}
    files: dict[str, str | bytes] = {
        "compare.json": json_text(content),
        "compare.md": markdown(content),
        "compare.png": chart(content),
    }
    failed = [f"{design.name}: {design.problem}" for design in designs if design.cost is None and not design.absent]
    missing = [f"{design.name}: {design.problem}" for design in designs if design.absent]
    return Report(content, files, missing, failed)


def markdown(content: dict[str, Any]) -> str:
    """Return the comparison as a page with a table, and the sources of its rows."""
    absent = [f"- {_name(design)}: {design['problem']}" for design in content["designs"] if "problem" in design]
    done = [design for design in content["designs"] if "problem" not in design]
    parts: list[str | Table] = [
        _table(done),
        "Names in italics are designs of others. All were mapped in this run, by the same scripts onto the same library, with "
        f"the same\ngoal of {content['clock_ns']} ns: the smallest of several mappings that meets it is shown, or the fastest "
        f"when none does.\n{provenance.gate(content)}\n"
        "Samples are uncompressed values; the rate is the greatest that the ports allow. Designs differ in what they do: read "
        "below.",
        "Not synthesised:\n\n" + "\n".join(absent) if absent else "",
        CAVEAT,
        "\n".join(f"- {_name(design)}{_behind(design)}" for design in done),
    ]
    return Page(f"Comparison in {content['pdk']}", parts, provenance.facts(content)).markdown()


def _table(designs: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table with a row per synthesised design."""
    head = ["design", "um2", "kGE", "flip-flops", "critical path (ns)", "MHz", "samples/cycle", "GE per sample/cycle"]
    rows = []
    for design in designs:
        row = [_name(design), f"{design['area_um2']:,.0f}", f"{design['ge'] / 1e3:.2f}", f"{design['flip_flops']:,}"]
        row += [f"{design['critical_path_ns']:.2f}", f"{design['mhz']:.0f}", _number(design["samples_per_cycle"], "g")]
        row += [_number(design["ge_per_sample_per_cycle"], ",.0f"), _number(design["million_samples_per_s"], ",.0f")]
        rows.append([*row, design["mapping"], design["accuracy"] or "not known"])
    return Table([*head, "Msample/s", "mapping", "accuracy"], rows)


def _name(design: Mapping[str, Any]) -> str:
    return str(design["name"]) if design["origin"] == OURS else f"*{design['name']}*"


def _behind(design: Mapping[str, Any]) -> str:
    """Return the sources of the figures of a row, as the end of a list item."""
    notes = [design["does"], design["rate_source"], design["accuracy_source"]]
    if "address" in design:
        state = "" if design["commit_verified"] else " (not verified: no git checkout)"
        notes.append(f"{design['address']}, commit {design['commit']}{state}, licence {design['licence']}, top {design['top']}")
    known = "; ".join(note for note in notes if note)
    return f": {known}" if known else ""


def chart(content: dict[str, Any]) -> bytes:
    """Return horizontal bars of GE per sample and cycle, smallest first, as PNG; designs of unknown rate are left out."""
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
    # The version of matplotlib is not written to the file, so that equal figures are equal bytes.
    figure.savefig(image, format="png", dpi=120, metadata={"Software": None})
    return image.getvalue()


def _number(value: float | None, how: str) -> str:
    return "not known" if value is None else format(value, how)

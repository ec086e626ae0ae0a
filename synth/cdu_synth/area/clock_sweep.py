"""Area against clock period: the table and the picture of a report with several periods."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from cdu_tools.report import Table

from cdu_synth.area.flow import Cost


def points(costs: Mapping[float, Cost]) -> list[dict[str, Any]]:
    """The costs of one block by the period that was asked for, as plain values, longest period first."""
    return [
        {
            "clock_ns": clock_ns,
            "critical_path_ns": cost.critical_path_ns,
            "area_um2": cost.area_um2,
            "ge": cost.ge,
            "flip_flops": cost.flip_flops,
            "mapping": cost.recipe,
        }
        for clock_ns, cost in sorted(costs.items(), reverse=True)
    ]


def table(sweep: Mapping[str, list[dict[str, Any]]]) -> Table:
    """A table of all points."""
    rows = []
    for name, found in sweep.items():
        for point in found:
            delay = point["critical_path_ns"]
            figures = [f"{point['clock_ns']:g}", f"{delay:.2f}", f"{1e3 / delay:.0f}" if delay else ""]
            rows.append([name, *figures, f"{point['area_um2']:,.0f}", f"{point['ge'] / 1e3:.2f}", point["mapping"]])
    return Table(["block", "asked for (ns)", "achieved (ns)", "MHz", "um2", "kGE", "mapping"], rows)


def chart(content: Mapping[str, Any]) -> bytes:
    """Area over achieved period, a curve per block, as PNG; a point that misses its period is hollow."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for name, found in content["sweep"].items():
        ordered = sorted(found, key=lambda point: (point["critical_path_ns"], point["ge"]))
        (line,) = axes.plot(
            [point["critical_path_ns"] for point in ordered], [point["ge"] / 1e3 for point in ordered], label=name, lw=1
        )
        for point in ordered:
            met = point["critical_path_ns"] <= point["clock_ns"]
            fill = line.get_color() if met else "white"
            axes.plot(point["critical_path_ns"], point["ge"] / 1e3, "o", color=line.get_color(), markerfacecolor=fill)
            axes.annotate(
                f"{point['clock_ns']:g} ns asked",
                (point["critical_path_ns"], point["ge"] / 1e3),
                xytext=(4, 5),
                textcoords="offset points",
                fontsize=8,
            )
    axes.set_xlabel("critical path in ns (hollow: longer than asked for), pre-layout")
    axes.set_ylabel(f"area in kGE (1 GE = {content['gate']['area_um2']} um²)")
    axes.set_title(f"Configuration {content['unit']} in {content['pdk']}")
    axes.grid(alpha=0.3)
    axes.legend()
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=120, metadata={"Software": None})
    return image.getvalue()

"""The pictures of ``cdu offload``."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cdu_offload.catalog import TITLES
from cdu_offload.network import OffloadNetwork
from cdu_offload.study import PUBLISHED, speedups

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cdu_offload.simulation import StepOutcome

# Okabe and Ito's colours, which colour-blind readers can tell apart; methods in software are hatched.
_COLOURS = {
    "none": "#000000",
    "vdnn": "#999999",
    "cdma": "#F0E442",
    "gist": "#E69F00",
    "sfpr": "#56B4E9",
    "jpeg-base": "#009E73",
    "jpeg-act": "#0072B2",
    "jpeg-gmc": "#004D40",
    "division": "#D55E00",
    "actnn": "#CC79A7",
    "division-software": "#D55E00",
    "actnn-software": "#CC79A7",
}
_HATCHED = ("gist", "division-software", "actnn-software")


def _png(width: float, height: float, rows: int, columns: int, draw: Callable[[Sequence[Axes]], None]) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(rows, columns, place + 1) for place in range(rows * columns)]
    draw(axes)
    for one in axes:
        one.grid(axis="y", alpha=0.25)
        one.set_axisbelow(True)
        one.spines[["top", "right"]].set_visible(False)
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def speedup_bars(networks: Sequence[OffloadNetwork], outcomes: Mapping[str, Mapping[str, StepOutcome]]) -> bytes:
    """Plot bars per network over vDNN and over GIST, if simulated, beside the published headlines."""
    present = next(iter(outcomes.values()))
    panels = [(over, key) for over, key in (("vdnn", "offload"), ("gist", "compression")) if over in present]

    def draw(axes: Sequence[Axes]) -> None:
        for one, (over, key) in zip(axes, panels, strict=True):
            table = speedups({name: dict(row) for name, row in outcomes.items()}, over)
            groups = [*(network.name for network in networks), "mean"]
            width = 0.85 / len(table)
            for place, (method, row) in enumerate(table.items()):
                xs = [group + (place - (len(table) - 1) / 2) * width for group in range(len(groups))]
                hatch = "///" if method in _HATCHED else None
                one.bar(
                    xs,
                    [row[g] for g in groups],
                    width,
                    label=TITLES[method],
                    color=_COLOURS[method],
                    hatch=hatch,
                    edgecolor="white",
                )
            text = {"offload": "over prior offload accelerators", "compression": "over prior activation compression"}[key]
            one.axhline(PUBLISHED[key], color="black", linestyle="--", linewidth=1)
            one.annotate(
                f"JPEG-ACT's headline {text}: {PUBLISHED[key]}x",
                (len(groups) - 0.5, PUBLISHED[key]),
                (0, 3),
                textcoords="offset points",
                ha="right",
                va="bottom",
                fontsize=9,
            )
            one.set_xticks(
                range(len(groups)), [*(network.title.replace(", ", "\n") for network in networks), "geometric\nmean"]
            )
            one.set(ylabel=f"speed-up over {TITLES[over]}", xlim=(-0.5, len(groups) - 0.5))
        axes[0].legend(ncols=6, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)

    return _png(14, 4.6 * len(panels), len(panels), 1, draw)


def stalls(networks: Sequence[OffloadNetwork], outcomes: Mapping[str, Mapping[str, StepOutcome]]) -> bytes:
    """Plot the parts of a step's time, relative to the step without offload."""
    rows = -(-len(networks) // 3)

    def draw(axes: Sequence[Axes]) -> None:
        for one, network in zip(axes, networks, strict=False):
            table = outcomes[network.name]
            base = min(outcome.compute_seconds for outcome in table.values())
            parts = {
                "network's own work": ([o.compute_seconds for o in table.values()], "#999999"),
                "(de)compressing on the GPU": ([o.overhead_seconds for o in table.values()], "#E69F00"),
                "waiting, the link is slowest": ([o.stalls["link"] for o in table.values()], "#0072B2"),
                "waiting, CDUs or crossbar are": ([o.stalls["cdu"] for o in table.values()], "#D55E00"),
            }
            left = [0.0] * len(table)
            for label, (values, colour) in parts.items():
                one.barh(
                    range(len(table)), [v / base for v in values], 0.75, [v / base for v in left], label=label, color=colour
                )
                left = [a + b for a, b in zip(left, values, strict=True)]
            one.set_yticks(range(len(table)), [TITLES[name] for name in table], fontsize=8)
            one.invert_yaxis()
            one.set_title(network.title, fontsize=10)
            one.set_xlabel("time of a step / without offload", fontsize=9)
        for one in axes[len(networks) :]:
            one.set_visible(False)
        handles, labels = axes[0].get_legend_handles_labels()
        figure = axes[0].get_figure(root=True)
        assert figure is not None
        figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=9, frameon=False)

    return _png(14, 3.6 * rows, rows, min(3, len(networks)), draw)


def sensitivity(sweeps: Mapping[str, Sequence[Mapping[str, Any]]]) -> bytes:
    """Plot the time of a step over link, number of CDUs, placement and schedule; the geometric mean of the networks."""

    def lines(one: Axes, rows: Sequence[Mapping[str, Any]], scale: float, by_method: bool) -> None:
        names = list(dict.fromkeys(row["series"] for row in rows))
        for series in names:
            mine = [row for row in rows if row["series"] == series]
            colour = _COLOURS[mine[0]["method"]] if by_method else None
            # The last line often lies on another one.
            style = "--" if series == names[-1] else "-"
            places = [row["at"] if isinstance(row["at"], str) else row["at"] / scale for row in mine]
            one.plot(places, [row["slowdown"] for row in mine], "o", ls=style, label=series, color=colour, ms=4)
        one.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)

    def draw(axes: Sequence[Axes]) -> None:
        lines(axes[0], sweeps["link"], 1e9, True)
        axes[0].set(xscale="log", xlabel="link, GB/s per direction (dotted: PCIe 3.0, 4.0, 5.0 x16)")
        ticks = (6, 12.8, 25.6, 51.2)
        axes[0].set_xticks(ticks, list(map(str, ticks)))
        axes[0].set_xticks([], minor=True)
        for tick in ticks[1:]:
            axes[0].axvline(tick, color="black", linestyle=":", linewidth=0.8)
        lines(axes[1], sweeps["ahead"], 1, True)
        axes[1].set(xlabel="layers ahead (vDNN: 1)", xscale="log")
        layers = list(dict.fromkeys(row["at"] for row in sweeps["ahead"]))
        axes[1].set_xticks(layers, list(map(str, layers)))
        axes[1].set_xticks([], minor=True)
        if sweeps["cdus"]:
            lines(axes[2], sweeps["cdus"], 1, False)
        axes[2].set(xlabel="CDUs at the DMA engine")
        if sweeps["placement"]:
            lines(axes[3], sweeps["placement"], 1, False)
        axes[3].set(xlabel="link", ymargin=0.3)
        for one in axes:
            one.set_ylabel("time of a step / without offload")
            one.axhline(1, color="black", linewidth=0.8)
        for one in axes[2:]:
            method = (sweeps["cdus"] or [{"method": "jpeg-act"}])[0]["method"]
            one.set_title(TITLES[method], fontsize=10, loc="right")

    return _png(13, 8.5, 2, 2, draw)

"""Pareto fronts as a picture."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cdu_synth.sweep import pareto

_BLUE, _GREY = "#3b6ea5", "#b0b0b0"


def fronts(content: Mapping[str, Any]) -> bytes:
    """A panel per front of ``sweep.json``, as PNG: all points, those on the front with their numbers."""
    shown = [front for front in content["fronts"] if front["points"]]
    figure = Figure(figsize=(5.6 * len(shown), 4.8), layout="constrained")
    for place, front in enumerate(shown, 1):
        _panel(figure.add_subplot(1, len(shown), place), front, content["points"])
    image = io.BytesIO()
    # Without the version of matplotlib in the file, equal figures are equal bytes.
    figure.savefig(image, format="png", dpi=120, metadata={"Software": None})
    return image.getvalue()


def _panel(axes: Axes, front: Mapping[str, Any], points: list[dict[str, Any]]) -> None:
    names = front["x"], front["y"]
    places = {
        point["number"]: tuple(point["figures"][name] for name in names)
        for point in points
        if set(names) <= set(point["figures"])
    }
    best = {number: places[number] for number in front["points"]}
    others = [place for number, place in places.items() if number not in best]
    if others:
        axes.scatter(*zip(*others, strict=True), color=_GREY, s=28, label="other points")
    line = sorted(best.values())
    axes.plot(*zip(*line, strict=True), color=_BLUE, marker="o", markersize=6, linewidth=1.2, label="Pareto front")
    owners: dict[tuple[float, ...], list[int]] = {}
    for number, place in best.items():
        owners.setdefault(place, []).append(number)
    for place, numbers in owners.items():
        axes.annotate(f"#{', '.join(map(str, numbers))}", place, xytext=(5, 5), textcoords="offset points", fontsize=8)
    axes.set_xlabel(pareto.FIGURES[names[0]].label)
    axes.set_ylabel(pareto.FIGURES[names[1]].label)
    axes.set_title(f"{front['letter']}: {_aim(names[0])} and {_aim(names[1])}", fontsize=10)
    axes.margins(0.12)
    axes.grid(color="#e6e6e6")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)


def _aim(name: str) -> str:
    return f"{'large' if pareto.FIGURES[name].larger_is_better else 'small'} {name}"

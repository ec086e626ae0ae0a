"""Pareto fronts as a picture."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cdu_synth.sweep import pareto

_BLUE, _GREY = "#3b6ea5", "#b0b0b0"
#: Number of points that are named if several are at one place.
_NAMED = 3


def fronts(content: Mapping[str, Any]) -> bytes:
    """Return a panel per front of ``sweep.json``, as PNG: all points, those on the front with the values that vary."""
    shown = [front for front in content["fronts"] if front["points"]]
    figure = Figure(figsize=(5.6 * len(shown), 4.8), layout="constrained")
    for place, front in enumerate(shown, 1):
        _panel(figure.add_subplot(1, len(shown), place), front, content["points"])
    figure.supxlabel(f"beside the points: {', '.join(_varying(content['points']))}", fontsize=9)
    image = io.BytesIO()
    # The version of matplotlib is not written to the file, so that equal figures are equal bytes.
    figure.savefig(image, format="png", dpi=120, metadata={"Software": None})
    return image.getvalue()


def _panel(axes: Axes, front: Mapping[str, Any], points: list[dict[str, Any]]) -> None:
    x, y = front["x"], front["y"]
    places = {
        point["number"]: (point["figures"][x], point["figures"][y]) for point in points if {x, y} <= set(point["figures"])
    }
    best = {number: places[number] for number in front["points"]}
    others = [place for number, place in places.items() if number not in best]
    if others:
        axes.scatter([a for a, _ in others], [b for _, b in others], color=_GREY, s=28, label="other points")
    axes.scatter([a for a, _ in best.values()], [b for _, b in best.values()], color=_BLUE, s=36, label="Pareto front")
    varying, parameters = _varying(points), {point["number"]: point["parameters"] for point in points}
    owners: dict[tuple[float, float], list[str]] = {}
    for number, place in best.items():
        owners.setdefault(place, []).append(", ".join(str(parameters[number][name]) for name in varying))
    # Labels of places close to each other would overlap if they were side by side.
    for turn, (place, names) in enumerate(sorted(owners.items())):
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        offset, side = ((6, 5), "left") if turn % 2 else ((-6, -11), "right")
        text = "; ".join(names[:_NAMED]) + more
        axes.annotate(text, place, xytext=offset, textcoords="offset points", fontsize=8, ha=side)
    axes.set_xlabel(pareto.FIGURES[x].label)
    axes.set_ylabel(pareto.FIGURES[y].label)
    axes.set_title(f"{front['letter']}: {_aim(x)} and {_aim(y)}", fontsize=10)
    axes.margins(0.12)
    axes.grid(color="#e6e6e6")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)


def _varying(points: list[dict[str, Any]]) -> list[str]:
    """Return the names of the parameters that differ between points; of all parameters if none does."""
    names = list(dict.fromkeys(name for point in points for name in point["parameters"]))
    return [name for name in names if len({str(point["parameters"].get(name)) for point in points}) > 1] or names


def _aim(name: str) -> str:
    return f"{'large' if pareto.FIGURES[name].larger_is_better else 'small'} {pareto.FIGURES[name].label}"

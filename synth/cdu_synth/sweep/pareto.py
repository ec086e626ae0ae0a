"""Figures of merit of points, and the Pareto fronts of pairs of figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdu_tools.errors import UserError


@dataclass(frozen=True)
class Figure:
    """A figure of merit."""

    label: str  #: name with unit
    digits: str  #: format specification
    larger_is_better: bool = False


#: Figures by name, in the order of the report's columns.
FIGURES: Mapping[str, Figure] = {
    "ge": Figure("area (GE)", ",.0f"),
    "flip_flops": Figure("flip-flops", ",.0f"),
    "critical_path_ns": Figure("critical path (ns)", ".2f"),
    "mhz": Figure("clock (MHz)", ".0f", larger_is_better=True),
    "leakage_uw": Figure("leakage (uW)", ".3g"),
    "compress_values_per_cycle": Figure("compress (values/cycle)", ".2f", larger_is_better=True),
    "decompress_values_per_cycle": Figure("decompress (values/cycle)", ".2f", larger_is_better=True),
    "least_values_per_cycle": Figure("least rate (values/cycle)", ".2f", larger_is_better=True),
    "gvalues_per_second": Figure("throughput (10^9 values/s)", ".2f", larger_is_better=True),
    "ge_per_value_per_cycle": Figure("area per rate (GE per value/cycle)", ",.0f"),
    "ratio": Figure("ratio", ".2f", larger_is_better=True),
    "bytes_per_value": Figure("bytes per value", ".3f"),
    "relative_error": Figure("relative error", ".5f"),
}
#: Pairs of figures that are compared by default, if they were measured.
DEFAULT_AXES = (("ge", "gvalues_per_second"), ("ge", "relative_error"), ("relative_error", "ratio"))


#: A result by the names of its parts; None if nothing was measured.
_Result = Mapping[str, Any] | None


def figures(area: _Result, rate: _Result, ratio: _Result) -> dict[str, float]:
    """Return the figures of merit that follow from the measurements of a point.

    Throughput is the rate of the slower direction at the highest clock of the netlist; both refer to the same hardware only
    when the area is that of the block ``array``, whose rate has neither DMA engine nor own clocks.
    """
    found: dict[str, float] = {}
    if area:
        names = ("ge", "flip_flops", "critical_path_ns", "mhz", "leakage_uw")
        found |= {name: area[name] for name in names if area[name] is not None}
    if rate:
        found |= {f"{way}_values_per_cycle": rate[way] for way in ("compress", "decompress", "least")}
    if area and rate:
        slower = min(rate["compress"], rate["decompress"])
        found["gvalues_per_second"] = slower * area["mhz"] / 1e3
        found["ge_per_value_per_cycle"] = area["ge"] / slower
    if ratio:
        found |= {name: ratio[name] for name in ("ratio", "bytes_per_value", "relative_error")}
    return found


def axes(text: str) -> tuple[str, str]:
    """Parse two figures ``X,Y``; UserError for unknown ones."""
    names = tuple(part.strip() for part in text.split(","))
    if len(set(names)) != 2 or len(names) != 2 or not set(names) <= set(FIGURES):
        raise UserError(f"axes {text!r} are not allowed: use two of {', '.join(FIGURES)} with a comma between them")
    return names[0], names[1]


def front(points: Sequence[Mapping[str, float]], names: Sequence[str]) -> list[bool]:
    """Return whether each point is on the Pareto front of the figures ``names``: no other is as good in all and better in one.

    A point that lacks one of the figures is not on the front.
    """
    signs = [-1 if FIGURES[name].larger_is_better else 1 for name in names]
    places = [
        tuple(sign * point[name] for sign, name in zip(signs, names, strict=True)) if set(names) <= set(point) else None
        for point in points
    ]
    known = [place for place in places if place is not None]

    def beaten(place: tuple[float, ...]) -> bool:
        return any(other != place and all(a <= b for a, b in zip(other, place, strict=True)) for other in known)

    return [place is not None and not beaten(place) for place in places]

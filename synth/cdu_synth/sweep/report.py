"""Results of a sweep: ``sweep.json``, ``sweep.md`` and ``pareto.png``."""

from __future__ import annotations

import hashlib
import json
import string
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode
from cdu_tools.report import Page, Report, Table, json_text

from cdu_synth.area.report import CAVEAT
from cdu_synth.sweep import pareto, plot
from cdu_synth.sweep.explore import WHOLE, Explored
from cdu_synth.sweep.space import Skipped

#: Number of digits of checksums on the page.
_DIGITS = 12
#: Number of characters of an error on the page; ``sweep.json`` has all of it.
_LONGEST = 400


def summary(
    explored: Sequence[Explored],
    skipped: Sequence[Skipped],
    base: CduConfig,
    axes: Sequence[tuple[str, str]],
    mode: str | None,
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the content of ``sweep.json``.

    Parameters
    ----------
    explored, skipped
        Points that were measured, and combinations that could not be.
    base
        The configuration whose parameters were varied.
    axes
        Pairs of figures to compare; empty for :data:`cdu_synth.sweep.pareto.DEFAULT_AXES`, if they were measured.
    mode
        Mode whose ratio and error are compared; None for jpeg-act, or the first mode of units that do not have it.
    about
        Further entries of the report: command, block, versions ...
    """
    ran = [one for one in explored if one.refused is None]
    refused = [Skipped(one.point.parameters, one.refused) for one in explored if one.refused is not None]
    points = [_entry(number, one, mode) for number, one in enumerate(ran, 1)]
    measured = [set(point["figures"]) for point in points]
    wanted = axes or [pair for pair in pareto.DEFAULT_AXES if any(set(pair) <= names for names in measured)]
    fronts = []
    for letter, names in zip(string.ascii_uppercase, wanted, strict=False):
        best = pareto.front([point["figures"] for point in points], names)
        for point, chosen in zip(points, best, strict=True):
            point["fronts"] += [letter] if chosen else []
        numbers = [point["number"] for point, chosen in zip(points, best, strict=True) if chosen]
        fronts.append({"letter": letter, "x": names[0], "y": names[1], "points": numbers})
    return {
        **about,
        "config": base.to_dict(),
        "points": points,
        "fronts": fronts,
        "skipped": [vars(one) for one in (*skipped, *refused)],
        "failed": sum(bool(point["errors"]) for point in points),
    }


def of_content(content: dict[str, Any]) -> Report:
    """Return the files of a report; without a front there is no plot."""
    files: dict[str, str | bytes] = {"sweep.json": json_text(content, 1), "sweep.md": markdown(content)}
    if any(front["points"] for front in content["fronts"]):
        files["pareto.png"] = plot.fronts(content)
    failed = f"{content['failed']} of {len(content['points'])} points failed: sweep.md says why"
    return Report(content, files, failed=[failed] if content["failed"] else [])


def markdown(content: Mapping[str, Any]) -> str:
    """Return the report as a page."""
    points, per_mode = content["points"], _mode_table(content["points"])
    failures = [(point, name, text) for point in points for name, text in point["errors"]]
    parts: list[str | Table] = [
        f"`{content['command']}`",
        _table(points),
        _lines(_front(front) for front in content["fronts"]),
        "Ratio and error of every mode; equal rows are shown once." if per_mode.rows else "",
        per_mode,
        "## Failed" if failures else "",
        _lines(f"{_parameters(point)}: {name}: {textwrap.shorten(text, _LONGEST)}" for point, name, text in failures),
        "## Skipped" if content["skipped"] else "",
        _lines(f"{_parameters(one)}: {one['reason']}" for one in content["skipped"]),
        "## How",
        CAVEAT if any(point["area"] for point in points) else "",
    ]
    fixed = {name: value for name, value in content["config"].items() if name not in content["space"]}
    versions = {name: value for found in content["versions"].values() for name, value in found.items()}
    facts = {"not varied": f"`{json.dumps(fixed)}`", **content["notes"]}
    facts["versions"] = ", ".join(f"{name} {_brief(value)}" for name, value in versions.items())
    return Page(f"Sweep over {', '.join(content['space']) or 'nothing'}", parts, facts).markdown()


def _lines(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _front(front: Mapping[str, Any]) -> str:
    """Return a sentence on the figures that a front compares."""
    figures = [pareto.FIGURES[front[axis]] for axis in ("x", "y")]
    words = [f"{figure.label}, {'larger' if figure.larger_is_better else 'smaller'} is better" for figure in figures]
    return f"Pareto front {front['letter']}: {' against '.join(words)}."


def _entry(number: int, one: Explored, mode: str | None) -> dict[str, Any]:
    area, rate = (one.results.get(name, {}).get(WHOLE) for name in ("area", "rate"))
    ratios = one.results.get("ratio", {})
    chosen = mode or (Mode.JPEG_ACT.label if Mode.JPEG_ACT.label in ratios else next(iter(ratios), None))
    return {
        "number": number,
        "parameters": one.point.parameters,
        "config": one.point.config.to_dict(),
        "mode": chosen if chosen in ratios else None,
        "figures": pareto.figures(area, rate, ratios.get(chosen or "")),
        "area": area,
        "rate": rate,
        "ratio": ratios,
        "fronts": [],
        "errors": one.errors,
    }


def _table(points: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table with a row per point and columns for all figures that were measured anywhere."""
    names = [name for name in pareto.FIGURES if any(name in point["figures"] for point in points)]
    varied = list(dict.fromkeys(name for point in points for name in point["parameters"]))
    with_mode = any(point["mode"] for point in points)
    rows = []
    for point in points:
        cells = [str(point["number"]), *(point["parameters"][name] for name in varied)]
        for name in names:
            value = point["figures"].get(name)
            cells.append("" if value is None else format(value, pareto.FIGURES[name].digits))
        rows.append([*cells, *([point["mode"] or ""] if with_mode else []), " ".join(point["fronts"])])
    labels = (pareto.FIGURES[name].label for name in names)
    return Table(["#", *varied, *labels, *(["mode"] if with_mode else []), "Pareto"], rows)


def _mode_table(points: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of ratio and error by mode, if a point has several; each distinct result names its points."""
    names = ("ratio", "bytes_per_value", "relative_error")
    owners: dict[tuple[str, ...], list[str]] = {}
    for point in points if any(len(point["ratio"]) > 1 for point in points) else ():
        for mode, found in point["ratio"].items():
            cells = (format(found[name], pareto.FIGURES[name].digits) for name in names)
            owners.setdefault((mode, *cells), []).append(str(point["number"]))
    rows = [[*cells, " ".join(numbers)] for cells, numbers in owners.items()]
    return Table(["mode", *(pareto.FIGURES[name].label for name in names), "points"], rows)


def _brief(version: str) -> str:
    """Return a version, or the beginning of a checksum, of which ``sweep.json`` has all digits."""
    return version[:_DIGITS] if len(version) == hashlib.sha256().digest_size * 2 else version


def _parameters(one: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={text}" for name, text in one["parameters"].items())

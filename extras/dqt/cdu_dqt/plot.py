"""The rate-distortion plot of a study."""

from __future__ import annotations

import io
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from cdu_dqt.comparison import errors_at
from cdu_dqt.quantizer import ENTROPY, GMC, ZVC, TableQuantizer
from cdu_dqt.study import DqtStudy, MeasuredTable, known_tables

# Colours that colour-blind readers can tell apart (Okabe and Ito).
_SEARCHED = {ENTROPY: "#0072B2", ZVC: "#D55E00", GMC: "#D55E00"}
_IMAGE = "#666666"
_SCALES = ("#56B4E9", "#0072B2", "#009E73", "#000000", "#E69F00", "#D55E00", "#CC79A7")
#: Limits of the axes: smaller streams and larger errors are of no use in training.
_BYTES, _ERRORS = (0.1, 1.1), (0.02, 0.6)
#: The limits with GMC.
_BYTES_GMC = (0.03, 0.6)
_TICKS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
_MARKERS = {"optL": ("o", "#009E73"), "optH": ("s", "#009E73"), "optsL": ("^", "#CC79A7"), "optsH": ("D", "#CC79A7")}
_MARKERS |= {f"uniform-{step}": (marker, "#000000") for step, marker in ((8, "v"), (16, "o"), (32, "s"), (64, "D"))}


def rate_distortion(title: str, study: DqtStudy) -> bytes:
    """Return a PNG with a column for each codec: tables and rounding rules above, values of S, if there are several, below."""
    compared, several = study.settings.compared, len(study.settings.scales) > 1
    rows = 1 + several
    figure = Figure(figsize=(6.5 * len(compared), 5.25 * rows), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, len(compared), squeeze=False)
    for column, usual in enumerate(compared):
        _tables(grid[0][column], study, usual)
        if several:
            _scales(grid[1][column], study, usual)
    figure.suptitle(title)
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def _tables(axes: Axes, study: DqtStudy, usual: TableQuantizer) -> None:
    kind = usual.kind
    for rule in sorted(study.settings.roundings, key=lambda rule: rule is not usual.rounding):
        style = "-" if rule is usual.rounding else "--"
        _line(axes, study.curve(None, kind, rule.value, study.settings.S), f"image1 to image100, {rule.value}", _IMAGE, style)
        for rate in dict.fromkeys((usual.written, ENTROPY)):
            curve = study.curve(rate, kind, rule.value, study.settings.S)
            _line(axes, curve, f"searched for {rate}, {rule.value}", _SEARCHED[rate], style)
        for name in known_tables(usual):
            marker, colour = _MARKERS[name]
            point = study.known(name, kind, rule.value).point
            face = colour if rule is usual.rounding else "none"
            axes.plot(
                [point.bytes_per_value],
                [point.relative_error],
                marker,
                markersize=8,
                markeredgecolor=colour,
                markerfacecolor=face,
                markeredgewidth=1.6,
                label=f"{name}, {rule.value}",
                zorder=5,
            )
    axes.set_yscale("log")
    axes.set_ylim(_ERRORS)
    axes.yaxis.set_major_locator(LogLocator(subs=_TICKS))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    title = f"{usual.codec}: tables and rounding, S = {study.settings.S:g}"
    _finish(axes, title, "relative error ||x - x'|| / ||x||", _BYTES_GMC if usual.written == GMC else _BYTES)


def _scales(axes: Axes, study: DqtStudy, usual: TableQuantizer) -> None:
    """Plot errors relative to those with the S of the settings, at equal bytes; the curves themselves would coincide."""
    reference = study.written(usual)
    values = sorted(study.settings.scales)
    for S, colour in zip(values, _SCALES * len(values), strict=False):  # noqa: N806
        points = [one.point for one in study.written(usual, S)]
        ratios = [
            (point.bytes_per_value, point.relative_error / error)
            for point in points
            if (error := errors_at(point.bytes_per_value, reference)) is not None
        ]
        sizes, parts = zip(*ratios, strict=True) if ratios else ((), ())
        style = "--" if study.settings.S == S else "o-"
        axes.plot(sizes, parts, style, markersize=3, linewidth=1.4, color=colour, label=f"S = {S:g}")
    axes.set_ylim(0.85, 1.5)
    title = f"{usual.codec}: S, tables searched for {usual.written}, {usual.rounding.value}"
    _finish(axes, title, f"error at equal bytes / that with S = {study.settings.S:g}", _BYTES)


def _line(axes: Axes, curve: Sequence[MeasuredTable], label: str, colour: str, style: str) -> None:
    points = [one.point for one in curve]
    axes.plot(
        [point.bytes_per_value for point in points],
        [point.relative_error for point in points],
        style,
        color=colour,
        marker=".",
        markersize=4,
        linewidth=1.4,
        label=label,
    )


def _finish(axes: Axes, title: str, label: str, span: tuple[float, float]) -> None:
    axes.set(title=title, xlabel="bytes per value (float32: 4)", ylabel=label, xlim=span)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=_TICKS))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)

"""The rate-distortion plot of a study."""

from __future__ import annotations

import io
from collections.abc import Sequence

from cdu_spec.rounding import Rounding
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from actcodec.study.dqt.comparison import errors_at
from actcodec.study.dqt.curves import ENTROPY, WRITTEN, ZVC
from actcodec.study.dqt.quantizer import KINDS, Quantizer
from actcodec.study.dqt.study import PUBLISHED, Measured, Study

# Distinct to colour-blind readers too (Okabe and Ito).
_SEARCHED = {ENTROPY: "#0072B2", ZVC: "#D55E00"}
_IMAGE = "#666666"
_SCALES = ("#56B4E9", "#0072B2", "#009E73", "#000000", "#E69F00", "#D55E00", "#CC79A7")
#: Of the axes: smaller streams and larger errors than these nobody trains with.
_BYTES, _ERRORS = (0.1, 1.1), (0.02, 0.6)
_TICKS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
_MARKERS = {"optL": ("o", "#009E73"), "optH": ("s", "#009E73"), "optsL": ("^", "#CC79A7"), "optsH": ("D", "#CC79A7")}


def rate_distortion(title: str, study: Study) -> bytes:
    """A PNG: tables and rounding rules above, values of S below; jpeg-base to the left, jpeg-act to the right."""
    figure = Figure(figsize=(13, 10.5), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(2, len(KINDS))
    for column, kind in enumerate(KINDS):
        _tables(grid[0][column], study, kind)
        _scales(grid[1][column], study, kind)
    figure.suptitle(title)
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def _tables(axes: Axes, study: Study, kind: str) -> None:
    usual = Quantizer.usual(kind)
    for rule in sorted(Rounding, key=lambda rule: rule is not usual.rounding):
        style = "-" if rule is usual.rounding else "--"
        _line(axes, study.curve(None, kind, rule.value, study.settings.S), f"image1 to image100, {rule.value}", _IMAGE, style)
        for rate in dict.fromkeys((WRITTEN[kind], ENTROPY)):
            curve = study.curve(rate, kind, rule.value, study.settings.S)
            _line(axes, curve, f"searched for {rate}, {rule.value}", _SEARCHED[rate], style)
        for name in PUBLISHED[kind]:
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
    _finish(axes, f"{usual.codec}: tables and rounding, S = {study.settings.S:g}", "relative error ||x - x'|| / ||x||")


def _scales(axes: Axes, study: Study, kind: str) -> None:
    """Errors as a part of those with the S of the settings, at equal bytes: the curves themselves lie on one another."""
    usual = Quantizer.usual(kind)
    reference = study.curve(WRITTEN[kind], kind, usual.rounding.value, study.settings.S)
    values = sorted({one.S for one in study.measured})
    for S, colour in zip(values, _SCALES * len(values), strict=False):  # noqa: N806
        points = [one.point for one in study.curve(WRITTEN[kind], kind, usual.rounding.value, S)]
        ratios = [
            (point.bytes_per_value, point.relative_error / error)
            for point in points
            if (error := errors_at(point.bytes_per_value, reference)) is not None
        ]
        sizes, parts = zip(*ratios, strict=True) if ratios else ((), ())
        style = "--" if study.settings.S == S else "o-"
        axes.plot(sizes, parts, style, markersize=3, linewidth=1.4, color=colour, label=f"S = {S:g}")
    axes.set_ylim(0.85, 1.5)
    title = f"{usual.codec}: S, tables searched for {WRITTEN[kind]}, {usual.rounding.value}"
    _finish(axes, title, f"error at equal bytes / that with S = {study.settings.S:g}")


def _line(axes: Axes, curve: Sequence[Measured], label: str, colour: str, style: str) -> None:
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


def _finish(axes: Axes, title: str, label: str) -> None:
    axes.set(title=title, xlabel="bytes per value (float32: 4)", ylabel=label, xlim=_BYTES)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=_TICKS))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)

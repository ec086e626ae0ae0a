"""Plot error against quality, measured and fitted: levels.png."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from actcodec.codecs.acgc.level_map import LevelMap, parsed
from actcodec.study.level_fit import Measurements

#: Shares of the channels, by twist, behind each curve of the left picture.
_PARTS = ((0.0, 0.1, "smoothest tenth"), (0.45, 0.55, "middle tenth"), (0.9, 1.0, "roughest tenth"))
# Colours that colour-blind readers can tell apart (Okabe and Ito).
_COLOURS = ("#0072B2", "#E69F00", "#D55E00")


def picture(title: str, measured: Sequence[Measurements], result: dict[str, Any]) -> bytes:
    """Return a PNG with a row for each coder: error against quality for three kinds of channels; measured against fitted."""
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2 * len(measured)), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    axes = figure.subplots(len(measured), 2, squeeze=False)
    for one, (left, right) in zip(measured, axes, strict=True):
        features, errors = torch.cat(one.features, 1), torch.cat(one.errors, 1)
        relation = parsed(result["coders"][one.coder], result["S"])
        fitted = relation.predicted(features, deviations=0.0)
        _curves(left, relation, features, errors, fitted)
        left.set(title=f"{one.coder}: error of a table", xlabel="quality of the image table")
        for level in range(0, len(relation.qualities), 4):
            quality = relation.qualities[level]
            colour = colormaps["viridis"](quality / 100)
            right.plot(fitted[level], errors[level], ".", color=colour, markersize=1.5, label=f"image{quality}")
        ends = [float(errors[errors > 0].min()), float(errors.max())]
        right.plot(ends, ends, color="black", linewidth=0.8)
        right.set(title=f"{one.coder}: every channel", xlabel="error by the relation (steps of SFPR)", xscale="log", xlim=ends)
        right.legend(fontsize="x-small", ncols=2, markerscale=5)
        for plot in (left, right):
            plot.set(yscale="log", ylabel="measured RMS error (steps of SFPR)")
            plot.grid(alpha=0.3)
            plot.tick_params(which="minor", labelleft=False, labelbottom=False)
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=110, metadata={"Software": None})
    return data.getvalue()


def _curves(plot: Any, relation: LevelMap, features: Tensor, errors: Tensor, fitted: Tensor) -> None:
    """Plot median and middle eight tenths of measured errors, and the median of fitted ones, for three kinds of channels."""
    order = features[1].argsort()
    for (begin, end, label), colour in zip(_PARTS, _COLOURS, strict=True):
        chosen = order[int(begin * len(order)) : max(int(end * len(order)), int(begin * len(order)) + 1)]
        low, middle, high = errors[:, chosen].quantile(torch.tensor([0.1, 0.5, 0.9], dtype=errors.dtype), dim=1)
        plot.fill_between(relation.qualities, low, high, color=colour, alpha=0.2, linewidth=0)
        plot.plot(relation.qualities, middle, ".", color=colour, label=f"{label}, measured")
        plot.plot(relation.qualities, fitted[:, chosen].median(1).values, color=colour, linewidth=1, label="fitted")
    plot.legend(fontsize="small")

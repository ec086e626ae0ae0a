"""The report of a diagnosis: report.md and gradient_errors.png."""

from __future__ import annotations

import io

from cdu_tools.report import Page, Table

from actcodec.saved.statistics import ratio_text
from actcodec.study.diagnosis import Diagnosis

# Colours that colour-blind readers can tell apart (Okabe and Ito).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#999999")


def markdown(command: str, title: str, setting: str, found: Diagnosis) -> str:
    """Return the report: the method, the largest errors, a row per tensor."""
    together = (
        f"Everything compressed: {found.ratio_of_everything:.2f} times fewer bytes of all that autograd keeps, "
        f"{found.ratio:.2f} times of activations, gradient error {found.gradient_error:.4f}. Were the errors of the tensors "
        f"independent, it would be {found.independent_error:.4f}."
    )
    if found.worst:
        worst = found.worst[0]
        together += (
            f" The worst tensor is what {worst.operation} made and {worst.module or 'the model itself'} saved: "
            f"{worst.gradient_error:.4f} alone, with {worst.codec}."
        )
    parts: list[str | Table] = [
        f"Written by `{command}`.",
        setting,
        together,
        "![Gradient error of each tensor](gradient_errors.png)",
        _tensors(found),
        "`module` is where the tensor is first saved, `operation` what made it. Relative error: ||x - x'|| / ||x||; for brc of "
        "the signs. Gradient error: ||g - g'|| / ||g|| over all parameters, with this tensor compressed and all others exact. "
        "Both are root mean squares over the batches.",
    ]
    return Page(title, parts).markdown()


def _tensors(found: Diagnosis) -> Table:
    rows = []
    for one in found.tensors:
        row = [one.module or "-", one.operation, ", ".join(one.saved_by), "x".join(map(str, one.shape)), one.codec]
        rows.append([*row, ratio_text(one.ratio), f"{one.relative_error:.4f}", f"{one.gradient_error:.4f}"])
    head = ["module", "operation", "saved by", "shape", "codec", "ratio", "relative error", "gradient error"]
    return Table(head, rows)


def bars(title: str, found: Diagnosis) -> bytes:
    """Return a PNG: the gradient error of each tensor in the order of the forward pass, one colour per codec."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    names = list(dict.fromkeys(one.codec for one in found.tensors))
    colours = {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(names)}
    figure = Figure(figsize=(9, 1.6 + 0.28 * len(found.tensors)), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    places = range(len(found.tensors))
    errors = [one.gradient_error for one in found.tensors]
    drawn = axes.barh(places, errors, color=[colours[one.codec] for one in found.tensors], height=0.72)
    axes.bar_label(
        drawn, [f"{error:.3f}  ({ratio_text(one.ratio)}x)" for error, one in zip(errors, found.tensors, strict=True)], padding=3
    )
    axes.set_yticks(places, [f"{one.module or '-'}  ({one.operation})" for one in found.tensors])
    axes.invert_yaxis()
    axes.axvline(found.gradient_error, color="black", linestyle="--", linewidth=1.2)
    axes.set_xlim(0, 1.2 * max([found.gradient_error, *errors]) or 1)
    axes.set(title=title, xlabel="gradient error ||g - g'|| / ||g||, each tensor alone; dashed: all together")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(handles=[Patch(color=colours[name], label=name) for name in names], loc="outside right upper", frameon=False)
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()

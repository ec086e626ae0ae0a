"""The report of a comparison of codecs: report.md and curves.png."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from cdu_tools.report import Page, Table

from actcodec.saved.statistics import WEIGHTS, ratio_text
from actcodec.study.data import Dataset
from actcodec.study.experiment import BASELINE, Recipe, Run, summarise
from actcodec.study.networks import NETWORKS

_UNITS = {"accuracy": "%", "psnr": "dB"}
# A loss that falls by more than this factor is drawn on a logarithmic axis.
_LOG_FROM = 20
# Colours that colour-blind readers can tell apart (Okabe and Ito); the baseline is black.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def markdown(command: str, recipe: Recipe, dataset: Dataset, runs: Sequence[Run]) -> str:
    """Return the report: the runs, a row per codec, a table of tensors per codec."""
    seeds = sorted({run.seed for run in runs})
    parts: list[str | Table] = [
        f"Written by `{command}`.",
        f"Data: {dataset.note}. {len(dataset.train_inputs)} training and {len(dataset.test_inputs)} test images, inputs of "
        f"{' x '.join(map(str, dataset.train_inputs.shape[1:]))}.\n"
        f"Network: {recipe.model}, width {recipe.width}, depth {recipe.depth}. {len(runs[0].losses)} steps of "
        f"{recipe.batch} images, {NETWORKS[recipe.model].optimizer_text}, learning rate {recipe.learning_rate:g} "
        f"falling to 0 by a cosine. Seeds {', '.join(map(str, seeds))}: weights and order of images are the same "
        "for every codec.",
        _codecs(runs),
        "± is the standard deviation over the seeds; the difference is taken seed by seed. The ratio counts every distinct "
        "tensor that autograd saves once, and all bytes that are kept for it, headers and scales included; weights and buffers "
        "are left out, which are there anyway. The ratio of activations, and the bytes beside it, leave out statistics, masks "
        "and indices too. Times are of this machine and include the compression in software.",
        *_not_counted(runs),
        "![Loss and score over the steps](curves.png)",
    ]
    for codec in dict.fromkeys(run.codec for run in runs if run.codec != BASELINE):
        run = next(run for run in runs if run.codec == codec)
        parts += [
            f"## Tensors with {codec} (seed {run.seed})",
            "`module` is where the tensor is saved, `operation` what made it. Error: ||x - x'|| / ||x||, mean over the first "
            "step of every epoch; for brc of the signs, which is all that ReLU needs.",
            _tensors(run),
        ]
    return Page(f"Training {recipe.model} on {dataset.name} with compressed activations", parts).markdown()


def _codecs(runs: Sequence[Run]) -> Table:
    """Return a row per codec, over all seeds."""
    head = [f"{runs[0].score_name} ({_UNITS[runs[0].score_name]})", f"difference to {BASELINE}", "loss at the end"]
    head += ["ratio", "ratio of activations"]
    rows = []
    for row in summarise(runs):
        difference = "-" if row.codec == BASELINE else f"{row.difference:+.2f} ± {row.difference_deviation:.2f}"
        cells = [row.codec, f"{row.score:.2f} ± {row.score_deviation:.2f}", difference, f"{row.loss:.4g}"]
        cells += [f"{row.ratio_of_everything:.2f}", f"{row.ratio:.2f}"]
        kept = [f"{row.bytes_original / 1024:.0f}", f"{row.bytes_compressed / 1024:.0f}"]
        rows.append([*cells, *kept, f"{1000 * row.seconds_per_step:.1f}"])
    return Table(["codec", *head, "KiB saved by autograd per step", "KiB kept", "ms per step"], rows)


def _tensors(run: Run) -> Table:
    rows = []
    for row in run.tensors:
        shape = "x".join(map(str, row["shape"]))
        rows.append(
            [row["name"] or "-", row["op"], shape, row["codec"], ratio_text(row["ratio"]), f"{row['relative_error']:.4f}"]
        )
    return Table(["module", "operation", "shape", "codec", "ratio", "relative error"], rows)


def _not_counted(runs: Sequence[Run]) -> list[str]:
    """Return lines with the other tensors that autograd saves, for the first run of each codec, and the ratio with them."""
    first = {run.codec: run for run in reversed(runs)}
    lines = []
    for codec in dict.fromkeys(run.codec for run in runs):
        run = first[codec]
        kinds = ", ".join(f"{what} {count / len(run.losses) / 1024:.1f}" for what, count in run.not_counted.most_common())
        if kinds:
            lines.append(f"- {codec}: {kinds}; ratio with them {run.ratio_of_everything:.2f}")
    said = f"Not counted, KiB kept per step; the ratio with them leaves {WEIGHTS} out, which are there anyway:"
    return [said, "\n".join(lines)] if lines else []


def curves(title: str, runs: Sequence[Run]) -> bytes:
    """Return a PNG: smoothed loss; change of the score by a codec, by seed, over the steps and at the end against its ratio.

    Scores are compared with those of the uncompressed run of the same seed if there is one; else they are absolute.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(run.codec for run in runs))
    others = iter(_COLOURS * len(names))
    colours = {name: "black" if name == BASELINE else next(others) for name in names}
    figure = Figure(figsize=(12, 4.2), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    loss_axes, score_axes, ratio_axes = figure.subplots(1, 3)
    window = max(1, len(runs[0].losses) // 20)
    plain = {run.seed: run for run in runs if run.codec == BASELINE}
    paired = len(names) > 1 and all(run.seed in plain for run in runs)
    for place, name in enumerate(names):
        style = {"color": colours[name], "linewidth": 2.0 if name == BASELINE else 1.6}
        mine = [run for run in runs if run.codec == name]
        smooth = _smooth([run.losses for run in mine], window)
        loss_axes.plot(range(window, window + len(smooth)), smooth, label=Path(name).name, **style)
        if paired and name == BASELINE:
            continue
        # Dots of one step are drawn beside each other.
        aside = (place - len(names) / 2) * 0.01 * len(mine[0].losses)
        for run in mine:
            before = plain[run.seed] if paired else None
            changes = [score - (before.scores[at][1] if before else 0) for at, (_, score) in enumerate(run.scores)]
            label = Path(name).name if run is mine[0] else None
            steps = [done + aside for done, _ in run.scores]
            score_axes.scatter(steps, changes, color=colours[name], s=18, label=label)
            change = run.score - (before.score if before else 0)
            ratio_axes.scatter(run.ratio_of_everything, change, color=colours[name], s=36, label=label)
    unit = _UNITS[runs[0].score_name]
    score_label = f"test {'accuracy' if unit == '%' else 'PSNR'} ({unit})"
    loss_axes.set(title=f"Training loss (mean of {window} steps)", xlabel="step", ylabel="loss")
    drawn = [value for line in loss_axes.lines for value in line.get_ydata()]
    if max(drawn) > _LOG_FROM * min(drawn):
        loss_axes.set_yscale("log")
    if paired:
        score_label += f", less that of {BASELINE}"
        for axes in (score_axes, ratio_axes):
            axes.axhline(0, color="black", linewidth=0.8)
    score_axes.set(title="Score; a dot per seed", xlabel="step", ylabel=score_label)
    ratio_axes.set(title="Score at the end; a dot per seed", xlabel="compression ratio of everything saved", ylabel=score_label)
    ratio_axes.set_xlim(0, 1.1 * max(run.ratio_of_everything for run in runs))
    for axes in (loss_axes, score_axes, ratio_axes):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    figure.suptitle(title)
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def _smooth(losses: Sequence[Sequence[float]], window: int) -> list[float]:
    """Return the mean over the seeds, then the running mean over ``window`` steps."""
    mean = [sum(step) / len(step) for step in zip(*losses, strict=True)]
    return [sum(mean[i : i + window]) / window for i in range(len(mean) - window + 1)]

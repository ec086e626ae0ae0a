"""Low and high frequencies of a ResNet's activations, epoch by epoch (DIVISION, section 3): a table and a plot.

    python benchmarks/frequency.py -o build/frequency
    python benchmarks/frequency.py --dataset cifar10 --limit 4000 --depth 2 -o build/frequency-cifar10

After every epoch the network sees the same training images again. lambda_L and lambda_H are the norms of the DCT coefficients
within and beyond the corner of the lowest frequencies; "change" is the norm of the difference to the epoch before, by the norm
of the part. Writes frequency.md, frequency.csv and frequency.png to the folder.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from pathlib import Path

import torch
from actcodec.study import experiment
from actcodec.study.data import Dataset, load
from actcodec.study.frequency import DEFAULT_CORNER
from actcodec.study.frequency_analysis import FrequencyAnalysis, LayerFrequencies
from cdu_tools.files import write_whole
from cdu_tools.report import Table
from matplotlib import colormaps
from matplotlib.figure import Figure
from torch.nn import functional


def analysed(recipe: experiment.Recipe, images: Dataset, corner: float, probe: int, seed: int) -> list[LayerFrequencies]:
    """Train without compression; measure before the first epoch (epoch 0) and after each."""
    torch.manual_seed(seed)
    model = experiment.build_model(recipe, images)
    optimizer = experiment.network(recipe.model).optimizer(model, recipe.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, experiment.total_steps(recipe, images))
    order = torch.Generator().manual_seed(seed)
    analysis = FrequencyAnalysis(images.train_inputs[:probe], corner)
    rows = analysis.measure(model, 0)
    for epoch in range(1, recipe.epochs + 1):
        shuffled = torch.randperm(len(images.train_inputs), generator=order)
        for place in range(experiment.steps_per_epoch(recipe, images)):
            chosen = shuffled[place * recipe.batch : (place + 1) * recipe.batch]
            optimizer.zero_grad()
            torch.autograd.backward(functional.cross_entropy(model(images.train_inputs[chosen]), images.train_targets[chosen]))
            optimizer.step()
            schedule.step()
        rows += analysis.measure(model, epoch)
        print(f"epoch {epoch}: accuracy {experiment.score(model, images):.2f} %", flush=True)
    return rows


def table(rows: Sequence[LayerFrequencies]) -> str:
    """A line per activation: first and last epoch, and the changes of the last epoch."""
    first, last = rows[0].epoch, rows[-1].epoch
    norms = [name for epoch in (first, last) for name in (f"lambda_L, epoch {epoch}", "lambda_H", "energy in L (%)")]
    cells = []
    count = sum(row.epoch == first for row in rows)
    for start, end in zip(rows[:count], rows[-count:], strict=True):
        assert end.relative_change is not None, "there is an epoch before the last one"
        line = [start.module or "-", start.operation, f"{start.shape[2]}x{start.shape[3]}"]
        for row in (start, end):
            line += [f"{row.norms.low:.4g}", f"{row.norms.high:.4g}", f"{100 * row.norms.share:.1f}"]
        cells.append([*line, *(f"{100 * part:.1f}" for part in end.relative_change)])
    return Table(["module", "operation", "map", *norms, "change of L (%)", "change of H (%)"], cells).markdown()


def listing(rows: Sequence[LayerFrequencies]) -> str:
    """All rows, comma-separated."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["epoch", "module", "operation", "height", "width", "lambda_L", "lambda_H", "change_L", "change_H"])
    for row in rows:
        changes = ("", "") if row.change is None else (row.change.low, row.change.high)
        writer.writerow([row.epoch, row.module, row.operation, *row.shape[2:], row.norms.low, row.norms.high, *changes])
    return text.getvalue()


def picture(rows: Sequence[LayerFrequencies], title: str) -> bytes:
    """A PNG: share of the energy in low frequencies, and relative change of both parts, over the epochs."""
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    figure.suptitle(title)
    energy, low, high = figure.subplots(1, 3)
    for axes in (energy, low, high):
        axes.set_prop_cycle(color=[colormaps["tab20"](number) for number in range(20)])
    count = sum(row.epoch == rows[0].epoch for row in rows)
    for number in range(count):
        line = rows[number::count]
        name = f"{line[0].module or 'loss'}, {line[0].operation}"
        energy.plot([row.epoch for row in line], [100 * row.norms.share for row in line], label=name)
        moved = [(row.epoch, row.relative_change) for row in line if row.relative_change is not None]
        for part, axes in enumerate((low, high)):
            axes.plot([epoch for epoch, _ in moved], [100 * change[part] for _, change in moved])
    energy.set(title="Energy in low frequencies", xlabel="epoch", ylabel="%", ylim=(0, 100))
    low.set(title="Change of the low part", xlabel="epoch", ylabel="% of its norm")
    high.set(title="Change of the high part", xlabel="epoch", ylabel="% of its norm")
    top = max(low.get_ylim()[1], high.get_ylim()[1])
    for axes in (low, high):
        axes.set_ylim(0, top)
    figure.legend(loc="outside lower center", ncols=4, fontsize=7)
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=120)
    return image.getvalue()


def main() -> None:
    """Train, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--corner", type=float, default=DEFAULT_CORNER, help="part of each axis that is low frequencies")
    parser.add_argument("--probe", type=int, default=64, help="images of the analysis")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    images = load(arguments.dataset, arguments.data, arguments.limit)
    recipe = experiment.Recipe(width=arguments.width, depth=arguments.depth, epochs=arguments.epochs)
    rows = analysed(recipe, images, arguments.corner, arguments.probe, arguments.seed)
    folder: Path = arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "frequency.md", table(rows) + "\n")
    write_whole(folder / "frequency.csv", listing(rows))
    title = f"ResNet of width {recipe.width} on {images.name}, low frequencies: {arguments.corner:g} of each axis"
    write_whole(folder / "frequency.png", picture(rows, title))
    print(table(rows))


if __name__ == "__main__":
    main()

"""Every method on every reference network: score, ratio, error and time, over several seeds.

    python benchmarks/comparison.py [--network NAME ...] [--method NAME ...] [--seeds N] [--jobs N]
    python benchmarks/comparison.py --draw

A run is kept in build/comparison/NETWORK as soon as it has ended, so that an interrupted campaign goes on where it stopped;
delete a file to repeat its run. Times are measured apart, some steps of every method in turn in one process, and kept beside
the runs in times.json: a campaign's own would tell what else the machine had to do.

Prints a table per network as markdown; writes build/comparison/report.md with the picture ``pareto.png`` beside it.
$CDU_DATA_DIR names the folder with CIFAR-10.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import sqrt
from pathlib import Path
from statistics import geometric_mean, median
from typing import TYPE_CHECKING, Any

import published
from cdu_spec.sfpr import PUBLISHED_S
from cdu_tools.errors import UserError
from cdu_tools.files import write_whole

if TYPE_CHECKING:
    from actcodec.training import Policy

ROOT = Path(__file__).parent.parent
KEPT = Path("build", "comparison")
RECORD = Path("docs", "evidence", "results_comparison_networks.csv")
BASELINE = "none"
#: Half of the last digit of the table.
_LAST_DIGIT = 0.005
#: Measurement of times: number of turns of all methods, and of steps in each, the first of which does not count.
ROUNDS, STEPS = 3, 4


@dataclass(frozen=True)
class Setting:
    """A network, its data and how long it is trained."""

    model: str
    dataset: str
    title: str
    recipe: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None


SETTINGS = {
    "resnet": Setting("resnet", "cifar10", "ResNet", {"width": 8, "depth": 1, "epochs": 2}, 8192),
    "vgg": Setting("vgg", "cifar10", "VGG", {"width": 8, "depth": 1, "epochs": 2}, 8192),
    "wide-resnet": Setting("wide-resnet", "cifar10", "Wide ResNet", {"width": 16, "depth": 1, "epochs": 2}, 2048),
    "vit": Setting("vit", "cifar10", "Vision transformer", {"width": 32, "depth": 2, "epochs": 2}, 8192),
    "vdsr": Setting("vdsr", "photos", "VDSR", {"epochs": 24}),
}
#: SFPR as JPEG-ACT has it.
_PUBLISHED: dict[str, Any] = {"S": PUBLISHED_S, "keep_signs": False}
#: Method -> policy and its options.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    BASELINE: ("none", {}),
    "cdma": ("cdma", {}),
    "gist fp8": ("gist", {"dpr": "fp8"}),
    "bf16": ("bf16", {}),
    "int8-rows": ("int8-rows", {}),
    "sfpr": ("sfpr", _PUBLISHED),
    "sfpr+zvc": ("sfpr+zvc", _PUBLISHED),
    "jpeg-base optL": ("jpeg-base", {"dqt": "optL"}),
    "jpeg-act optL": ("jpeg-act", {"dqt": "optL"}),
    "jpeg-act optH": ("jpeg-act", {"dqt": "optH"}),
    "jpeg-act searchsH": ("jpeg-act", {"dqt": "searchsH"}),
    "division": ("division", {"bits": 2}),
    "division-float": ("division-float", {"bits": 2}),
    "actnn-L2": ("actnn-L2", {}),
    "actnn-L3 2 bits": ("actnn-L3", {"bits": 2}),
    "blpa 4 bits": ("blpa", {"bits": 4}),
    "blpa-coded 4": ("blpa-coded", {"bits": 4}),
    "blpa-coded 3": ("blpa-coded", {"bits": 3}),
    "autoquantz": ("autoquantz", {}),
    "autocusz": ("autocusz", {}),
    "autojpegz": ("autojpegz", {}),
    "gridquantz 3 bits": ("gridquantz", {"bits": 3}),
    "auto 12x": ("auto", {"ratio": 12}),
    "auto 16x": ("auto", {"ratio": 16}),
}


def run(task: tuple[str, str, int]) -> tuple[str, str]:
    """Train one network by one method with one seed, and keep the result; says what it was, and what went wrong or nothing."""
    import torch
    from actcodec.study import data, experiment

    torch.set_num_threads(1)
    name, method, seed = task
    setting = SETTINGS[name]
    images = data.load(setting.dataset, None, setting.limit)
    start = time.perf_counter()
    recipe = experiment.Recipe.usual(setting.model, **setting.recipe)
    try:
        result = experiment.train(recipe, images, method, policy_of(method), seed)
    except UserError as error:
        return f"{name} {method} seed {seed}", str(error)
    write_whole(kept(name, method, seed), json.dumps(result.to_dict("torch") | {"recipe": asdict(recipe)}) + "\n")
    return f"{name} {method} seed {seed}: {time.perf_counter() - start:.0f} s", ""


def policy_of(method: str) -> Policy:
    """A method's policy, with native kernels where it takes them: the same bytes in less time."""
    from actcodec.backends.named import NATIVE
    from actcodec.policies.catalog import policy, policy_options

    name, options = METHODS[method]
    native = {"backend": NATIVE} if "backend" in policy_options(name) else {}
    return policy(name, **options | native)


def times(network: str, methods: Sequence[str]) -> dict[str, float]:
    """Time of a step of each method in steps of the uncompressed network, medians over rounds; measured unless kept."""
    import torch
    from actcodec.study import data, experiment

    file = KEPT / network / "times.json"
    found: dict[str, float] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if not found.keys() >= set(methods):
        torch.set_num_threads(1)
        setting = SETTINGS[network]
        images = data.load(setting.dataset, None, setting.limit)
        images = replace(images, test_inputs=images.test_inputs[:1], test_targets=images.test_targets[:1])
        recipe = replace(experiment.Recipe.usual(setting.model, **setting.recipe), steps=STEPS)
        rounds = [
            {m: experiment.train(recipe, images, m, policy_of(m), 0).seconds_per_step for m in methods} for _ in range(ROUNDS)
        ]
        found = {method: median(one[method] / one[BASELINE] for one in rounds) for method in methods}
        write_whole(file, json.dumps(found) + "\n")
    return found


def kept(network: str, method: str, seed: int) -> Path:
    """Return the file of a run."""
    return KEPT / network / f"{method.replace(' ', '_')}-{seed}.json"


def measure(tasks: Sequence[tuple[str, str, int]], jobs: int) -> None:
    """Make the runs that are not there yet, in ``jobs`` processes; those that fail are named when the others are done."""
    missing = [task for task in tasks if not kept(*task).exists()]
    for name in {task[0] for task in missing}:
        (KEPT / name).mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        failed = []
        for done, (what, problem) in enumerate(pool.imap_unordered(run, missing), 1):
            left = (time.perf_counter() - start) / done * (len(missing) - done) / 60
            print(f"{done}/{len(missing)} {what}, {left:.0f} min left", file=sys.stderr)
            failed += [f"{what}: {problem}"] if problem else []
    if failed:
        raise SystemExit("\n".join(failed))


@dataclass(frozen=True)
class Row:
    """A method on a network, over all seeds; differences are to the uncompressed run of the same seed."""

    method: str
    score: float
    score_deviation: float
    difference: float
    difference_deviation: float
    ratio: float
    error: float | None  #: relative, weighted by bytes
    time: float  #: step time, in steps of the uncompressed network


def rows(network: str, methods: Sequence[str], seeds: Sequence[int]) -> list[Row]:
    """Return the rows of a network's runs."""
    found, time_of = [], times(network, methods)
    load = {m: [json.loads(kept(network, m, seed).read_text(encoding="utf-8")) for seed in seeds] for m in methods}
    for method, runs in load.items():
        scores = [run["score"] for run in runs]
        differences = [run["score"] - base["score"] for run, base in zip(runs, load[BASELINE], strict=True)]
        ratio = sum(run["bytes_original"] for run in runs) / sum(run["bytes_compressed"] for run in runs)
        found.append(
            Row(
                method,
                *_spread(scores),
                *_spread(differences),
                ratio,
                _error([tensor for run in runs for tensor in run["tensors"]]),
                time_of[method],
            )
        )
    return found


def _spread(values: Sequence[float]) -> tuple[float, float]:
    mean = sum(values) / len(values)
    return mean, sqrt(sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1))


def _error(tensors: Sequence[dict[str, Any]]) -> float | None:
    """Root of the mean square of the tensors' relative errors; masks, of which only signs are kept, do not count."""
    errors = [t["relative_error"] for t in tensors if t["relative_error"] is not None and t["codec"] not in ("brc", "bits")]
    return sqrt(sum(error * error for error in errors) / len(errors)) if errors else None


def table(network: str, found: Sequence[Row], seeds: Sequence[int]) -> str:
    """The rows as markdown."""
    setting = SETTINGS[network]
    example = json.loads(kept(network, BASELINE, seeds[0]).read_text(encoding="utf-8"))
    recipe, unit = example["recipe"], "dB" if example["score_name"] == "psnr" else "%"
    lines = [
        f"### {setting.title} on {setting.dataset}",
        "",
        f"Width {recipe['width']}, depth {recipe['depth']}, {len(example['losses'])} steps of {recipe['batch']} images, "
        f"{example['bytes_original'] / len(example['losses']) / 1024:.0f} KiB saved per step, seeds "
        f"{', '.join(map(str, seeds))}.",
        "",
        f"| method | {example['score_name']} ({unit}) | difference | ratio | relative error | time of a step |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for row in found:
        difference = "" if row.method == BASELINE else f"{row.difference:+.2f} ± {row.difference_deviation:.2f}"
        error = "" if row.error is None else f"{row.error:.3f}"
        lines.append(
            f"| {row.method} | {row.score:.2f} ± {row.score_deviation:.2f} | {difference} | {row.ratio:.2f} | {error} | "
            f"{row.time:.1f} |"
        )
    return "\n".join(lines)


def recorded() -> dict[str, list[Row]]:
    """The rows of the table beside the page, by network."""
    by_title = {f"{setting.title} on {setting.dataset}": network for network, setting in SETTINGS.items()}
    found: dict[str, list[Row]] = {}
    for title, method, score, difference, ratio, error, step in list(csv.reader(RECORD.read_text("utf-8").splitlines()))[1:]:
        spreads = (*_numbers(score), *_numbers(difference or "0 ± 0"))
        row = Row(method, *spreads, float(ratio), float(error) if error else None, float(step))
        found.setdefault(by_title[title], []).append(row)
    return found


def _numbers(cell: str) -> tuple[float, float]:
    mean, _, deviation = cell.partition(" ± ")
    return float(mean), float(deviation)


def picture(tables: Mapping[str, Sequence[Row]]) -> bytes:
    """A PNG: a panel per network, a line per method by its name, with its paired difference of the score and its ratio."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ratios: dict[str, list[float]] = {}
    for found in tables.values():
        for row in found:
            ratios.setdefault(row.method, []).append(row.ratio)
    methods = sorted(ratios.keys() - {BASELINE}, key=lambda method: geometric_mean(ratios[method]))
    figure = Figure(figsize=(3.4 * len(tables) + 1.5, 0.3 * len(methods) + 1.4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(tables), sharey=True, squeeze=False)[0]
    for axes, (network, found) in zip(panels, tables.items(), strict=True):
        axes.axvline(0, color="black", linewidth=0.8)
        for row in found:
            if row.method == BASELINE:
                continue
            place = methods.index(row.method)
            away = abs(row.difference) - _LAST_DIGIT > 2 * (row.difference_deviation + _LAST_DIGIT)
            colour = "#777777" if not away else "#0072B2" if row.difference > 0 else "#D55E00"
            axes.errorbar(row.difference, place, xerr=row.difference_deviation, fmt="o", color=colour, capsize=2, markersize=4)
            axes.text(1.02, place, f"{row.ratio:.1f}x", transform=axes.get_yaxis_transform(), va="center", fontsize=8)
        axes.set_title(f"{SETTINGS[network].title} on {SETTINGS[network].dataset}", fontsize=10)
        axes.set_xlabel("dB" if SETTINGS[network].dataset == "photos" else "points of accuracy")
        axes.set_yticks(range(len(methods)), methods)
        axes.locator_params(axis="x", nbins=4)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(
        "score less that of the uncompressed run of the same seed, mean and deviation; coloured beyond two deviations; at the "
        "right the ratio",
        fontsize=10,
    )
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def main() -> None:
    """Measure what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--method", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3, help="runs of each network and method")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes, each on one core")
    parser.add_argument("--draw", action="store_true", help="draw the page's picture from its table, and measure nothing")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    if arguments.draw:
        write_whole(RECORD.with_name("results_comparison.png"), picture(recorded()))
        return
    seeds = range(arguments.seeds)
    methods = list(dict.fromkeys((BASELINE, *arguments.method)))
    measure([(n, m, seed) for n in arguments.network for m in methods for seed in seeds], arguments.jobs)
    tables = {network: rows(network, methods, seeds) for network in arguments.network}
    text = "\n\n".join(table(network, found, seeds) for network, found in tables.items())
    text += "\n\n![Difference of the score against ratio](pareto.png)\n\n### What the papers report\n\n"
    text += published.table()
    write_whole(KEPT / "pareto.png", picture(tables))
    write_whole(KEPT / "report.md", f"{text}\n")
    print(text)


if __name__ == "__main__":
    main()

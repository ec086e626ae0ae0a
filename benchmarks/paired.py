"""Accuracy with and without compression, paired by seed and test image, and the least difference that it could show.

    python benchmarks/paired.py                          # continues where the table stops, then writes results
    python benchmarks/paired.py --only digits --seeds 10
    python benchmarks/paired.py --only cifar10 --minutes 120
    python benchmarks/paired.py --only cifar10 --device cuda --workers 12 --uncoded

Networks are trained until they stop improving, with the recipes of RECIPES, which are not changed once their scores have been
seen. Every run is a row of docs/evidence/paired_runs.csv as soon as it is over: its score, its ratio, and for each test image
whether the answer is right, as bits in base 64. Runs of one seed have the same first weights and batches. CIFAR-10 is read from
the folder that CDU_DATA_DIR names; runs of it take many minutes each, on one core. With ``--workers`` several run at once, each
in a process of its own; on a GPU they share it. ``--uncoded`` leaves out the coders of policies, which take most of
a step on a GPU (benchmarks/uncoded.py). The ratio is then of a batch at the start of each epoch, by the policy itself.

difference
    of accuracies, in points, with its interval of 95 % (bootstrap over seeds and images);
lost, gained
    answers over all seeds that only the uncompressed network has right, and only the other;
shows
    the least true difference that these runs show four times out of five;
not worse than
    the smallest of the margins 0.1, 0.5, 1, 2, 5 that the loss is certain (95 %) to stay below;
seeds for 0.5, seeds for 0.1
    seeds that would show, four times out of five, a loss below 0.5 points on these images, and below 0.1 on 10 000 of them.

Writes all of these to docs/evidence/paired_summary.csv, and some between the marks of docs/evidence/paired.md.
"""

from __future__ import annotations

import argparse
import base64
import copy
import csv
import functools
import io
import math
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import torch
from actcodec.policies.catalog import policy, policy_options
from actcodec.policies.policy import Policy
from actcodec.study import data
from actcodec.study.data import Dataset
from actcodec.study.experiment import BASELINE, Recipe, initial_model, loss_of, steps_per_epoch, train
from actcodec.study.paired import compare, spread
from actcodec.study.setup import torch_device
from actcodec.training.activation_compression import compress_activations
from cdu_spec.sfpr import PUBLISHED_S
from cdu_tools.files import write_whole
from cdu_tools.marks import Marks
from cdu_tools.parallel import processes
from digest import Table
from numpy.typing import NDArray
from torch import nn

PAGE = Path(__file__).parent.parent / "docs" / "evidence" / "paired.md"
MARKS = Marks("paired")
#: All runs, and what they show, beside the page.
TABLE, SUMMARY = PAGE.with_name("paired_runs.csv"), PAGE.with_name("paired_summary.csv")
COLUMNS = ("data", "model", "policy", "seed", "score", "ratio", "right")
#: Network and schedule by data set.
RECIPES = {
    "digits": (Recipe("resnet", width=8, epochs=15), Recipe("vgg", width=8, epochs=15)),
    "cifar10": (Recipe("resnet", width=32, epochs=15, batch=128),),
}
#: Policies that are recommended, and their options, by what the table calls them.
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    BASELINE: (BASELINE, {}),
    "blpa-coded bits=6": ("blpa-coded", {"bits": 6}),
    "jpeg-gmc": ("jpeg-gmc", {"S": PUBLISHED_S}),
    "actnn-L2": ("actnn-L2", {}),
}
MARGINS = (0.1, 0.5, 1.0, 2.0, 5.0)
SEEDS, _MANY_IMAGES = 10, 10_000


def rows() -> list[dict[str, str]]:
    """Return the rows of finished runs."""
    return list(csv.DictReader(TABLE.read_text("utf-8").splitlines())) if TABLE.exists() else []


def missing(only: str | None, seeds: int, policies: Sequence[str]) -> Iterator[tuple[str, Recipe, str, int]]:
    """Yield the runs that are not in the table, seed by seed, so that finished runs are paired."""
    known = {(row["data"], row["model"], row["policy"], int(row["seed"])) for row in rows()}
    for seed in range(seeds):
        for name, recipes in RECIPES.items():
            for recipe in recipes if only in (None, name) else ():
                for label in policies:
                    if (name, recipe.model, label, seed) not in known:
                        yield name, recipe, label, seed


@functools.cache
def images_of(name: str, device: str) -> Dataset:
    """A data set on a device."""
    return data.load(name).to(torch_device(device))


class Sizes:
    """Compress a batch with a policy at the start of each epoch, whatever the network is trained with, and add up the sizes."""

    def __init__(self, chosen: Policy, model: nn.Module, images: Dataset, recipe: Recipe) -> None:
        self._policy, self._model, self._images = chosen, model, images
        self._batch, self._steps, self._done = recipe.batch, steps_per_epoch(recipe, images), 0
        self._original = self._kept = 0

    def step(self) -> None:
        """After each step."""
        if self._done % self._steps == 0:
            model, batch = copy.deepcopy(self._model).train(), slice(self._batch)
            inputs, targets = self._images.train_inputs[batch], self._images.train_targets[batch]
            with compress_activations(model, self._policy) as statistics:
                loss_of(model(inputs), targets, self._images)
            self._original += statistics.bytes_original
            self._kept += statistics.bytes_compressed
        self._done += 1

    @property
    def ratio(self) -> float:
        """Over all of these batches."""
        return self._original / self._kept


def run(name: str, recipe: Recipe, label: str, seed: int, device: str, uncoded: bool) -> dict[str, str]:
    """One run as a row of the table, in float32 wherever it is."""
    torch.backends.cudnn.allow_tf32 = False
    torch.set_num_threads(1)
    images = images_of(name, device)
    model = initial_model(recipe, images, seed)
    codec, options = POLICIES[label]
    has_backends = "backend" in policy_options(codec)
    fastest: dict[str, Any] = {"backend": "auto"} if has_backends else {}
    chosen = policy(codec, **options, **fastest)
    if uncoded and has_backends:
        from uncoded import UncodedBackend

        sizes = Sizes(chosen, model, images, recipe)
        train(recipe, images, label, policy(codec, **options, backend=UncodedBackend()), seed, sizes.step, model)
        ratio = sizes.ratio
    else:
        ratio = train(recipe, images, label, chosen, seed, model=model).ratio
    model.eval()
    with torch.no_grad():
        right = torch.cat(
            [
                model(inputs).argmax(1) == targets
                for inputs, targets in zip(
                    *(torch.split(part, 256) for part in (images.test_inputs, images.test_targets)), strict=True
                )
            ]
        )
    bits = base64.b64encode(np.packbits(right.cpu().numpy()).tobytes()).decode()
    score = 100 * float(right.double().mean())
    return dict(zip(COLUMNS, (name, recipe.model, label, str(seed), f"{score:.4f}", f"{ratio:.3f}", bits), strict=True))


def append(row: dict[str, str]) -> None:
    """Write the table with one more row."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows([*rows(), row])
    write_whole(TABLE, file.getvalue())


def answers(found: list[dict[str, str]], seeds: list[int], images: int) -> NDArray[np.bool_]:
    """Return whether each test image is answered right, (seeds, images)."""
    by_seed = {int(row["seed"]): row["right"] for row in found}
    packed = [np.frombuffer(base64.b64decode(by_seed[seed]), np.uint8) for seed in seeds]
    return np.stack([np.unpackbits(one, count=images) for one in packed]).astype(bool)


HEADER = (
    *("data", "network", "policy", "seeds", "images", "without", "ratio"),
    *("difference", "95 %", "lost", "gained", "shows", "not worse than", "seeds for 0.5", "seeds for 0.1"),
)
#: Columns on the page.
SHOWN = ("data", "network", "policy", "ratio", "difference", "95 %", "not worse than")


def summary() -> Table:
    """A row for each network and policy of which two seeds have run with and without."""
    found: dict[tuple[str, str], dict[str, list[dict[str, str]]]] = {}
    for row in rows():
        found.setdefault((row["data"], row["model"]), {}).setdefault(row["policy"], []).append(row)
    lines = []
    for (name, model), by_policy in found.items():
        images = len(data.load(name).test_targets)
        base = by_policy.pop(BASELINE, [])
        for label, mine in by_policy.items():
            seeds = sorted({int(row["seed"]) for row in mine} & {int(row["seed"]) for row in base})
            if len(seeds) > 1:
                lines.append((name, model, label, *cells(mine, base, seeds, images)))
    return Table(HEADER, tuple(lines))


def write(found: Table) -> None:
    """Write the table beside the page, and some of its columns between the marks of the page."""
    write_whole(SUMMARY, found.csv())
    MARKS.put(PAGE, f"\n\n{found.only(*SHOWN).markdown()}\n\n")


def cells(mine: list[dict[str, str]], base: list[dict[str, str]], seeds: list[int], images: int) -> list[str]:
    """Return the cells of a policy's runs, compared with the uncompressed ones of the same seeds."""
    with_it, without = answers(mine, seeds, images), answers(base, seeds, images)
    one, parts = compare(with_it, without), spread(with_it, without)
    certain = next((f"{margin:g}" for margin in MARGINS if one.no_worse_than(margin)), "-")
    needed = (parts.seeds_for(0.5, images), parts.seeds_for(0.1, _MANY_IMAGES))
    ratio = sum(float(row["ratio"]) for row in mine) / len(mine)
    return [
        *(str(len(seeds)), str(images), f"{100 * without.mean():.2f}", f"{ratio:.1f}", f"{one.difference:+.2f}"),
        *(f"{one.low:+.2f} to {one.high:+.2f}", str(one.lost), str(one.gained), f"{one.least:.2f}", certain),
        *("no number" if math.isinf(number) else f"{math.ceil(number)}" for number in needed),
    ]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(RECIPES), help="train on these images alone")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds from 0 on, of each network and policy (10)")
    parser.add_argument("--policies", default=",".join(POLICIES), help="with commas between (all)")
    parser.add_argument("--minutes", type=float, help="end after so many minutes; what has not ended by then is lost")
    parser.add_argument("--device", default="cpu", help="where networks are trained (cpu)")
    parser.add_argument("--workers", type=int, default=1, help="runs at once (1)")
    parser.add_argument("--uncoded", action="store_true", help="train with codecs by what they do to values")
    arguments = parser.parse_args()
    with processes(arguments.workers) as pool:
        runs: list[Future[dict[str, str]]] = [
            pool.submit(run, *one, arguments.device, arguments.uncoded)
            for one in missing(arguments.only, arguments.seeds, arguments.policies.split(","))
        ]
        try:
            for done in as_completed(runs, timeout=arguments.minutes and 60 * arguments.minutes):
                append(done.result())
        except TimeoutError:
            for process in multiprocessing.active_children():
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)
    write(summary())


if __name__ == "__main__":
    main()

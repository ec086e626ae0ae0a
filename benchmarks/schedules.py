"""JPEG-ACT as published, the schedule optLH with S = 1.125, beside S = 1.0, ReLU's exact signs, and the entropy coder.

    python benchmarks/schedules.py [--parts gradients,training] [--seeds 3]

Prints markdown tables. optLH is table optL in the first 5 epochs, and optH after them.

gradients
    ResNet of width 16 on CIFAR-10 (the folder that CDU_DATA_DIR names), before training and after 60 and 240 steps without
    compression; the gradient of 4 batches of 32 images beside the exact one, for both tables of the schedule.
training
    ResNet of width 8 on scikit-learn's digits, 10 epochs, so that half of them are after the switch. Differences are to the
    uncompressed run of the same seed.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import Any

import torch
from actcodec.policies.catalog import policy
from actcodec.policies.policy import CodecSpec
from actcodec.policies.recommended import named
from actcodec.study import experiment
from actcodec.study.data import Dataset, load
from actcodec.study.diagnosis import Passes
from actcodec.study.experiment import BASELINE, Recipe, initial_model, summarise
from actcodec.study.gradient_similarity import likeness
from cdu_spec.dqt import LH_SWITCH_EPOCH
from cdu_spec.sfpr import PUBLISHED_S
from cdu_tools.report import Table
from torch import nn

#: Options beside the table: as published, and what is better.
FORMS: tuple[dict[str, Any], ...] = ({}, {"S": 1.0}, {"keep_signs": True}, {"S": 1.0, "keep_signs": True})
OTHERS = (CodecSpec("jpeg-gmc", {"S": PUBLISHED_S}),)
_BATCH, _IMAGES, _TRIED = 32, 4096, 4
_TRAINED = (0, 60, 240)
_EPOCHS = 2 * LH_SWITCH_EPOCH


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="gradients,training")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if "gradients" in arguments.parts:
        header = ["policy", "options", *(f"{what} after {steps}" for steps in _TRAINED for what in ("cosine", "ratio"))]
        print(Table(header, gradients(load("cifar10", limit=_IMAGES))).markdown(), "\n", flush=True)
    if "training" in arguments.parts:
        header = ["policy", "options", "accuracy", "difference to none", "loss at the end", "ratio"]
        print(Table(header, list(training(load("digits"), range(arguments.seeds)))).markdown())


def gradients(images: Dataset) -> list[list[str]]:
    """A row for each table and form."""
    model = initial_model(Recipe.usual("resnet", width=16), images, 0).train()
    specs = [CodecSpec("jpeg-act", {"dqt": table} | form) for table in ("optL", "optH") for form in FORMS]
    rows = [[spec.name, options(spec)] for spec in (*specs, *OTHERS)]
    done = 0
    for steps in _TRAINED:
        train(model, images, range(done, steps))
        done = steps
        for row, spec in zip(rows, (*specs, *OTHERS), strict=True):
            row += tried(model, images, spec)
    return rows


def train(model: nn.Module, images: Dataset, steps: range) -> None:
    """Without compression."""
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for step in steps:
        optimizer.zero_grad()
        torch.autograd.backward(loss_of(model, images, step))
        optimizer.step()


def loss_of(model: nn.Module, images: Dataset, number: int) -> torch.Tensor:
    """Return the loss of one batch."""
    batch = slice(number * _BATCH % _IMAGES, number * _BATCH % _IMAGES + _BATCH)
    return experiment.loss_of(model(images.train_inputs[batch]), images.train_targets[batch], images)


def batch(model: nn.Module, images: Dataset, number: int) -> Passes:
    """One step that can be repeated."""
    return Passes(model, lambda: loss_of(model, images, number))


def tried(model: nn.Module, images: Dataset, spec: CodecSpec) -> list[str]:
    """Cosine and ratio, means over some batches."""
    cosines, ratios = [], []
    for number in range(_TRIED):
        passes = batch(model, images, number)
        gradient, statistics = passes.outcome(policy(spec.name, backend="native", **spec.options))
        assert statistics is not None, "the step was compressed"
        cosines.append(likeness(passes.gradient(), gradient, passes.layers).cosine)
        ratios.append(statistics.ratio)
    return [f"{sum(cosines) / _TRIED:.4f}", f"{sum(ratios) / _TRIED:.2f}"]


def training(images: Dataset, seeds: range) -> Iterator[list[str]]:
    """A row for each form of the schedule."""
    recipe = Recipe.usual("resnet", epochs=_EPOCHS)
    specs = [CodecSpec("jpeg-act", {"dqt": "optLH"} | form) for form in FORMS]
    chosen = {named(spec): (spec, policy(spec.name, backend="native", **spec.options)) for spec in (*specs, *OTHERS)}
    every = {BASELINE: (CodecSpec(BASELINE), policy(BASELINE))} | chosen
    runs = [experiment.train(recipe, images, name, one, seed) for seed in seeds for name, (_, one) in every.items()]
    for found in summarise(runs):
        spec = every[found.codec][0]
        spread = f"{found.difference:+.2f} ± {found.difference_deviation / math.sqrt(len(seeds)):.2f}"
        yield [spec.name, options(spec), f"{found.score:.2f}", spread, f"{found.loss:.3f}", f"{found.ratio:.2f}"]


def options(spec: CodecSpec) -> str:
    """In words."""
    return " ".join(f"{name}={value}" for name, value in spec.options.items())


if __name__ == "__main__":
    main()

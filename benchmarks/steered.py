"""Measure policy autoshift: its errors relative to those that the gradients allow, and its ratio beside fixed tables.

    python benchmarks/steered.py [--networks resnet,vgg,wide-resnet] [--parts held,equal]

CIFAR-10 (the folder that CDU_DATA_DIR names), networks of width 8, batches of 32. Prints markdown tables.

held
    Training steps with autoshift, which listens every 10th step and measures in the three after it. The error of every tensor
    is compared with the allowed one in all steps, those that the policy does not measure included. Errors that no setting
    makes are left out: smaller than that of 8 bits, or larger than 0.9 of the values themselves.
equal
    Gradients of a network after some steps without compression; autoshift learns from other batches with the same weights.
    Error of the gradient and ratio, beside tables that all tensors share, with the same codecs and signs. *same error* is the
    ratio over that of fixed tables at the same error of the gradient, between the two nearest tables, logarithmically.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import actcodec
import numpy as np
import torch
from actcodec.codecs.acgc.steered_codec import positive
from actcodec.codecs.compressed import Packed
from actcodec.policies.bounds import steered
from actcodec.policies.bounds.steered import SteeredPolicy
from actcodec.policies.policy import CODED_DTYPES, CodecSpec, Policy, Rule
from actcodec.policies.tables.rules import first_rules
from actcodec.study import experiment
from actcodec.study.data import Dataset, load
from actcodec.study.diagnosis import Passes, norm_of
from actcodec.study.gradient_similarity import likeness
from actcodec.training import policy
from cdu_spec.sfpr import VALUE_MAX
from cdu_tools.report import Table
from torch import Tensor, nn

NETWORKS = ("resnet", "vgg", "wide-resnet")
#: e^2, and whether bounds are those for independent errors: the paper's bounds first.
BOUNDS = ((0.5, False), (4.0, False), (32.0, False), *((2.0**-power, True) for power in (14, 11, 8, 5)))
FIXED = tuple(f"uniform-{step}" for step in (8, 16, 32, 64))
_WIDTH, _BATCH, _IMAGES, _RATE = 8, 32, 2048, 0.05
_STEPS, _INTERVAL = 60, 10
_LEARNING, _TRIED = 6, 4
#: Beyond these parts of the values nothing is left to be steered.
_EVERYTHING = 0.9


@dataclass(frozen=True)
class Kept:
    """One tensor in one step."""

    used: float  #: error over allowed error
    reachable: bool
    setting: str


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--parts", default="held,equal")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    images, names = load("cifar10", limit=_IMAGES), arguments.networks.split(",")
    if "held" in arguments.parts:
        header = [
            "network",
            "policy",
            "tensors and steps",
            "5 %",
            "median",
            "95 %",
            "within 5 %",
            "out of reach",
            "settings",
            "ratio",
        ]
        print(Table(header, [row for name in names for row in held(name, images)]).markdown(), "\n", flush=True)
    if "equal" in arguments.parts:
        header = ["network", "policy", "error of the gradient", "cosine", "worst layer", "ratio", "same error"]
        print(Table(header, [row for name in names for row in rows(name, equal(name, images))]).markdown())


def trained(name: str, images: Dataset, steps: int, chosen: Policy) -> tuple[nn.Module, list[float]]:
    """A network after so many steps with a policy, and their ratios."""
    model = experiment.initial_model(experiment.Recipe.usual(name, width=_WIDTH), images, 0).train()
    optimizer, ratios = torch.optim.SGD(model.parameters(), _RATE, momentum=0.9), []
    for step in range(steps):
        optimizer.zero_grad()
        with actcodec.compress_activations(model, chosen) as statistics:
            loss = loss_of(model, images, step)
        torch.autograd.backward(loss)
        optimizer.step()
        ratios.append(statistics.ratio)
    return model, ratios


def loss_of(model: nn.Module, images: Dataset, number: int) -> Tensor:
    """Return the loss of one batch."""
    first = number * _BATCH % len(images.train_inputs)
    return experiment.loss_of(
        model(images.train_inputs[first : first + _BATCH]), images.train_targets[first : first + _BATCH], images
    )


def held(name: str, images: Dataset) -> list[list[str]]:
    """A row for each e^2."""
    found = []
    for growth, independent in BOUNDS:
        chosen = steering(growth, independent, interval=_INTERVAL)
        kept: list[Kept] = []
        with mock.patch.object(steered._SteeredSlotCodec, "compress", recording(kept)):
            _, ratios = trained(name, images, _STEPS, chosen)
        used = np.array([one.used for one in kept if one.reachable])
        quantiles = [f"{quantile:.3f}" for quantile in np.quantile(used, (0.05, 0.5, 0.95))]
        near, reach = float(np.mean(abs(used - 1) <= 0.05)), 1 - len(used) / len(kept)
        settings = len({one.setting for one in kept})
        found.append(
            [
                name,
                title(growth, independent),
                str(len(used)),
                *quantiles,
                f"{near:.0%}",
                f"{reach:.0%}",
                str(settings),
                f"{np.mean(ratios[_INTERVAL:]):.2f}",
            ]
        )
    return found


def recording(kept: list[Kept]) -> Any:
    """Return a replacement of the method that compresses, which also records the error."""
    own = steered._SteeredSlotCodec.compress

    def compress(self: steered._SteeredSlotCodec, x: Tensor) -> Packed:
        allowed, largest, slot = self.slot.allowed(self._variance_growth), self.slot.largest, self.slot
        packed = own(self, x)
        if allowed is not None and largest is not None and slot.complete and slot.used is not None:
            bounds = len(allowed)
            axes = [axis for axis in range(x.ndim) if axis != 1 or bounds == 1]
            error, values = ((part.double().square().mean(axes)).sqrt().view(-1) for part in (self.decompress(packed) - x, x))
            eight = positive(largest) / VALUE_MAX / math.sqrt(12)
            eight = eight if bounds > 1 else eight.square().mean().sqrt()
            reachable = bool((allowed > eight).all() & (allowed < _EVERYTHING * values).all())
            kept.append(Kept(float((error / allowed).square().mean().sqrt()), reachable, slot.setting))
        return packed

    return compress


def steering(growth: float, independent: bool = False, interval: int = 1) -> SteeredPolicy:
    """The policy."""
    chosen = policy("autoshift", variance_growth=growth, independent=independent, interval=interval, backend="native")
    assert isinstance(chosen, SteeredPolicy), "it is steered"
    return chosen


def fixed(table: str) -> Policy:
    """One table for all maps, scales from the channels' own maxima, the same rules otherwise."""
    dense = CodecSpec("jpeg-gmc", {"dqt": table, "S": 1.0, "backend": "native"})
    others = CodecSpec("sfpr+zvc", {"S": 1.0, "backend": "native"})
    rules = (*first_rules({}), Rule(dense, dtypes=CODED_DTYPES), Rule(others, dtypes=CODED_DTYPES))
    return Policy(rules, keep_signs=True)


@dataclass(frozen=True)
class Point:
    """A policy on one network."""

    policy: str
    error: float  #: relative error of the whole gradient
    cosine: float
    worst: float  #: relative error of the layer that has the largest
    ratio: float


def equal(name: str, images: Dataset) -> list[Point]:
    """Fixed tables and steered ones."""
    model, _ = trained(name, images, _STEPS, policy("none"))
    found = [point(f"{table}", model, images, fixed(table)) for table in FIXED]
    return [*found, *(point(title(*bound), model, images, steering(*bound)) for bound in BOUNDS)]


def title(growth: float, independent: bool) -> str:
    """Return the title of a row."""
    return f"autoshift, e^2 = {growth:.2g}{', independent' if independent else ''}"


def point(title: str, model: nn.Module, images: Dataset, chosen: Policy) -> Point:
    """Return mean squares over some batches; a policy that learns does so on other batches first."""
    if isinstance(chosen, SteeredPolicy):
        for number in range(_STEPS, _STEPS + _LEARNING):
            batch(model, images, number).gradient(chosen)
    errors, cosines, worst, ratios = [], [], [], []
    for number in range(_STEPS + _LEARNING, _STEPS + _LEARNING + _TRIED):
        passes = batch(model, images, number)
        exact = passes.gradient()
        gradient, statistics = passes.outcome(chosen)
        assert statistics is not None, "the step was compressed"
        errors.append(relative(exact, gradient))
        cosines.append(likeness(exact, gradient, passes.layers).cosine)
        worst.append(max(relative([one], [other]) for one, other in zip(exact, gradient, strict=True) if matrix(one)))
        ratios.append(statistics.ratio)
    return Point(title, root_mean_square(errors), float(np.mean(cosines)), root_mean_square(worst), float(np.mean(ratios)))


def batch(model: nn.Module, images: Dataset, number: int) -> Passes:
    """One of them."""
    return Passes(model, lambda: loss_of(model, images, number))


def matrix(gradient: Tensor | None) -> bool:
    """Return whether a gradient is that of a layer's weights, which AC-GC bounds."""
    return gradient is not None and gradient.ndim > 1


def relative(exact: Sequence[Tensor | None], other: Sequence[Tensor | None]) -> float:
    """Return the norm of the difference over the norm."""
    pairs = [(one, two) for one, two in zip(exact, other, strict=True) if one is not None and two is not None]
    return norm_of([one.double() - two.double() for one, two in pairs]) / norm_of(exact)


def root_mean_square(numbers: Sequence[float]) -> float:
    """Return the root mean square of some numbers."""
    return math.hypot(*numbers) / math.sqrt(len(numbers))


def rows(name: str, points: Sequence[Point]) -> list[list[str]]:
    """Return the rows of a network."""
    curve = sorted((one for one in points if one.policy in FIXED), key=lambda one: one.error)
    return [
        [name, one.policy, f"{one.error:.4f}", f"{one.cosine:.4f}", f"{one.worst:.3f}", f"{one.ratio:.2f}", gain(one, curve)]
        for one in points
    ]


def gain(one: Point, curve: Sequence[Point]) -> str:
    """Ratio over that of fixed tables with the same error; empty beyond their ends."""
    if one in curve or not curve[0].error <= one.error <= curve[-1].error:
        return ""
    errors, ratios = ([math.log(getattr(other, what)) for other in curve] for what in ("error", "ratio"))
    return f"{one.ratio / math.exp(float(np.interp(math.log(one.error), errors, ratios))):.2f}"


if __name__ == "__main__":
    main()

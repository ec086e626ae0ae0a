"""Train one network with several codecs from the same start and in the same order, and summarise the runs."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch
from cdu_tools.distinct import check_distinct
from cdu_tools.errors import UserError
from torch import Tensor, nn
from torch.nn import functional

from actcodec.policies.catalog import policy, policy_options
from actcodec.policies.policy import Policy
from actcodec.saved.statistics import Statistics
from actcodec.study.data import Dataset
from actcodec.study.networks import NETWORKS, Network
from actcodec.training.activation_compression import compress_activations

BASELINE = "none"
#: Default numbers of steps of one run, and of epochs.
MAX_STEPS = 1_000_000_000


@dataclass(frozen=True)
class Recipe:
    """Schedule of a training with the network's optimizer (:mod:`actcodec.study.networks`) and a cosine learning rate.

    ``epochs`` passes over the training images, or exactly ``steps`` steps if given. Incomplete batches are left out.
    UserError for invalid values.
    """

    model: str = "resnet"
    width: int = 16
    depth: int = 1
    epochs: int = 5
    steps: int | None = None
    batch: int = 64
    learning_rate: float = 0.1

    def __post_init__(self) -> None:
        least_depth = network(self.model).least_depth
        allowed = {"width": (1, 4096), "depth": (least_depth, 1000), "epochs": (1, MAX_STEPS), "batch": (1, MAX_STEPS)}
        for name, (least, most) in allowed.items():
            if not least <= getattr(self, name) <= most:
                raise UserError(f"{name} = {getattr(self, name)} is not allowed for {self.model}: use {least} to {most}")
        if self.steps is not None and not 1 <= self.steps <= MAX_STEPS:
            raise UserError(f"steps = {self.steps} is not allowed: use 1 to {MAX_STEPS}")
        if not 0 < self.learning_rate < 10:
            raise UserError(f"learning rate {self.learning_rate:g} is not allowed: use a number above 0 and below 10")

    @classmethod
    def usual(cls, model: str, **given: Any) -> Recipe:
        """Return the recipe of a network with the given values that are not None."""
        kind = network(model)
        usual = {name: getattr(kind, name) for name in ("width", "depth", "epochs", "learning_rate")}
        return cls(model, **(usual | {name: value for name, value in given.items() if value is not None}))


def network(model: str) -> Network:
    """Return a reference network by name; UserError if there is none of that name."""
    if model not in NETWORKS:
        raise UserError(f"unknown model {model!r}: use {', '.join(NETWORKS)}")
    return NETWORKS[model]


@dataclass
class Run:
    """One training run; :meth:`to_dict` is its entry in results.json."""

    codec: str
    seed: int
    score_name: str
    losses: list[float] = field(default_factory=list)
    scores: list[tuple[int, float]] = field(default_factory=list)  #: (steps done, score on the test images)
    bytes_original: int = 0  #: sum over all steps
    bytes_compressed: int = 0
    everything_original: int = 0  #: sum over all saved tensors except weights and buffers
    everything_compressed: int = 0
    not_counted: Counter[str] = field(default_factory=Counter)  #: kept bytes of other tensors, by kind
    seconds_per_step: float = 0.0  #: median, forward, backward and update
    tensors: list[dict[str, Any]] = field(default_factory=list)

    @property
    def score(self) -> float:
        """Return the score on the test images at the end."""
        return self.scores[-1][1]

    @property
    def ratio(self) -> float:
        """Return the ratio of bytes that autograd would have kept to bytes kept, over all steps."""
        return self.bytes_original / self.bytes_compressed

    @property
    def ratio_of_everything(self) -> float:
        """Return the same ratio for all saved tensors except weights and buffers."""
        return self.everything_original / self.everything_compressed

    def to_dict(self, backend: str) -> dict[str, Any]:
        """Plain values."""
        keys = ("name", "op", "shape", "codec", "ratio", "relative_error")
        return {
            "codec": self.codec,
            "backend": backend,
            "seed": self.seed,
            "score": self.score,
            "score_name": self.score_name,
            "losses": self.losses,
            "scores": [list(point) for point in self.scores],
            "ratio": self.ratio,
            "ratio_of_everything": self.ratio_of_everything,
            "bytes_compressed": self.bytes_compressed,
            "bytes_original": self.bytes_original,
            "not_counted": dict(self.not_counted.most_common()),
            "seconds_per_step": self.seconds_per_step,
            "tensors": [{key: row[key] for key in keys} for row in self.tensors],
        }


def build_model(recipe: Recipe, dataset: Dataset) -> nn.Module:
    """Return the network of a recipe for a data set; UserError if they do not fit each other."""
    kind = network(recipe.model)
    if kind.classifies != bool(dataset.classes):
        does, has = ("classifies", "super-resolution") if kind.classifies else ("is for super-resolution", "classification")
        fitting = ", ".join(name for name, other in NETWORKS.items() if other.classifies == bool(dataset.classes))
        raise UserError(f"model {recipe.model} {does}, but {dataset.name} is for {has}: use {fitting}")
    return kind.build(dataset, recipe.width, recipe.depth)


def initial_model(recipe: Recipe, dataset: Dataset, seed: int) -> nn.Module:
    """Return the network with the first weights of runs of a seed, on the device of the data."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build_model(recipe, dataset).to(dataset.train_inputs.device)


def codec_policies(names: Sequence[str], **options: Any) -> dict[str, Policy]:
    """Return the policies of some codecs, the baseline ``none`` first; each takes those options that it knows.

    UserError for an unknown codec, one that is named twice, and for an option that none of the codecs has.
    """
    check_distinct("codec", names)
    wanted = dict.fromkeys((BASELINE, *names))
    known = {name: policy_options(name) for name in wanted}
    for option in options:
        if not any(option in allowed for allowed in known.values()):
            raise UserError(f"none of the codecs {', '.join(wanted)} has an option {option}")
    return {name: policy(name, **{key: value for key, value in options.items() if key in known[name]}) for name in wanted}


def train(
    recipe: Recipe,
    dataset: Dataset,
    codec: str,
    codec_policy: Policy,
    seed: int,
    on_step: Callable[[], None] = lambda: None,
    model: nn.Module | None = None,
) -> Run:
    """Train once. Runs of the same seed have the same first weights, batches and (on the CPU) dropped values.

    ``model`` is trained in place of one of :func:`initial_model`, for callers that continue with it.

    Error per tensor is measured in the first step of every epoch; that step does not count in the time.
    """
    model = initial_model(recipe, dataset, seed) if model is None else model
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        run = Run(codec, seed, "accuracy" if dataset.classes else "psnr")
        return _train(model, recipe, dataset, run, codec_policy, on_step)


def _train(
    model: nn.Module, recipe: Recipe, dataset: Dataset, run: Run, codec_policy: Policy, on_step: Callable[[], None]
) -> Run:
    device, seed = dataset.train_inputs.device, run.seed
    order = torch.Generator().manual_seed(seed)
    kind = network(recipe.model)
    optimizer = kind.optimizer(model, recipe.learning_rate)
    batches = steps_per_epoch(recipe, dataset)
    total = total_steps(recipe, dataset)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)
    codec_policy.restart(seed)
    times: list[float] = []
    measured = Statistics()
    for step in range(total):
        place = step % batches
        if place == 0:
            codec_policy.set_epoch(step // batches)
            shuffled = torch.randperm(len(dataset.train_inputs), generator=order)
            model.train()
        chosen = shuffled[place * recipe.batch : (place + 1) * recipe.batch].to(device)
        inputs, targets = dataset.train_inputs[chosen], dataset.train_targets[chosen]
        codec_policy.set_samples(chosen)
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with compress_activations(model, codec_policy, measure_error=place == 0) as statistics:
            loss = loss_of(model(inputs), targets, dataset)
        torch.autograd.backward(loss)
        if kind.gradient_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), kind.gradient_norm)
        optimizer.step()
        schedule.step()
        run.losses.append(float(loss.detach()))
        if place:
            times.append(time.perf_counter() - start)
        else:
            measured.records += statistics.records
        run.bytes_original += statistics.bytes_original
        run.bytes_compressed += statistics.bytes_compressed
        original, kept = statistics.bytes_of_everything
        run.everything_original += original
        run.everything_compressed += kept
        run.not_counted.update(statistics.not_counted)
        if place == batches - 1 or step == total - 1:
            run.scores.append((step + 1, score(model, dataset)))
        on_step()
    run.seconds_per_step = median(times) if times else 0.0
    run.tensors = measured.tensors
    return run


def steps_per_epoch(recipe: Recipe, dataset: Dataset) -> int:
    """Return the number of whole batches in the training images; UserError if there is none."""
    batches = len(dataset.train_inputs) // recipe.batch
    if not batches:
        raise UserError(f"a batch of {recipe.batch} is more than the {len(dataset.train_inputs)} training images")
    return batches


def total_steps(recipe: Recipe, dataset: Dataset) -> int:
    """Return the number of steps of one run."""
    return recipe.steps if recipe.steps is not None else recipe.epochs * steps_per_epoch(recipe, dataset)


def score(model: nn.Module, dataset: Dataset) -> float:
    """Return accuracy in percent on the test images, or the PSNR in dB of the mean square error of all pixels.

    Restored images are limited to 0..1. The PSNR is not averaged over crops, because empty crops would dominate the mean.
    """
    model.eval()
    total = 0.0
    with torch.no_grad():
        for start in range(0, len(dataset.test_inputs), 256):
            inputs, targets = dataset.test_inputs[start : start + 256], dataset.test_targets[start : start + 256]
            outputs = model(inputs)
            if dataset.classes:
                total += float((outputs.argmax(1) == targets).double().sum())
            else:
                total += float((outputs.clamp(0, 1) - targets).double().square().sum())
    model.train()
    mean = total / dataset.test_targets.numel()
    return 100 * mean if dataset.classes else -10 * math.log10(mean)


def loss_of(outputs: Tensor, targets: Tensor, dataset: Dataset) -> Tensor:
    """Return the cross-entropy, or the mean squared error for super-resolution."""
    return functional.cross_entropy(outputs, targets) if dataset.classes else functional.mse_loss(outputs, targets)


@dataclass(frozen=True)
class Summary:
    """The runs of one codec over all seeds; ``difference`` is to the uncompressed run of the same seed."""

    codec: str
    score: float
    score_deviation: float
    difference: float
    difference_deviation: float
    ratio: float  #: ratio over activations
    ratio_of_everything: float
    bytes_original: float  #: per step
    bytes_compressed: float
    seconds_per_step: float
    loss: float  #: mean over the last tenth of the steps


def summarise(runs: Sequence[Run]) -> list[Summary]:
    """Return one summary per codec, in the order of the runs. Needs a run of ``none`` for every seed."""
    base = {run.seed: run.score for run in runs if run.codec == BASELINE}
    summaries = []
    for codec in dict.fromkeys(run.codec for run in runs):
        mine = [run for run in runs if run.codec == codec]
        steps = sum(len(run.losses) for run in mine)
        tail = max(1, len(mine[0].losses) // 10)
        original, kept = sum(run.bytes_original for run in mine), sum(run.bytes_compressed for run in mine)
        mean, deviation = _spread([run.score for run in mine])
        difference, difference_deviation = _spread([run.score - base[run.seed] for run in mine])
        summaries.append(
            Summary(
                codec,
                mean,
                deviation,
                difference,
                difference_deviation,
                original / kept,
                sum(run.everything_original for run in mine) / sum(run.everything_compressed for run in mine),
                original / steps,
                kept / steps,
                median(run.seconds_per_step for run in mine),
                sum(sum(run.losses[-tail:]) / tail for run in mine) / len(mine),
            )
        )
    return summaries


def _spread(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard deviation (of the sample; 0 for a single value)."""
    mean = sum(values) / len(values)
    if len(values) == 1:
        return mean, 0.0
    return mean, math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))

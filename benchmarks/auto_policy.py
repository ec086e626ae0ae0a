"""Policy ``auto``: how good its estimate of gradient errors is, and what training with it costs in accuracy.

    python benchmarks/auto_policy.py --seeds 3

Prints three markdown tables, progress goes to stderr. Network and training are those of ``cdu train`` (ResNet of width 8 on
the digits, 6 epochs). The first table compares, tensor by tensor and candidate by candidate, the estimate of ``auto`` with the
exact gradient error that ``actcodec.study.diagnose`` finds with that candidate for that tensor alone, on a network trained
for three epochs. The second is the score of ``auto`` beside the policies of the papers, the third what ``auto`` chose at 16,
calibrated.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from statistics import median
from typing import Any

import torch
from actcodec import codecs
from actcodec.codecs import Codec
from actcodec.policies.auto.candidates import CANDIDATES
from actcodec.policies.auto.policy import AutoPolicy, ItemKey, item_key
from actcodec.policies.catalog import policy as policy_of
from actcodec.policies.policy import CODED_DTYPES, CodecSpec, Policy, Rule
from actcodec.policies.tables.rules import first_rules
from actcodec.study import data, experiment
from actcodec.study.calibration import calibrate
from actcodec.study.diagnosis import diagnose
from actcodec.training.activation_compression import compress_activations
from scipy.stats import spearmanr
from torch import Tensor, nn
from torch.nn import functional

RECIPE = experiment.Recipe(model="resnet", width=8, depth=1, epochs=6)
RATIOS = (16, 12, 20, 8)
TABLES = tuple(CodecSpec("jpeg-act", {"dqt": table}) for table in ("optL", "optH", "image50", "image20", "image10", "image5"))
#: (name in the table, policy, options)
OTHERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("jpeg-act", "jpeg-act", {}),
    ("actnn-L3, 2 bits", "actnn-L3", {"bits": 2}),
    ("division-channel, 2 bits", "division-channel", {"bits": 2}),
)
WARM_UP_STEPS, BATCHES = 66, 3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="runs of each policy")
    seeds = parser.parse_args().seeds
    torch.set_num_threads(1)
    images = data.load("digits")
    print(correlations(images), flush=True)
    print(trainings(images, seeds), flush=True)


def correlations(images: data.Dataset) -> str:
    """The first table."""
    pairs = estimates_and_exact(images, (*CANDIDATES, *TABLES))
    lines = ["| candidates | pairs | rank correlation | median of estimate / exact |", "|---|---|---|---|"]
    exact_codecs = ("bypass",)
    groups = {
        "of policy auto": [spec for spec in CANDIDATES if spec.name not in exact_codecs],
        **{
            name: [spec for spec in (*CANDIDATES, *TABLES) if spec.name == name]
            for name in ("actnn-sample", "sparse-sample", "division", "autoquantz", "jpeg-act")
        },
    }
    for name, specs in groups.items():
        found = [pair for spec in specs for pair in pairs[repr(spec)]]
        rank = spearmanr(*zip(*found, strict=True)).statistic
        ratio = median(estimate / exact for estimate, exact in found)
        lines.append(f"| {name} | {len(found)} | {rank:.3f} | {ratio:.2f} |")
    return "\n".join(lines) + "\n"


def estimates_and_exact(images: data.Dataset, specs: Sequence[CodecSpec]) -> dict[str, list[tuple[float, float]]]:
    """(estimated, exact) gradient errors of all tensors and batches by candidate."""
    torch.manual_seed(0)
    model = experiment.build_model(RECIPE, images)
    optimizer = torch.optim.SGD(model.parameters(), RECIPE.learning_rate / 2, momentum=0.9)
    order = torch.Generator().manual_seed(0)

    def batch() -> tuple[Tensor, Tensor]:
        chosen = torch.randperm(len(images.train_inputs), generator=order)[: RECIPE.batch]
        return images.train_inputs[chosen], images.train_targets[chosen]

    for _ in range(WARM_UP_STEPS):
        inputs, targets = batch()
        optimizer.zero_grad()
        torch.autograd.backward(functional.cross_entropy(model(inputs), targets))
        optimizer.step()
    found: dict[str, list[tuple[float, float]]] = {repr(spec): [] for spec in specs}
    for number in range(BATCHES):
        inputs, targets = batch()
        estimated = estimates_of(model, inputs, targets, specs)
        for spec in specs:
            report(f"batch {number}, {spec}")
            alone = diagnose(model, lambda: functional.cross_entropy(model(inputs), targets), everywhere(spec))  # noqa: B023
            for row in alone.tensors:
                estimate = estimated.get(item_key(row.seen), {}).get(repr(spec))
                if estimate is not None and row.codec == spec.name:
                    found[repr(spec)].append((estimate, row.gradient_error))
    return found


def estimates_of(
    model: nn.Module, inputs: Tensor, targets: Tensor, specs: Sequence[CodecSpec]
) -> dict[ItemKey, dict[str, float]]:
    """Return the estimates of ``auto`` for each tensor by candidate, from one step that leaves the weights unchanged."""
    auto = AutoPolicy(candidates=specs, interval=1)
    for _ in range(2):  # it decides when the next step begins
        model.zero_grad()
        with compress_activations(model, auto):
            loss = functional.cross_entropy(model(inputs), targets)
        torch.autograd.backward(loss)
    return {key: {repr(one.codec): one.gradient_error for one in candidates} for key, candidates in auto.estimates.items()}


def everywhere(spec: CodecSpec) -> Policy:
    """One codec wherever ``auto`` decides, and 8 bits where it does not fit."""
    codec: Codec = codecs.codec(spec.name, **spec.options)
    return Policy((*first_rules({}), Rule(codec, dtypes=CODED_DTYPES), Rule("sfpr", dtypes=CODED_DTYPES)), keep_signs=True)


class CalibratedAuto(AutoPolicy):
    """Policy ``auto`` that is calibrated on the first batch of every epoch."""

    def attach(self, model: nn.Module, images: data.Dataset) -> None:
        """The network that it is to serve next, and its data."""
        self._model, self._images = model, images

    def set_epoch(self, epoch: int) -> None:
        """Implement ``Policy``."""
        super().set_epoch(epoch)
        self._due = True

    def set_samples(self, samples: Tensor | None) -> None:
        """Implement ``Policy``."""
        if self._due and samples is not None:
            inputs, targets = self._images.train_inputs[samples], self._images.train_targets[samples]
            calibrate(self, self._model, lambda: functional.cross_entropy(self._model(inputs), targets))
        self._due = False


def trainings(images: data.Dataset, seeds: int) -> str:
    """The second and the third table."""
    policies: dict[str, Policy] = {"none": policy_of("none")}
    policies |= {f"auto, ratio {ratio}": AutoPolicy(ratio=ratio) for ratio in RATIOS}
    policies |= {name: policy_of(which, **options) for name, which, options in OTHERS}
    policies |= {f"auto, ratio {ratio}, calibrated": CalibratedAuto(ratio=ratio) for ratio in RATIOS}
    policies["auto, ratio 16, jpeg-act too"] = AutoPolicy(ratio=16, candidates=(*CANDIDATES, *TABLES))
    runs = []
    for name, policy in policies.items():
        for seed in range(seeds):
            model = experiment.initial_model(RECIPE, images, seed)
            if isinstance(policy, CalibratedAuto):
                policy.attach(model, images)
            run = experiment.train(RECIPE, images, name, policy, seed, model=model)
            report(
                f"{name}, seed {seed}: accuracy {run.score:.2f}, ratio {run.ratio:.2f}, loss {sum(run.losses[-13:]) / 13:.3f}"
            )
            runs.append(run)
    lines = [
        f"| policy | accuracy (%), {seeds} seeds | difference to none | ratio | loss at the end |",
        "|---|---|---|---|---|",
    ]
    for row in experiment.summarise(runs):
        difference = "" if row.codec == "none" else f"{row.difference:+.2f} ± {row.difference_deviation:.2f}"
        lines.append(
            f"| {row.codec} | {row.score:.2f} ± {row.score_deviation:.2f} | {difference} | {row.ratio:.2f} | {row.loss:.3f} |"
        )
    lines += ["", "| module | made by | codec | relative error | estimated gradient error |", "|---|---|---|---|---|"]
    chosen = policies["auto, ratio 16, calibrated"]
    assert isinstance(chosen, AutoPolicy)
    for (module, producer, _, _), one in chosen.choices.items():
        options = " ".join(f"{name}={value}" for name, value in one.codec.options.items())
        name = f"{one.codec.name} {options}".strip()
        lines.append(f"| {module} | {producer} | {name} | {one.relative_error:.3f} | {one.gradient_error:.4f} |")
    return "\n".join(lines)


def report(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

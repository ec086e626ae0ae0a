"""Policy ``auto``: how good its estimate of gradient errors is, and what training with it costs in accuracy.

    python benchmarks/auto_policy.py --seeds 3

Prints three markdown tables, progress goes to stderr. Network and training are those of ``cdu train`` (ResNet of width 8 on
the digits, 6 epochs). The first table compares, tensor by tensor and candidate by candidate, the estimate of ``auto`` with the
exact gradient error that ``actcodec.training.diagnose`` finds with that candidate for that tensor alone, on a network trained
for three epochs. The second is the score of ``auto`` beside the policies of the papers, the third what ``auto`` chose at 16.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from statistics import median

import torch
from actcodec import codecs, data
from actcodec.codecs import Codec
from actcodec.training import experiment
from actcodec.training.auto import AutoPolicy, ItemKey, item_key
from actcodec.training.calibration import calibrate
from actcodec.training.candidates import CANDIDATES
from actcodec.training.catalog import policy as policy_of
from actcodec.training.diagnosis import diagnose
from actcodec.training.hooks import compress_activations
from actcodec.training.policy import CODED_DTYPES, CodecSpec, Policy, Rule, first_rules
from scipy.stats import spearmanr
from torch import Tensor, nn
from torch.nn import functional

RECIPE = experiment.Recipe(model="resnet", width=8, depth=1, epochs=6)
RATIOS = (16, 12, 20, 8)
TABLES = tuple(CodecSpec("jpeg-act", {"dqt": table}) for table in ("optL", "optH", "image50", "image20", "image10", "image5"))
#: (name in the table, policy, options)
OTHERS = (
    ("jpeg-act", "jpeg-act", {}),
    ("actnn-L3, 2 bits", "actnn-L3", {"bits": 2}),
    ("division, 2 bits", "division", {"bits": 2}),
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
    found_by_candidate = estimates_and_exact(images, (*CANDIDATES, *TABLES))
    lines = [
        "| candidates | pairs | rank correlation | median of estimate / exact | rank correlation, calibrated | median, calibrated |",
        "|---|---|---|---|---|---|",
    ]
    exact_codecs = ("bypass",)
    groups = {
        "of policy auto": [spec for spec in CANDIDATES if spec.name not in exact_codecs],
        **{
            name: [spec for spec in (*CANDIDATES, *TABLES) if spec.name == name]
            for name in ("actnn-sample", "sparse-sample", "division", "autoquantz", "jpeg-act")
        },
    }
    for name, specs in groups.items():
        found = [one for spec in specs for one in found_by_candidate[repr(spec)]]
        cells = []
        for estimates in ([one[0] for one in found], [one[1] for one in found]):
            exact = [one[2] for one in found]
            ratios = [estimate / error for estimate, error in zip(estimates, exact, strict=True)]
            cells += [f"{spearmanr(estimates, exact).statistic:.3f}", f"{median(ratios):.2f}"]
        lines.append(f"| {name} | {len(found)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def estimates_and_exact(images: data.Dataset, specs: Sequence[CodecSpec]) -> dict[str, list[tuple[float, float, float]]]:
    """(estimated, estimated and calibrated, exact) gradient errors of all tensors and batches by candidate.

    The factors of calibration are those of the batch before.
    """
    torch.manual_seed(0)
    model = experiment.build_model(RECIPE, images)
    optimizer = torch.optim.SGD(model.parameters(), RECIPE.learning_rate / 2, momentum=RECIPE.momentum)
    order = torch.Generator().manual_seed(0)

    def batch() -> tuple[Tensor, Tensor]:
        chosen = torch.randperm(len(images.train_inputs), generator=order)[: RECIPE.batch]
        return images.train_inputs[chosen], images.train_targets[chosen]

    for _ in range(WARM_UP_STEPS):
        inputs, targets = batch()
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    found: dict[str, list[tuple[float, float, float]]] = {repr(spec): [] for spec in specs}
    inputs, targets = batch()
    for number in range(BATCHES):
        factors = calibrate(AutoPolicy(), model, lambda: functional.cross_entropy(model(inputs), targets))  # noqa: B023
        inputs, targets = batch()
        estimated = estimates_of(model, inputs, targets, specs)
        for spec in specs:
            report(f"batch {number}, {spec}")
            alone = diagnose(model, lambda: functional.cross_entropy(model(inputs), targets), everywhere(spec))  # noqa: B023
            for row in alone.tensors:
                key = item_key(row.seen)
                estimate = estimated.get(key, {}).get(repr(spec))
                if estimate is not None and row.codec == spec.name:
                    found[repr(spec)].append((estimate, factors[key] * estimate, row.gradient_error))
    return found


def estimates_of(
    model: nn.Module, inputs: Tensor, targets: Tensor, specs: Sequence[CodecSpec]
) -> dict[ItemKey, dict[str, float]]:
    """What ``auto`` estimates for each tensor by candidate, from one step that leaves the weights alone."""
    auto = AutoPolicy(candidates=specs, interval=1)
    for _ in range(2):  # it decides when the next step begins
        model.zero_grad()
        with compress_activations(model, auto):
            loss = functional.cross_entropy(model(inputs), targets)
        loss.backward()
    return {key: {repr(one.codec): one.gradient_error for one in candidates} for key, candidates in auto.estimates.items()}


def everywhere(spec: CodecSpec) -> Policy:
    """One codec wherever ``auto`` decides, and 8 bits where it does not fit."""
    codec: Codec = codecs.codec(spec.name, **spec.options)
    return Policy((*first_rules({}), Rule(codec, dtypes=CODED_DTYPES), Rule("sfpr", dtypes=CODED_DTYPES)), keep_signs=True)


def trainings(images: data.Dataset, seeds: int) -> str:
    """The second and the third table."""
    policies: dict[str, Policy] = {"none": policy_of("none")}
    policies |= {f"auto, ratio {ratio}": AutoPolicy(ratio=ratio) for ratio in RATIOS}
    policies |= {name: policy_of(which, **options) for name, which, options in OTHERS}
    policies["auto, ratio 16, jpeg-act too"] = AutoPolicy(ratio=16, candidates=(*CANDIDATES, *TABLES))
    runs = []
    for name, policy in policies.items():
        for seed in range(seeds):
            run = experiment.train(RECIPE, images, name, policy, seed)
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
    chosen = policies["auto, ratio 16"]
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

"""Train one network with policies that differ in their options, from the same start and in the same order, and compare.

    python benchmarks/compare_policies.py division-float division-float:parts=low blpa:bits=8 blpa:bits=4
    python benchmarks/compare_policies.py --set division
    python benchmarks/compare_policies.py jpeg-gmc:backend=native blpa-coded:bits=3.5 --gradients

A policy is a name that ``cdu train --codec`` knows, with options after a colon and commas between; --set names the comparisons
of docs/methods/division.md and docs/methods/blpa.md. Prints a markdown table: score on the test images at the end, difference
to training without compression, seed by seed, and ratio of all saved activations; with --gradients also the error of one
gradient of the network that was trained without compression, ||g - g'|| / ||g|| over all parameters, mean over the seeds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from actcodec.study import experiment
from actcodec.study.data import Dataset, load
from actcodec.study.diagnosis import Passes
from actcodec.training import Policy, policy
from torch import Tensor, nn

#: Images of which gradients are compared.
_BATCH = 64
#: Named comparisons.
SETS: dict[str, tuple[str, ...]] = {
    "division": (
        "division-float",
        *(f"division-float:parts={part}" for part in ("low", "high", "plain")),
        *(f"division-float:block={block}" for block in (12, 18)),
        *(f"division-float:bits={bits}" for bits in (4, 8)),
        "division",
        "division-channel",
        "actnn-L2:bits=2",
    ),
    "blpa": ("blpa:bits=8", "blpa:bits=4", "blpa:bits=2", "sfpr", "division-float:bits=4", "actnn-L2:bits=4"),
    "blpa-coded": tuple(f"blpa-coded:bits={bits:g}" for bits in (4.5, 4, 3.5, 3, 2.5)),
}


def policy_of(text: str) -> Policy:
    """The policy of ``name:option=value,option=value``; numbers where a value reads as one."""
    name, _, rest = text.partition(":")
    options: dict[str, Any] = {}
    for pair in filter(None, rest.split(",")):
        option, _, value = pair.partition("=")
        options[option] = int(value) if value.isdigit() else float(value) if value.replace(".", "", 1).isdigit() else value
    return policy(name, **options)


def gradient_errors(model: nn.Module, images: Dataset, policies: Mapping[str, Policy]) -> dict[str, float]:
    """Relative error of the gradient of one batch by policy."""
    inputs, targets = images.train_inputs[:_BATCH], images.train_targets[:_BATCH]
    passes = Passes(model.train(), lambda: experiment.loss_of(model(inputs), targets, images))

    def gradient(chosen: Policy | None) -> Tensor:
        return torch.cat([one.double().flatten() for one in passes.gradient(chosen) if one is not None])

    exact = gradient(None)
    return {name: float((gradient(chosen) - exact).norm() / exact.norm()) for name, chosen in policies.items()}


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policies", nargs="*", help="name:option=value,...")
    parser.add_argument("--set", choices=SETS, default=None, help="a named comparison")
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--gradients", action="store_true", help="measure errors of a gradient too")
    arguments = parser.parse_args()
    names = [*SETS.get(arguments.set, ()), *arguments.policies]
    if not names:
        parser.error("give policies, or --set")
    torch.set_num_threads(1)
    images = load(arguments.dataset, arguments.data, arguments.limit)
    recipe = experiment.Recipe(width=arguments.width, depth=arguments.depth, epochs=arguments.epochs)
    policies = {"none": policy("none")} | {name: policy_of(name) for name in names}
    runs = []
    errors: dict[str, list[float]] = {name: [] for name in policies}
    for seed in range(arguments.seeds):
        for name, chosen in policies.items():
            model = experiment.initial_model(recipe, images, seed)
            runs.append(experiment.train(recipe, images, name, chosen, seed, model=model))
            print(f"seed {seed}, {name}: {runs[-1].score:.2f}, ratio {runs[-1].ratio:.2f}", file=sys.stderr, flush=True)
            if name == "none" and arguments.gradients:
                for policy_name, error in gradient_errors(model, images, policies).items():
                    errors[policy_name].append(error)
    unit = "accuracy (%)" if images.classes else "PSNR (dB)"
    more = arguments.gradients
    print(f"| policy | {unit} | difference to none | ratio |" + " error of the gradient |" * more)
    print("|---|---|---|---|" + "---|" * more)
    for row in experiment.summarise(runs):
        difference = "-" if row.codec == "none" else f"{row.difference:+.2f} ± {row.difference_deviation:.2f}"
        score = f"{row.score:.2f} ± {row.score_deviation:.2f}"
        last = f" {mean(errors[row.codec]):.4f} |" if more else ""
        print(f"| {row.codec} | {score} | {difference} | {row.ratio:.2f} |{last}")


if __name__ == "__main__":
    main()

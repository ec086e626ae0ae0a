"""Train one network with policies that differ in their options, from the same start and in the same order, and compare.

    python benchmarks/compare_policies.py division-float division-float:parts=low blpa:bits=8 blpa:bits=4
    python benchmarks/compare_policies.py --set division

A policy is a name that ``cdu train --codec`` knows, with options after a colon and commas between; --set names the comparisons
of docs/methods/division.md and docs/methods/blpa.md. Prints a markdown table: score on the test images at the end, difference
to training without compression, seed by seed, and ratio of all saved activations.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import torch
from actcodec.study import experiment
from actcodec.study.data import load
from actcodec.training import Policy, policy

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
    arguments = parser.parse_args()
    names = [*SETS.get(arguments.set, ()), *arguments.policies]
    if not names:
        parser.error("give policies, or --set")
    torch.set_num_threads(1)
    images = load(arguments.dataset, arguments.data, arguments.limit)
    recipe = experiment.Recipe(width=arguments.width, depth=arguments.depth, epochs=arguments.epochs)
    policies = {"none": policy("none")} | {name: policy_of(name) for name in names}
    runs = []
    for seed in range(arguments.seeds):
        for name, chosen in policies.items():
            runs.append(experiment.train(recipe, images, name, chosen, seed))
            print(f"seed {seed}, {name}: {runs[-1].score:.2f}, ratio {runs[-1].ratio:.2f}", file=sys.stderr, flush=True)
    unit = "accuracy (%)" if images.classes else "PSNR (dB)"
    print(f"| policy | {unit} | difference to none | ratio |")
    print("|---|---|---|---|")
    for row in experiment.summarise(runs):
        difference = "-" if row.codec == "none" else f"{row.difference:+.2f} ± {row.difference_deviation:.2f}"
        score = f"{row.score:.2f} ± {row.score_deviation:.2f}"
        print(f"| {row.codec} | {score} | {difference} | {row.ratio:.2f} |")


if __name__ == "__main__":
    main()

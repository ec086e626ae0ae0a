"""Measure the gradient error of quantisation tables, a finer measure than accuracy, which differs more by seed than table.

    python benchmarks/dqt_gradients.py --dataset digits --tables optL build/shiftL/table.json optH build/shiftH/table.json

Trains the small ResNet without compression; at the end of every epoch the gradients of some batches are taken exactly and with
the activations through each table. Prints a markdown table: bytes per value of the tensors that the codec takes (streams,
headers and scales included), and the error ||g - g'|| / ||g|| of all parameters' gradients together, mean and standard
deviation over the seeds.
"""

from __future__ import annotations

import argparse
from math import prod
from pathlib import Path
from statistics import mean, stdev

import torch
from actcodec.study import data
from actcodec.study.experiment import Recipe, build_model
from actcodec.training import Policy, compress_activations, policy
from torch import Tensor, nn
from torch.nn import functional


def gradient(model: nn.Module, inputs: Tensor, targets: Tensor, through: Policy) -> tuple[Tensor, float]:
    """Gradient of all parameters, float64 (n,), and bytes per value of the tensors that the policy's main codec takes."""
    model.zero_grad(set_to_none=True)
    with compress_activations(model, through) as statistics:
        loss = functional.cross_entropy(model(inputs), targets)
    torch.autograd.backward(loss)
    coded = [record for record in statistics.records if record.codec.startswith("jpeg")]
    values = sum(prod(record.shape) for record in coded)
    size = sum(record.bytes_compressed for record in coded) / values if values else 4.0
    return torch.cat([p.grad.double().flatten() for p in model.parameters() if p.grad is not None]), size


def measure(
    recipe: Recipe, images: data.Dataset, policies: dict[str, Policy], seed: int, batches: int
) -> dict[str, list[float]]:
    """Mean bytes per value and mean error of each policy in one training run."""
    torch.manual_seed(seed)
    model, exact = build_model(recipe, images), policy("none")
    optimizer = torch.optim.SGD(model.parameters(), recipe.learning_rate, momentum=0.9, weight_decay=5e-4)
    order = torch.Generator().manual_seed(seed)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in policies}
    for _ in range(recipe.epochs):
        pieces = torch.split(torch.randperm(len(images.train_inputs), generator=order), recipe.batch)
        for chosen in pieces[:-1]:
            gradient(model, images.train_inputs[chosen], images.train_targets[chosen], exact)
            optimizer.step()
        for chosen in pieces[:batches]:
            batch = images.train_inputs[chosen], images.train_targets[chosen]
            reference, _ = gradient(model, *batch, exact)
            for name, through in policies.items():
                other, size = gradient(model, *batch, through)
                found[name].append((size, float((other - reference).norm() / reference.norm())))
    return {name: [mean(column) for column in zip(*points, strict=True)] for name, points in found.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--codec", choices=("jpeg-act", "jpeg-base"), default="jpeg-act")
    parser.add_argument("--tables", nargs="+", default=["optL", "optH"])
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batches", type=int, default=4, help="batches per epoch of which gradients are compared")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    images = data.load(arguments.dataset, arguments.data, arguments.limit)
    recipe = Recipe(width=arguments.width, depth=arguments.depth, epochs=arguments.epochs)
    policies = {name: policy(arguments.codec, dqt=name) for name in arguments.tables}
    runs = [measure(recipe, images, policies, seed, arguments.batches) for seed in range(arguments.seeds)]
    print("| codec | table | bytes/value | error of the gradient |")
    print("|---|---|---|---|")
    for name in policies:
        size, error = (mean(run[name][column] for run in runs) for column in range(2))
        deviation = stdev(run[name][1] for run in runs) if len(runs) > 1 else 0.0
        print(f"| {arguments.codec} | {name} | {size:.4f} | {error:.4f} ± {deviation:.4f} |")


if __name__ == "__main__":
    main()

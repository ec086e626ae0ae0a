"""AC-GC's error bounds: used part of the allowed error, bits by layer in training, and comparison with a search.

    python benchmarks/acgc.py [--dataset digits --epochs 3 --seeds 2] [--parts bounds,models,training,grid]

Prints markdown tables. ``bounds``: single layers; squared error of the gradient over the allowed one, and bits per value,
both with the codec's own errors. ``models``: networks of the zoo with and without the bounds of operations between activations.
``training``: a small ResNet with each policy; score, ratio, bits of every tensor at the end.
``grid``: the fewest bits, the same everywhere, with which the mean score is no worse than without compression.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from typing import Any
from unittest import mock

import actcodec
import torch
from actcodec.policies.bounds import error_bounds
from actcodec.policies.bounds.bound_listener import Bound, bound_of
from actcodec.policies.bounds.error_bounds import ErrorBoundPolicy
from actcodec.policies.bounds.scalar_bounds import VARIANCE_GROWTH
from actcodec.study import experiment
from actcodec.study.data import Dataset, load
from actcodec.study.grid_search import least_bits
from actcodec.training import Policy, policy
from cdu_tools.report import Table
from cdu_zoo import ZOO
from torch import Tensor, nn

DRAWS = 30
#: Steps between statistics: the paper's 100 are more than an epoch here.
INTERVAL = 10
PARTS = ("bounds", "models", "training", "grid")
MODELS = ("transformers.gpt2_eager", "transformers.llama", "torch.TransformerEncoder", "torch.UNet_group_norm")
#: Kinds of bounds that are the paper's, and that of layer norm.
OF_WEIGHTS = ("product", "batch_norm", "layer_norm")
POLICIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("autoquant", {}),
    ("autoquantz", {}),
    ("autoquant", {"widths": "any"}),
    ("autoquantz", {"widths": "any"}),
    ("autoquantz", {"widths": "any", "independent": True}),
)


class Behind(nn.Module):
    """A layer whose input has a history, so that its gradient is computed."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        """The layer's result."""
        y: Tensor = self.layer(x * 1.0)
        return y


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure AC-GC's error bounds.")
    parser.add_argument("--dataset", default="digits", choices=("digits", "cifar10", "fashion-mnist"))
    parser.add_argument("--limit", type=int, help="Training images.")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--parts", default=",".join(PARTS), help="Which tables: " + ", ".join(PARTS))
    arguments = parser.parse_args()
    parts = arguments.parts.split(",")
    if "bounds" in parts:
        print_bounds()
    if "models" in parts:
        print_models()
    if "training" in parts or "grid" in parts:
        recipe = experiment.Recipe(epochs=arguments.epochs)
        print_training(recipe, load(arguments.dataset, limit=arguments.limit), range(arguments.seeds), parts)


def print_bounds() -> None:
    """Single layers on normally distributed values and gradients."""
    layers: tuple[tuple[str, nn.Module, tuple[int, ...]], ...] = (
        ("linear, 64 rows of 128", nn.Linear(128, 64), (64, 128)),
        ("convolution 3x3, 16 x 16 x 16 x 16", nn.Conv2d(16, 16, 3, padding=1), (16, 16, 16, 16)),
        ("convolution 3x3, stride 2", nn.Conv2d(16, 32, 3, 2, 1), (16, 16, 16, 16)),
        ("batch norm, 16 x 16 x 16 x 16", nn.BatchNorm2d(16), (16, 16, 16, 16)),
        ("layer norm, 64 rows of 128", nn.LayerNorm(128), (64, 128)),
    )
    print("| layer | any errors: part of e^2 V^2 | bits | independent errors: part | bits |\n|---|---|---|---|---|")
    for title, layer, shape in layers:
        cells = [cell for independent in (False, True) for cell in used(layer, shape, independent)]
        print(f"| {title} | {cells[0]:.1e} | {cells[1]:.1f} | {cells[2]:.2g} | {cells[3]:.1f} |", flush=True)
    print()


def used(layer: nn.Module, shape: tuple[int, ...], independent: bool) -> tuple[float, float]:
    """Mean squared error of the gradient over ``e**2 * V**2``, and bits per value."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=random).requires_grad_()
    model = Behind(layer)
    g = torch.randn(model(x).shape, generator=random)
    chosen = policy("autoquant", widths="any", independent=independent, interval=DRAWS + 2)

    def gradient(which: str | Policy) -> Tensor:
        x.grad = None
        model.zero_grad()
        with actcodec.compress_activations(model, which):
            y = model(x)
        torch.autograd.backward(y, g)
        found = x.grad if isinstance(layer, (nn.BatchNorm2d, nn.LayerNorm)) else layer.weight.grad
        assert isinstance(found, Tensor), "the gradient that the bound is about"
        return found.double().clone()

    exact = gradient("none")
    gradient(chosen)
    errors = [float((gradient(chosen) - exact).square().sum()) for _ in range(DRAWS)]
    assert isinstance(chosen, ErrorBoundPolicy), "learns bounds"
    return sum(errors) / DRAWS / (VARIANCE_GROWTH * float(exact.square().sum())), chosen.layers[0].bits


def print_models() -> None:
    """The second step of networks with random weights, all readers of a tensor bounded or only those with weights."""
    print("| network | bounds | tensors with a bound for all that reads them | cosine | ratio |\n|---|---|---|---|---|")
    for name in MODELS:
        for independent in (False, True):
            for everything in (False, True):
                chosen = policy("autoquantz", widths="any", independent=independent)
                with nullcontext() if everything else mock.patch.object(error_bounds, "bound_of", bound_of_weights):
                    cosine, ratio = of_second_step(name, chosen)
                assert isinstance(chosen, ErrorBoundPolicy), "learns bounds"
                bounded = f"{sum(layer.bounded for layer in chosen.layers)} of {len(chosen.layers)}"
                kinds = f"{'all' if everything else 'of weights'}{', independent' if independent else ''}"
                print(f"| {name} | {kinds} | {bounded} | {cosine:.4f} | {ratio:.2f} |", flush=True)
    print()


def bound_of_weights(*arguments: Any) -> Bound | None:
    """Return the bound of a tensor if it is one of the paper's, or that of layer norm; None otherwise."""
    bound = bound_of(*arguments)
    return bound if bound is not None and bound.kind in OF_WEIGHTS else None


def of_second_step(name: str, chosen: Policy) -> tuple[float, float]:
    """Cosine of the gradient with the exact one, and ratio, with the same batch, weights and draws in both steps."""
    torch.manual_seed(0)
    model = ZOO[name].build()

    def gradient(which: str | Policy) -> tuple[Tensor, float]:
        torch.manual_seed(1)
        model.zero_grad()
        with actcodec.compress_activations(model, which, min_bytes=0) as stats:
            loss = ZOO[name].loss(model, 0)
        loss.backward()
        parts = [one.grad.flatten().double() for one in model.parameters() if one.grad is not None]
        return torch.cat(parts), stats.ratio

    exact, _ = gradient("none")
    gradient(chosen)
    found, ratio = gradient(chosen)
    return float(torch.cosine_similarity(exact, found, 0)), ratio


def print_training(recipe: experiment.Recipe, dataset: Dataset, seeds: range, parts: list[str]) -> None:
    """A network with each policy, and the search."""
    base = [experiment.train(recipe, dataset, "none", policy("none"), seed) for seed in seeds]
    print(f"| policy | {base[0].score_name} | ratio | s per step |\n|---|---|---|---|")
    print(row("none", base), flush=True)
    layers: list[ErrorBoundPolicy] = []
    for name, options in POLICIES if "training" in parts else ():
        chosen = policy(name, interval=INTERVAL, **options)
        print(row(title(name, options), [experiment.train(recipe, dataset, name, chosen, seed) for seed in seeds]), flush=True)
        assert isinstance(chosen, ErrorBoundPolicy), "learns bounds"
        layers.append(chosen)
    if layers:
        print_layers(layers)
    if "grid" in parts:
        grid(recipe, dataset, seeds, base)


def print_layers(policies: list[ErrorBoundPolicy]) -> None:
    """Bits of every tensor with each of ``POLICIES``."""
    rows = [
        [f"{of_layer[0].operation} into {of_layer[0].module}", *(f"{layer.bits:.2f}" for layer in of_layer)]
        for of_layer in zip(*(chosen.layers for chosen in policies), strict=True)
    ]
    print("\nBits per value in the last step, everything included.\n")
    print(Table(["tensor", *(title(name, options) for name, options in POLICIES)], rows).markdown(), flush=True)


def grid(recipe: experiment.Recipe, dataset: Dataset, seeds: range, base: list[experiment.Run]) -> None:
    """Rows of GridQuantZ."""
    print(f"\n| search | {base[0].score_name} | ratio | s per step |\n|---|---|---|---|")

    def score(bits: int) -> float:
        runs = [experiment.train(recipe, dataset, "gridquantz", policy("gridquantz", bits=bits), seed) for seed in seeds]
        print(row(f"gridquantz {bits} bits", runs), flush=True)
        return mean([run.score for run in runs])

    found = least_bits(score, mean([run.score for run in base]))
    print(f"\nGridQuantZ: {found.bits} bits.")


def title(name: str, options: dict[str, Any]) -> str:
    """Name and options of a policy."""
    return " ".join([name, *(f"{key}={value}" for key, value in options.items())])


def row(name: str, runs: list[experiment.Run]) -> str:
    """A line of the table."""
    scores = [run.score for run in runs]
    ratio = sum(run.bytes_original for run in runs) / sum(run.bytes_compressed for run in runs)
    seconds = mean([run.seconds_per_step for run in runs])
    return f"| {name} | {mean(scores):.2f} ({', '.join(f'{score:.2f}' for score in scores)}) | {ratio:.2f} | {seconds:.2f} |"


def mean(values: list[float]) -> float:
    """Arithmetic mean."""
    return sum(values) / len(values)


if __name__ == "__main__":
    main()

"""Relative error of one step's gradient by policy: what ReLU's lost signs and SFPR's saturating scale cost.

    python benchmarks/gradient_error.py

Prints a markdown table. A ResNet of two stages with eight blocks each (width 16), its weights random, and 64 images of
scikit-learn's digits at 32x32; the gradient of all parameters together, against the gradient without compression.
"""

from __future__ import annotations

import copy
from typing import Any

import actcodec
import torch
from actcodec.study.models import ResNet
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn import functional as F

_WIDTH, _DEPTH, _IMAGES, _SIDE = 16, 8, 64, 32
#: Policies, and the options that say how many bits or what scale.
POLICIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sfpr", {}),
    ("sfpr", {"S": 1.0}),
    ("sfpr+zvc", {}),
    ("jpeg-act", {}),
    ("jpeg-base", {}),
    ("actnn", {"bits": 8}),
    ("actnn", {"bits": 4}),
)


def gradient(model: ResNet, x: Tensor, labels: Tensor, which: str, **options: Any) -> tuple[Tensor, float]:
    """The gradient of all parameters, flat, and the ratio."""
    model = copy.deepcopy(model)
    with actcodec.compress_activations(model, which, **options) as stats:
        loss = F.cross_entropy(model(x), labels)
    torch.autograd.backward(loss)
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]), stats.ratio


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.from_numpy(digits.images[:_IMAGES]).float()[:, None] / 16
    x = F.interpolate(images, size=_SIDE, mode="bilinear")
    labels = torch.from_numpy(digits.target[:_IMAGES])
    model = ResNet(1, 10, width=_WIDTH, depth=_DEPTH)
    exact, _ = gradient(model, x, labels, "none")
    print("| policy | error | ratio | error, signs kept | ratio, signs kept |")
    print("|---|---|---|---|---|")
    for which, options in POLICIES:
        cells = []
        for keep_signs in (False, True):
            found, ratio = gradient(model, x, labels, which, keep_signs=keep_signs, **options)
            cells.append(f"{float((found - exact).norm() / exact.norm()):.3f} | {ratio:.2f}")
        named = ", ".join([f"`{which}`", *(f"{name}={value}" for name, value in options.items())])
        print(f"| {named} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()

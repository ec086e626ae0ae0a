"""Relative error of one step's gradient by policy: the cost of ReLU's lost signs, and of a scale of SFPR that saturates.

    python benchmarks/gradient_error.py

Prints a markdown table. A ResNet of two stages with eight blocks each (width 16), its weights random, and 64 images of
scikit-learn's digits at 32x32; the GPT-2 of the zoo, which has no ReLU. The gradient is that of all parameters together,
against the one without compression.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import actcodec
import torch
from actcodec.study.models import ResNet
from cdu_spec.sfpr import DEFAULT_S, PUBLISHED_S
from cdu_zoo import ZOO
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

_WIDTH, _DEPTH, _IMAGES, _SIDE = 16, 8, 64, 32
#: Policies, and the options that say how many bits or what scale.
POLICIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sfpr", {"S": PUBLISHED_S}),
    ("sfpr", {}),
    ("sfpr+zvc", {"S": PUBLISHED_S}),
    ("sfpr+zvc", {}),
    ("jpeg-gmc", {"S": PUBLISHED_S}),
    ("jpeg-gmc", {}),
    ("jpeg-act", {}),
    ("jpeg-act", {"S": DEFAULT_S}),
    ("jpeg-base", {}),
    ("actnn", {"bits": 8}),
    ("actnn", {"bits": 4}),
)


def gradient(model: nn.Module, loss: Callable[[nn.Module], Tensor], which: str, **options: Any) -> tuple[Tensor, float]:
    """The gradient of all parameters, flat, and the ratio."""
    model = copy.deepcopy(model)
    torch.manual_seed(1)
    with actcodec.compress_activations(model, which, **options) as stats:
        found = loss(model)
    torch.autograd.backward(found)
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]), stats.ratio


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.from_numpy(digits.images[:_IMAGES]).float()[:, None] / 16
    x = F.interpolate(images, size=_SIDE, mode="bilinear")
    labels = torch.from_numpy(digits.target[:_IMAGES])
    resnet, gpt = ResNet(1, 10, width=_WIDTH, depth=_DEPTH), ZOO["transformers.gpt2"]
    cases: list[tuple[nn.Module, Callable[[nn.Module], Tensor], dict[str, Any]]] = [
        (resnet, lambda model: F.cross_entropy(model(x), labels), {"keep_signs": False}),
        (resnet, lambda model: F.cross_entropy(model(x), labels), {"keep_signs": True}),
        (gpt.build(), lambda model: gpt.loss(model, 0), {}),
    ]
    exact = [gradient(model, loss, "none")[0] for model, loss, _ in cases]
    print("| policy | error | ratio | error, signs kept | ratio, signs kept | error, GPT-2 | ratio, GPT-2 |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for which, options in POLICIES:
        cells = []
        for (model, loss, more), wanted in zip(cases, exact, strict=True):
            found, ratio = gradient(model, loss, which, **options, **more)
            cells.append(f"{float((found - wanted).norm() / wanted.norm()):.3f} | {ratio:.2f}")
        named = ", ".join([f"`{which}`", *(f"{name}={value}" for name, value in options.items())])
        print(f"| {named} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

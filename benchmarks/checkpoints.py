"""Memory of one training step with checkpoints, with compression, and with both, on the CPU.

    python benchmarks/checkpoints.py

ResNet-18 of torchvision with 64 images of 3 x 64 x 64, a checkpoint around each residual block; GPT-2 of transformers, 6
layers of width 256, with 8 texts of 128 letters, a checkpoint around each layer. Weights are random. The policy is the one with
kernels that is recommended for the family; ``both`` compresses what checkpoints begin with (``checkpoints=True``). Prints a
markdown table:

peak
    MiB at the worst moment of forward and backward, by the allocator's own events (:mod:`actcodec.study.allocations`), on top
    of what was there before, and as a part of the peak without anything;
kept
    MiB that are left when forward is over: what the graph holds for backward;
cosine
    of the gradient with the one without anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import actcodec
import torch
from actcodec.policies.policy import CodecSpec
from actcodec.policies.recommended import has_kernels, recommended
from actcodec.study.allocations import allocations
from actcodec.study.check import named_policy
from actcodec.study.likeness import cosine
from actcodec.study.models.library import torchvision, transformers
from actcodec.study.zoo.batches import CLASSES, VOCABULARY
from actcodec.study.zoo.losses import of_images, of_next_letters
from cdu_tools.report import Table
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

_MIB = 1 << 20
_LETTERS = 128


@dataclass(frozen=True)
class Network:
    """What is trained, in parts around which checkpoints stand."""

    family: str
    build: Callable[[], nn.Module]
    parts: Callable[[Any], Iterable[nn.Module]]
    loss: Callable[[nn.Module, int], Tensor]


def _gpt2() -> nn.Module:
    library = transformers()
    sizes = {"n_embd": 256, "n_layer": 6, "n_head": 8, "n_positions": _LETTERS, "vocab_size": VOCABULARY}
    model: nn.Module = library.GPT2LMHeadModel(library.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).train()
    return model


NETWORKS = {
    "ResNet-18": Network(
        "CNN",
        lambda: torchvision().models.resnet18(num_classes=CLASSES),
        lambda model: (block for layer in (model.layer1, model.layer2, model.layer3, model.layer4) for block in layer),
        of_images(64, 64),
    ),
    "GPT-2": Network("GPT/BERT", _gpt2, lambda model: model.transformer.h, of_next_letters(8, _LETTERS)),
}

#: What a step is called, whether it has checkpoints, and whether it is compressed.
STEPS = (
    ("without", False, False),
    ("checkpoints", True, False),
    ("compression", False, True),
    ("both", True, True),
)


def measured(network: Network, checkpoints: bool, spec: CodecSpec | None) -> tuple[list[Tensor], int, int]:
    """Gradient, bytes at the peak of the step, bytes that are kept between forward and backward."""
    torch.manual_seed(0)
    model = network.build()
    if checkpoints:
        for part in network.parts(model):
            part.forward = partial(checkpoint, part.forward, use_reentrant=False)
    context: AbstractContextManager[object] = nullcontext()
    if spec is not None:
        context = actcodec.compress_activations(model, named_policy(spec)[1], checkpoints=checkpoints)

    def forward() -> Tensor:
        torch.manual_seed(1)  # of dropout
        with context:
            return network.loss(model, 0)

    def step() -> list[Tensor]:
        return list(torch.autograd.grad(forward(), list(model.parameters())))

    step()
    kept = allocations(forward).kept
    whole = allocations(step)
    return whole.result, whole.peak, kept


def main() -> None:
    """Measure and print the table."""
    torch.set_num_threads(1)
    rows = []
    for name, network in NETWORKS.items():
        chosen = recommended(network.family, has_kernels)
        exact, first, _ = measured(network, False, None)
        for what, checkpoints, compressed in STEPS:
            gradient, peak, kept = measured(network, checkpoints, chosen.policy if compressed else None)
            sizes = (f"{peak / _MIB:.1f}", f"{peak / first:.2f}", f"{kept / _MIB:.1f}")
            rows.append((name, what, f"`{chosen.text}`" if compressed else "", *sizes, f"{cosine(exact, gradient):.4f}"))
    print(Table(("network", "step", "policy", "peak MiB", "peak", "kept MiB", "cosine"), rows).markdown())


if __name__ == "__main__":
    main()

"""Memory of one training step by method of saving it, and the largest batch that fits into a fixed budget, on the CPU.

    python benchmarks/largest_batch.py
    python benchmarks/largest_batch.py --networks GPT-2

Networks have random weights and take photographs or texts: ResNet-18 and MobileNetV2 of torchvision, 3 x 64 x 64, a checkpoint
around each block; GPT-2 of transformers, 6 layers of width 256, 128 letters, a checkpoint around each layer. The
plain step is compared with common methods: checkpoints, ``save_on_cpu``, those of ``torch.compile`` (benchmarks/torch_means.py)
and ``actcodec.compiled``, both compiled anew for each batch, storage in bfloat16 and in 8 bits by row; then with policies, of
which the last two are the one with kernels that is recommended for the family, and the same with checkpoints whose inputs are
compressed too (``checkpoints=True``). Prints a markdown table:

peak
    MiB at the worst moment of forward and backward with the first batch, by the allocator's own events
    (:mod:`actcodec.saved.allocations`), beyond the bytes in use before, gradients included; then as a part of the peak of the
    step as it is, which is the budget;
kept
    MiB after forward, which the graph holds for backward;
ratio, of float32
    of activations, against the formats that they have and against float32;
cosine
    of the gradient with that of the step as it is; for compiled steps with that of plain ``torch.compile``, whose dropout draws
    other numbers;
largest batch
    within the budget: it fits, and one sample more does not.

There is one memory here. For ``save_on_cpu`` what it moves counts as the memory of a host and the rest as that of a device: the
copies are numpy's, which torch's allocator does not see, and come back as tensors.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import actcodec
import torch
from actcodec.policies.policy import CodecSpec
from actcodec.policies.recommended import has_kernels, named, recommended
from actcodec.saved.allocations import allocations
from actcodec.study.check import named_policy
from actcodec.study.data.batches import CLASSES, VOCABULARY
from actcodec.study.gradient_similarity import cosine
from actcodec.study.largest import largest
from actcodec.study.models.library import torchvision, transformers
from actcodec.training import Statistics
from cdu_tools.report import table_row
from cdu_zoo.losses import of_images, of_next_letters
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint
from torch_means import FEW, TORCH_MEANS, compile_in_place, settings

_MIB = 1 << 20
_SIDE, _LETTERS = 64, 128


@dataclass(frozen=True)
class Network:
    """A network to train, the parts that checkpoints enclose, and its first batch size."""

    family: str
    build: Callable[[], nn.Module]
    parts: Callable[[Any], Iterable[nn.Module]]
    loss: Callable[[int], Callable[[nn.Module, int], Tensor]]  #: by the size of a batch
    batch: int


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
        lambda batch: of_images(batch, _SIDE),
        64,
    ),
    "MobileNetV2": Network(
        "MobileNet",
        lambda: torchvision().models.mobilenet_v2(num_classes=CLASSES),
        lambda model: model.features,
        lambda batch: of_images(batch, _SIDE),
        64,
    ),
    "GPT-2": Network("GPT/BERT", _gpt2, lambda model: model.transformer.h, lambda batch: of_next_letters(batch, _LETTERS), 4),
}


@dataclass(frozen=True)
class Way:
    """A way to take a step."""

    name: str
    policy: CodecSpec | None = None
    checkpoints: bool = False
    moved: bool = False  #: True if saved tensors are moved to other memory
    settings: Callable[[], AbstractContextManager[None]] | None = None  #: settings of torch with which the step is compiled
    format: str | None = None  #: format in which a compiled step keeps values


PLAIN, COMPILED = Way("without"), Way("inductor", settings=settings)


def ways(family: str) -> list[Way]:
    """Return the plain step, common methods, and policies."""
    best = recommended(family, has_kernels)
    specs = {name: CodecSpec(name) for name in ("bf16", "int8-rows", "sfpr", "jpeg-gmc", "actnn-L2", "blpa-coded")}
    specs |= {best.text: best.policy}
    return [
        PLAIN,
        Way("checkpoints", checkpoints=True),
        Way("save_on_cpu", moved=True),
        *(Way(name, settings=TORCH_MEANS[name]) for name in FEW),
        Way("compiled, int8", settings=settings, format="int8"),
        *(Way(named(spec), spec) for spec in specs.values()),
        Way(f"checkpoints, {best.text}", best.policy, checkpoints=True),
    ]


@dataclass(frozen=True)
class Step:
    """The result of one step."""

    gradient: list[Tensor]
    peak: int  #: bytes
    kept: int  #: bytes between forward and backward
    statistics: Statistics | None


class Steps:
    """A network and a way to train it, with batches of any size."""

    def __init__(self, network: Network, way: Way) -> None:
        torch.manual_seed(0)
        self._network, self._model = network, network.build()
        if way.checkpoints:
            for part in network.parts(self._model):
                part.forward = partial(checkpoint, part.forward, use_reentrant=False)
        self._context: AbstractContextManager[Any] = moved_to_host() if way.moved else nullcontext()
        if way.policy is not None:
            policy = named_policy(way.policy)[1]
            self._context = actcodec.compress_activations(self._model, policy, checkpoints=way.checkpoints)
        self._settings = way.settings
        if self._settings is None:
            self._forward(1)  # libraries and kernels are found
        elif way.format is None:
            compile_in_place(self._model)
        else:
            actcodec.compiled(self._model, way.format)

    def step(self, batch: int) -> Step:
        """Take one."""
        self._compile(batch)
        kept = allocations(lambda: self._forward(batch)).kept
        whole = allocations(lambda: self._gradient(batch))
        gradient, statistics = whole.result
        return Step(gradient, whole.peak, kept, statistics)

    def peak(self, batch: int) -> int:
        """Bytes."""
        self._compile(batch)
        return allocations(lambda: self._gradient(batch)).peak

    def _compile(self, batch: int) -> None:
        """Compile the model for a batch, if it is one that is compiled."""
        if self._settings is not None:
            torch.compiler.reset()
            with self._settings():
                self._gradient(batch)

    def _forward(self, batch: int) -> tuple[Tensor, Statistics | None]:
        torch.manual_seed(1)  # seed of dropout
        with self._context as statistics:
            return self._network.loss(batch)(self._model, 0), statistics

    def _gradient(self, batch: int) -> tuple[list[Tensor], Statistics | None]:
        loss, statistics = self._forward(batch)
        return list(torch.autograd.grad(loss, list(self._model.parameters()))), statistics


def moved_to_host() -> saved_tensors_hooks:
    """``torch.autograd.graph.save_on_cpu``, with numpy's memory for that of the host."""
    return saved_tensors_hooks(lambda x: x.detach().numpy().copy(), lambda kept: torch.from_numpy(kept).clone())


def row(name: str, place: int) -> list[str]:
    """A row of the table: one way on one network."""
    torch.set_num_threads(1)
    network = NETWORKS[name]
    way = ways(network.family)[place]
    plain = Steps(network, PLAIN).step(network.batch)
    exact = plain if way.settings is None else Steps(network, COMPILED).step(network.batch)
    steps = Steps(network, way)
    one = steps.step(network.batch)
    ratios = [] if one.statistics is None else [one.statistics.ratio, one.statistics.ratio_of_float32]
    return [
        *(name, way.name, f"{one.peak / _MIB:.1f}", f"{one.peak / plain.peak:.2f}", f"{one.kept / _MIB:.1f}"),
        *([f"{ratio:.2f}" for ratio in ratios] or ["", ""]),
        f"{cosine(exact.gradient, one.gradient):.4f}",
        str(largest(steps.peak, plain.peak, network.batch)),
    ]


HEADER = ("network", "step", "peak MiB", "peak", "kept MiB", "ratio", "of float32", "cosine", "largest batch")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    arguments = parser.parse_args()
    print(table_row(HEADER))
    print(table_row(["---", "---", *["--:"] * (len(HEADER) - 2)]))
    # A process for each: what the profiler keeps of one is not there for the next.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as processes:
        for name in arguments.networks:
            for place in range(len(ways(NETWORKS[name].family))):
                print(table_row(processes.submit(row, name, place).result()), flush=True)


if __name__ == "__main__":
    main()

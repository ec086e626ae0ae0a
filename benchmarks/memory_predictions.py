"""Memory of training steps as predicted by ``cdu memory``, beside measured and published figures.

    python benchmarks/memory_predictions.py

Models
    Ten models of the zoo, one step each with 64 samples on the CPU on one thread. Measured by the allocator's own events
    (:mod:`actcodec.saved.allocations`), beyond the bytes in use before; predicted on fake tensors.
Compiled
    Five networks, model and loss in one graph of ``torch.compile``, measured likewise once it is compiled.
Ladder
    The decoder of examples/memory_me.py, of the shape of Llama 3.2 3B, with 2 texts of 4096 tokens, bfloat16, AdamW with states
    in bfloat16, beside torchtune's table for an A100 (README of torchtune, section Optimization flags; peak of active memory).
    Steps: each layer compiled by itself; the loss in 8 chunks of the texts, compiled; a checkpoint around each layer; gradients
    freed by an update within the backward; what checkpoints begin with in the host's memory.

Writes the tables beside docs/evidence/memory.md, and some of their columns between the marks of that page; ``--no-page`` prints
them.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from actcodec.saved.allocations import allocations
from actcodec.study.memory import BLOCKS, CHECKPOINT, COMPILED, NONE, predict
from actcodec.study.memory_subject import Subject, of_script, of_zoo, without_values
from actcodec.study.models.library import torchvision
from cdu_tools.files import write_whole
from cdu_tools.marks import Marks
from cdu_zoo import ZOO
from cdu_zoo.of_torch import UNet
from digest import Table
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

PAGE = Path("docs", "evidence", "memory.md")
EXAMPLE = Path("examples", "memory_me.py")
MODELS = (
    *("torchvision.resnet18", "torchvision.vgg_bn", "torchvision.mobilenet_v2", "timm.test_efficientnet"),
    *("timm.test_convnext", "timm.test_vit", "transformers.gpt2", "transformers.llama", "transformers.bert"),
    "torch.UNet_batch_norm",
)
#: Samples.
BATCH = 64
_MIB, _GIB = 1 << 20, 1 << 30
#: Columns on the page: a name, the peak, its prediction and how far that is off.
SHOWN = 4


def models() -> Table:
    """A row for each model of the zoo."""
    rows = []
    for name in MODELS:
        foreign = ZOO[name]
        real = foreign.build()
        loss = foreign.loss.of(BATCH)
        measured = _measured(real, partial(loss, real, 0))
        found = predict(of_zoo(foreign), count=BATCH, on_cpu=True)
        place = " of ".join(part for part in (found.place.operation, found.place.module) if part)
        rows.append((name, *_compared(measured, (found.step, found.kept)), f"{found.place.phase}: {place}"))
    return Table((*_HEADER, "peak is in"), tuple(rows))


class WithLoss(nn.Module):
    """A network and the cross-entropy of what it returns, in one module."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Inputs and classes -> loss."""
        found = self.network(x)
        return functional.cross_entropy(found.flatten(0, 1) if found.dim() == 3 else found, y)


class Gpt(nn.Module):
    """Four layers of width 192 over 256 letters."""

    def __init__(self) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(256, 192), nn.Embedding(256, 192)
        layer = nn.TransformerEncoderLayer(192, 4, 768, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.classifier = nn.Linear(192, 256)

    def forward(self, letters: Tensor) -> Tensor:
        """int64 (N, 256) -> (N, 256, 256)."""
        x = self.letters(letters) + self.places.weight
        mask = nn.Transformer.generate_square_subsequent_mask(256)
        found: Tensor = self.classifier(self.layers(x, mask, is_causal=True))
        return found


def networks() -> dict[str, tuple[nn.Module, Tensor, Tensor]]:
    """Networks, inputs and classes."""
    library = torchvision().models

    def images(count: int) -> tuple[Tensor, Tensor]:
        return torch.randn(count, 3, 64, 64), torch.randint(10, (count,))

    vit = library.VisionTransformer(64, 8, 4, 4, 128, 512, num_classes=10)
    return {
        "GPT": (Gpt(), torch.randint(256, (8, 256)), torch.randint(256, (8 * 256,))),
        "ViT": (vit, *images(32)),
        "ResNet-18": (library.resnet18(num_classes=10), *images(64)),
        "MobileNetV2": (library.mobilenet_v2(num_classes=10), *images(16)),
        "U-Net": (UNet(), torch.randn(8, 3, 64, 64), torch.randint(4, (8, 64, 64))),
    }


def compiled() -> Table:
    """A row for each of five networks."""
    rows = []
    for name, (network, x, y) in networks().items():
        torch._dynamo.reset()
        whole = WithLoss(network)
        step = torch.compile(whole)
        step(x, y).backward()
        measured = _measured(whole, partial(step, x, y))
        found = predict(subject_of(name, whole, x, y), COMPILED, on_cpu=True)
        rows.append((name, *_compared(measured, (found.step, found.kept)), f"{found.place.phase}: {found.place.operation}"))
    return Table((*_HEADER, "peak is in"), tuple(rows))


def subject_of(name: str, whole: nn.Module, *data: Tensor) -> Subject:
    """A module that returns a loss of tensors, both without values from here on."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    without_values(whole, mode)
    fakes = tuple(mode.from_tensor(one) for one in data)
    return Subject(name, whole, lambda count: fakes, whole, "", mode, True)


_HEADER = ("model", "peak MiB", "predicted", "off", "kept MiB", "kept, predicted", "kept, off")


def _measured(model: nn.Module, loss: Callable[[], Tensor]) -> tuple[int, int]:
    """Peak and kept bytes of a step, after one that finds libraries and kernels."""

    def whole() -> None:
        loss().backward()

    whole()
    model.zero_grad(set_to_none=True)
    kept = allocations(loss).kept
    peak = allocations(whole).peak
    model.zero_grad(set_to_none=True)
    return peak, kept


def _compared(measured: tuple[int, int], predicted: tuple[int, int]) -> list[str]:
    cells = []
    for there, here in zip(measured, predicted, strict=True):
        cells += [f"{there / _MIB:.2f}", f"{here / _MIB:.2f}", f"{100 * (here / there - 1):+.1f} %"]
    return cells


#: torchtune's rows, GiB.
PUBLISHED = {
    "plain": 60.0,
    "+ compiled": 51.0,
    "+ loss in chunks": 42.9,
    "+ checkpoints": 24.9,
    "+ update in the backward": 23.1,
    "+ offload": 21.8,
}
CHUNKS = 8


def ladder() -> Table:
    """A row for each step of torchtune's ladder."""
    plain = of_script(EXAMPLE, dtype=torch.bfloat16)
    chunked = replace(plain, loss=chunked_loss(plain.model))
    states = predict(plain, optimizer="adamw", count=2).state - predict(plain, count=2).state
    found = {
        "plain": predict(plain, NONE, 2, "adamw").peak,
        "+ compiled": predict(plain, BLOCKS, 2, "adamw").peak,
        "+ loss in chunks": predict(chunked, BLOCKS, 2, "adamw").peak,
        "+ checkpoints": predict(chunked, CHECKPOINT, 2, "adamw").peak,
    }
    for parameter in plain.model.parameters():
        parameter.register_post_accumulate_grad_hook(_dropped)
    found["+ update in the backward"] = predict(chunked, CHECKPOINT, 2).peak + states
    offloaded = replace(chunked, loss=chunked_loss(plain.model, moved=True))
    found["+ offload"] = predict(offloaded, CHECKPOINT, 2).peak + states
    rows = [
        (name, f"{there:.1f}", f"{found[name] / _GIB:.1f}", f"{100 * (found[name] / _GIB / there - 1):+.1f} %")
        for name, there in PUBLISHED.items()
    ]
    return Table(("step", "published GiB", "predicted", "off"), tuple(rows))


def chunked_loss(model: Any, *, moved: bool = False) -> Callable[..., Tensor]:
    """The loss of eight parts of the texts one after the other, of which nothing but the logits is kept."""

    def part(logits: Tensor, following: Tensor) -> Tensor:
        return functional.cross_entropy(logits.float().flatten(0, 1), following.flatten(), reduction="sum")

    def loss(tokens: Tensor, following: Tensor) -> Tensor:
        with _moved() if moved else nullcontext():
            found = model(tokens)
        logits = [functional.linear(one, model.embedding.weight) for one in found.chunk(CHUNKS, 1)]
        pairs = zip(logits, following.chunk(CHUNKS, 1), strict=True)
        parts = [checkpoint(part, *pair, use_reentrant=False, preserve_rng_state=False) for pair in pairs]
        return torch.stack(parts).sum() / following.numel()

    return loss


def _moved() -> saved_tensors_hooks:
    """Keep saved tensors off the device until the backward asks for them."""
    return saved_tensors_hooks(
        lambda x: x if isinstance(x, nn.Parameter) else (tuple(x.shape), x.dtype, x.device),
        lambda kept: kept if isinstance(kept, Tensor) else torch.empty(kept[0], dtype=kept[1], device=kept[2]),
    )


def _dropped(parameter: Tensor) -> None:
    parameter.grad = None


TABLES = {"memory-models": models, "memory-compiled": compiled, "memory-ladder": ladder}


def write(name: str, table: Table) -> None:
    """Write a table beside the page, and the columns in front between the marks of the page."""
    write_whole(PAGE.with_name(f"{name.replace('-', '_')}.csv"), table.csv())
    shown = table.only(*table.header[:SHOWN])
    Marks(name).put(PAGE, f"\n\n{shown.markdown()}\n\n")


def main() -> None:
    """Make the tables, and write or print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-page", action="store_true", help="print the tables, and write nothing")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    for name in arguments.tables:
        table = TABLES[name]()
        if arguments.no_page:
            print(table.markdown(), flush=True)
        else:
            write(name, table)


if __name__ == "__main__":
    main()

"""Ratio at equal gradient error of ways to keep tokens: shared steps, rotations, blocks with scales of their own.

    python benchmarks/token_codecs.py

A vision transformer is trained on 4096 images of CIFAR-10 and a GPT-2 on letters of the standard library, both of width 64 and
depth 4, for 150 steps without compression. On one batch everything that is not computed again
(actcodec.policies.groups.recomputation) is kept in one way:

steps of a tensor, feature, token, group
    uniform steps of 6 gamma / 2**bits, rounded to nearest, gamma the root mean square of what shares a step, which takes 2
    bytes; the numbers of steps cost their entropy. Groups are 32 features of a token;
H16, H32
    the same after a Hadamard transform of so many neighbouring features;
gmc
    codec jpeg-gmc, tokens and features being the two sides of a map: blocks of 8 tokens and 8 features, a scale for all;
nvfp4, mxfp4
    these codecs, with and without the transform.

Ratios at the errors ||g - g'|| / ||g|| of 0.05, 0.1 and 0.14 are interpolated between 2.5 and 5 bits, of gmc between its
uniform tables; for formats without a choice of bits the table has ratio and error. Writes docs/evidence/token_codecs.csv, and
prints it as markdown.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from actcodec import codecs
from actcodec.codecs import Codec, Packed
from actcodec.policies.groups.recomputation import RecomputingPolicy
from actcodec.policies.policy import CODED_DTYPES, Rule
from actcodec.policies.tables.rules import first_rules
from actcodec.study import data
from actcodec.study.diagnosis import Passes, distance, norm_of
from actcodec.study.models import VisionTransformer
from cdu_spec.sfpr import PUBLISHED_S
from cdu_tools.files import write_whole
from cdu_tools.report import Table
from torch import Tensor, nn
from torch.nn import functional as F
from transformer_training import Run, Text

FILE = Path(__file__).parent.parent / "docs" / "evidence" / "token_codecs.csv"
BITS, ERRORS, STEPS, IMAGES = (2.5, 3, 4, 5), (0.05, 0.1, 0.14), 150, 4096
WIDTH, DEPTH, BATCHES = 64, 4, {"vit": 64, "gpt": 16}
GROUP, SCALE_BYTES = 32, 2
#: The transform coder, and binary logarithms of the steps of its tables.
GMC, TABLES = "jpeg-gmc", (3, 4, 5)


@dataclass(frozen=True, eq=False)
class _Kept:
    """Values, and the bytes that they would take."""

    values: Tensor
    nbytes: int

    def to_bytes(self) -> bytes:
        """Raises AssertionError."""
        raise AssertionError("there is no stream")

    def decompress(self, backend: object = "torch") -> Tensor:
        """The values."""
        return self.values


class Way(Codec):
    """One way to keep rows of features."""

    name = "way"

    def __init__(self, steps_of: str, rotation: int, bits: float) -> None:
        self._steps_of, self._rotation, self._bits = steps_of, rotation, bits

    def compress(self, x: Tensor) -> Packed:
        """Implement :class:`Codec`."""
        rows = x.detach().reshape(-1, x.shape[-1]).double()
        rotation = self._rotation if rows.shape[1] % max(self._rotation, 1) == 0 else 0
        values, nbytes = self._rounded(_rotated(rows, rotation))
        return _Kept(_rotated(values, rotation).view(x.shape).to(x.dtype), nbytes)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress()

    def _rounded(self, rows: Tensor) -> tuple[Tensor, int]:
        if self._steps_of == GMC:
            codec = codecs.codec(GMC, dqt=f"uniform-{2 ** round(self._bits)}", S=PUBLISHED_S)
            packed = codec.compress(rows.float()[None, None])
            return codec.decompress(packed)[0, 0].double(), packed.nbytes
        if self._steps_of in codecs.CODEC_NAMES:
            codec = codecs.codec(self._steps_of)
            packed = codec.compress(rows.float())
            return codec.decompress(packed).double(), packed.nbytes
        size = GROUP if self._steps_of == "group" and rows.shape[1] % GROUP == 0 else rows.shape[1]
        shared = {"tensor": (0, 1), "feature": (0,), "token": (1,), "group": (2,)}[self._steps_of]
        seen = rows.view(len(rows), -1, size) if self._steps_of == "group" else rows
        gamma = seen.square().mean(shared, keepdim=True).sqrt().clamp_min(1e-30).bfloat16().double()
        step = 6 * gamma / 2**self._bits
        numbers = (seen / step).round()
        counts = torch.unique(numbers, return_counts=True)[1].double()
        entropy = -float((counts * (counts / counts.sum()).log2()).sum())
        return (numbers * step).view(rows.shape), math.ceil(entropy / 8) + SCALE_BYTES * gamma.numel()


def _rotated(rows: Tensor, size: int) -> Tensor:
    """Hadamard's transform of each ``size`` neighbouring features, its own inverse."""
    if not size:
        return rows
    matrix = torch.ones(1, 1, dtype=rows.dtype)
    while len(matrix) < size:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return (rows.view(-1, size) @ (matrix / math.sqrt(size))).view(rows.shape)


def on_images() -> tuple[nn.Module, Callable[[int], Tensor]]:
    """The vision transformer, and its loss for a batch by number."""
    images, batch = data.load("cifar10", limit=IMAGES), BATCHES["vit"]
    torch.manual_seed(0)
    network = VisionTransformer(3, images.classes, 32, WIDTH, DEPTH)

    def loss(number: int) -> Tensor:
        chosen = (torch.arange(batch) + number * batch) % len(images.train_inputs)
        return F.cross_entropy(network(images.train_inputs[chosen]), images.train_targets[chosen])

    return network, loss


def on_text() -> tuple[nn.Module, Callable[[int], Tensor]]:
    """The GPT, and its loss for a batch by number."""
    text = Text(Run("gpt", "none", 0, WIDTH, DEPTH, "cpu"))
    torch.manual_seed(0)
    network = text.network(WIDTH, DEPTH).train()
    return network, lambda number: text.loss(network, text.batch(BATCHES["gpt"], torch.Generator().manual_seed(number)))


NETWORKS = {"vit": on_images, "gpt": on_text}


def trained(name: str) -> tuple[nn.Module, Passes]:
    """A network, and passes of one batch of it."""
    network, loss = NETWORKS[name]()
    optimizer = torch.optim.AdamW(network.parameters(), 1e-3)
    for number in range(1, STEPS + 1):
        optimizer.zero_grad()
        torch.autograd.backward(loss(number))
        optimizer.step()
    return network, Passes(network, lambda: loss(0))


def measured(passes: Passes) -> Callable[[Codec], tuple[float, float]]:
    """Relative error of the gradient, and ratio of everything, of a way."""
    exact = passes.gradient()

    def of(way: Codec) -> tuple[float, float]:
        gradient, kept = passes.outcome(RecomputingPolicy((*first_rules({}), Rule(way, dtypes=CODED_DTYPES))))
        assert kept is not None, "the step was compressed"
        return distance(exact, gradient) / norm_of(exact), kept.ratio_of_everything

    return of


def at(curve: list[tuple[float, float]], error: float) -> str:
    """The ratio at an error, between two points of a curve; nothing beyond them."""
    points = sorted(curve)
    for (below, dense), (above, denser) in pairwise(points):
        if below <= error <= above:
            return f"{dense + (denser - dense) * math.log(error / below) / math.log(above / below):.2f}"
    return "-"


def lines_of(network: str) -> list[tuple[str, ...]]:
    """A line for each way to keep the tokens of a network."""
    of, lines = measured(trained(network)[1]), []
    for rotation in (0, 16, 32):
        turned = f" H{rotation}" if rotation else ""
        for steps_of in ("tensor", "token", "group", *(() if rotation else ("feature",))):
            curve = [of(Way(steps_of, rotation, bits)) for bits in BITS]
            lines.append((network, f"steps of a {steps_of}{turned}", *(at(curve, error) for error in ERRORS), "", ""))
        curve = [of(Way(GMC, rotation, table)) for table in TABLES]
        lines.append((network, f"gmc{turned}", *(at(curve, error) for error in ERRORS), "", ""))
        for name in ("nvfp4", "mxfp4"):
            error, ratio = of(Way(name, rotation, 0))
            lines.append((network, f"{name}{turned}", *("" for _ in ERRORS), f"{ratio:.2f}", f"{error:.3f}"))
    return lines


def main() -> None:
    """Measure and write."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    lines = [line for network in NETWORKS for line in lines_of(network)]
    table = Table(("network", "way", *(f"ratio at {error}" for error in ERRORS), "its ratio", "its error"), lines)
    write_whole(FILE, table.csv())
    print(table.markdown())


if __name__ == "__main__":
    main()

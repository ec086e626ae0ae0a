"""Why errors of what layer norms read compound: the errors of one step, changed in one respect at a time.

    python benchmarks/compounding.py

A vision transformer of width 32 and depth 2 is trained on CIFAR-10 for 16 steps with ActNN's level 3 at 2 bits, which does not
learn there (docs/evidence/comparison.md), as ``cdu diagnose`` trains it. On four batches every tensor's error e is then what
that policy makes it, or what the row says:

half, a quarter, an eighth
    e times that: what goes with products of errors goes away faster than errors, what goes with sums of like errors does not;
noise
    normally distributed, each token with the root mean square of its e: it knows nothing of values or of other errors;
norms alone, others alone
    of what normalisations read, or of all else, the rest exact;
brought back
    of what normalisations read the reconstruction x', but each token again with the mean and the deviation of x, which autograd
    keeps exactly and backward divides by.

Together is ||g - g'|| / ||g|| with all errors, apart the root of the sum of squares of the errors of one tensor alone, which is
what independent ones would make together. Gain is ||g'|| / ||g||. Writes the table between the marks of
docs/evidence/comparison.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from actcodec.codecs import Codec, Packed, RawCopy
from actcodec.codecs.centring import decompress_centred
from actcodec.policies.catalog import policy
from actcodec.policies.policy import Policy, SavedTensor
from actcodec.study.diagnosis import Passes, distance, norm_of
from actcodec.study.experiment import initial_model, loss_of, train
from actcodec.study.replay import Recorder
from actcodec.study.setup import TrainingSetup
from cdu_tools.marks import Marks
from cdu_tools.report import Table
from marked_table import measure
from torch import Tensor

PAGE, MARKS = Path("docs", "evidence", "comparison.md"), Marks("compounding")
SETUP = TrainingSetup("vit", "cifar10", limit=1024, width=32, depth=2, steps=16)
CODEC, BITS, BATCHES = "actnn-L3", 2, 4
#: Function of x, x' and the properties that a rule tests, which returns the changed reconstruction.
Change = Callable[[Tensor, Tensor, SavedTensor], Tensor]


def scaled(part: float) -> Change:
    """The error, smaller."""
    return lambda x, y, seen: x + part * (y - x)


def noise(x: Tensor, y: Tensor, seen: SavedTensor) -> Tensor:
    """As large an error in each row."""
    size = (y - x).square().mean(-1, keepdim=True).sqrt()
    return x + size * torch.randn(x.shape, generator=torch.Generator().manual_seed(x.numel() + len(seen.module)))


def only(norms: bool) -> Change:
    """The error of some tensors."""
    return lambda x, y, seen: y if (seen.consumer == "norm") == norms else x


def brought_back(x: Tensor, y: Tensor, seen: SavedTensor) -> Tensor:
    """Rows with the mean and deviation that they had."""
    if seen.consumer != "norm":
        return y
    deviation, mean = torch.std_mean(x, -1, correction=0, keepdim=True)
    wrong_deviation, wrong_mean = torch.std_mean(y, -1, correction=0, keepdim=True)
    return mean + (y - wrong_mean) * (deviation / wrong_deviation.clamp_min(1e-12))


CHANGES: dict[str, Change] = {
    "as they are": scaled(1),
    "half": scaled(1 / 2),
    "a quarter": scaled(1 / 4),
    "an eighth": scaled(1 / 8),
    "noise": noise,
    "norms alone": only(True),
    "others alone": only(False),
    "brought back": brought_back,
}


class _Changed(Codec):
    """Keeps x with another error."""

    centred = False

    def __init__(self, codec: Codec, packed: Packed | None, seen: SavedTensor, change: Change) -> None:
        self.name, self.keeps_zeros = codec.name, codec.keeps_zeros
        self._codec, self._packed, self._seen, self._change = codec, packed, seen, change

    def compress(self, x: Tensor) -> Packed:
        """Implement :class:`Codec`."""
        if self._packed is None:
            return RawCopy(x.detach().clone())
        return RawCopy(self._change(x.detach(), decompress_centred(self._packed, self._codec), self._seen))

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress()


class Changed(Policy):
    """The errors of a recorded pass, of one tensor or (None) of all, changed."""

    def __init__(self, recorder: Recorder, change: Change, wanted: int | None) -> None:
        super().__init__((), keep_signs=recorder.keep_signs)
        self._recorder, self._change, self._wanted, self._number = recorder, change, wanted, 0

    def choose(self, tensor: SavedTensor) -> Codec | None:
        """Implement :class:`Policy`."""
        return self._recorder.chosen.choose(tensor)

    def observer(self) -> Changed:
        """Implement :class:`Policy`."""
        return self

    def codec_of(self, tensor: SavedTensor, codec: Codec) -> Codec:
        """Implement :class:`Observer` for the next tensor of the pass."""
        number = self._number
        self._number += 1
        packed = self._recorder.packed.get(number) if self._wanted in (None, number) else None
        return _Changed(self._recorder.codecs[number], packed, tensor, self._change)

    def finished(self, operation: object, result: object) -> None:
        """Implement :class:`Observer`."""


def measured(change: Change, passes: Passes, recorder: Recorder) -> tuple[float, float, float]:
    """Return the squares of the error together, of the errors apart, and of the gain."""
    exact = passes.gradient()
    together = passes.gradient(Changed(recorder, change, None))
    alone = [passes.gradient(Changed(recorder, change, number)) for number in recorder.packed]
    norm = norm_of(exact)
    apart = sum(distance(exact, one) ** 2 for one in alone)
    return (distance(exact, together) / norm) ** 2, apart / norm**2, (norm_of(together) / norm) ** 2


def table() -> Table:
    """A row for each change, root mean squares over the batches."""
    recipe, images = SETUP.recipe, SETUP.images
    network, chosen = initial_model(recipe, images, 0), policy(CODEC, bits=BITS)
    train(recipe, images, CODEC, chosen, 0, model=network)
    network.train()
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in CHANGES}
    for number in range(BATCHES):
        rows = slice(number * recipe.batch, (number + 1) * recipe.batch)
        inputs, targets = images.train_inputs[rows], images.train_targets[rows]
        passes = Passes(network, lambda: loss_of(network(inputs), targets, images))  # noqa: B023
        chosen.set_samples(None)
        recorder = Recorder(chosen)
        passes.gradient(recorder)
        for name, change in CHANGES.items():
            found[name].append(measured(change, passes, recorder))
            print(number, name, found[name][-1], file=sys.stderr, flush=True)
    lines = []
    for name, batches in found.items():
        together, apart, gain = (math.sqrt(sum(part) / len(part)) for part in zip(*batches, strict=True))
        lines.append((name, f"{together:.3f}", f"{apart:.3f}", f"{together / apart:.2f}", f"{gain:.2f}"))
    return Table(("errors", "together", "apart", "together / apart", "gain"), lines)


if __name__ == "__main__":
    measure(__doc__.splitlines()[0], table, PAGE, MARKS)

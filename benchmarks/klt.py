"""Ratio and gradient error of policy transformer with components of the same step (feature-klt), and without, on a GPT.

    python benchmarks/klt.py                                    # goes on where the table stops
    python benchmarks/klt.py --seeds 0 --steps 0 --tokens 4096 --table build/tried.csv

The GPT is that of benchmarks/transformer_training.py, 4 layers of width 256 on letters of the standard library, with its first
weights and after some training steps of 1024 tokens. Every row is one step of so many tokens that the training has not
seen, and is written as soon as it is there:

form
    ``steps``: codec feature-coded for all tokens, and results of widening layers kept: the policy without both;
    ``widened``: the same, and these results computed again;
    ``components``: codec feature-klt, and these results kept;
    ``both``: the policy as it is;
    ``stale N``: the same with directions made N training steps before, on the batch that is measured;
ratio, error
    of everything that the step keeps but weights; of the gradient of all parameters, ||g - g'|| / ||g||.

Prints the table as markdown.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from actcodec import codecs
from actcodec.codecs import Codec
from actcodec.golden.floating import karhunen
from actcodec.policies.catalog import policy
from actcodec.policies.groups import recomputation
from actcodec.study.diagnosis import Passes, distance, norm_of
from cdu_tools.files import write_whole
from cdu_tools.report import Table
from torch import Tensor, nn
from transformer_training import Run, Text

TABLE = Path(__file__).parent.parent / "docs" / "evidence" / "klt.csv"
HEADER = ("seed", "step", "tokens", "form", "bits", "ratio", "error")
COMPONENTS = "feature-klt"
FORMS = ("steps", "widened", "components", "both")
#: Tokens of a sample; samples of a training step; training steps over which the rate rises, and the rate.
CONTEXT, BATCH, RISE, RATE = 128, 8, 50, 1e-3
WIDTH, DEPTH = 256, 4
#: Seed of the measured batch.
UNSEEN = 7


def by_steps(name: str, **options: Any) -> Codec:
    """A codec by name, feature-coded in place of feature-klt, whose name it has, as the policy's rules go by it: a factory."""
    if name != COMPONENTS:
        return codecs.codec(name, **options)
    options.pop("heads", None)
    found = codecs.codec("feature-coded", **options)
    found.name = COMPONENTS
    return found


def measured(passes: Passes, exact: list[Tensor | None], form: str, bits: float) -> tuple[float, float]:
    """Return ratio and error of a form."""
    factory = by_steps if form in ("steps", "widened") else None
    again = frozenset() if form in ("steps", "components") else recomputation.WIDENING
    with patch.object(recomputation, "WIDENING", again):
        gradient, kept = passes.outcome(policy("transformer", factory, bits=bits, backend="native"))
    assert kept is not None, "the step was compressed"
    return kept.ratio_of_everything, distance(exact, gradient) / norm_of(exact)


@contextmanager
def noted(made: list[tuple[Tensor, Tensor]]) -> Iterator[None]:
    """Append all components that are made."""
    made.clear()

    def components(sample: Tensor) -> tuple[Tensor, Tensor]:
        made.append(original(sample))
        return made[-1]

    original = karhunen.components
    with patch.object(karhunen, "components", components):
        yield


@contextmanager
def stale(made: list[tuple[Tensor, Tensor]]) -> Iterator[None]:
    """Return components that were noted, with the variances of the sample along their directions."""
    left = iter(made)

    def components(sample: Tensor) -> tuple[Tensor, Tensor]:
        _, directions = next(left)
        variances, order = (sample.double() @ directions).square().mean(0).sort(descending=True)
        return variances, directions[:, order]

    with patch.object(karhunen, "components", components):
        yield


class Gpt:
    """A GPT in training."""

    def __init__(self, seed: int) -> None:
        self._text = Text(Run("gpt", "none", seed, WIDTH, DEPTH, "cpu"))
        torch.manual_seed(seed)
        self._network: nn.Module = self._text.network(WIDTH, DEPTH).train()
        self._optimizer = torch.optim.AdamW(self._network.parameters(), RATE, weight_decay=0.05)
        self._order = torch.Generator().manual_seed(1000 + seed)
        self.step = 0

    def train(self, until: int) -> None:
        """Train to a number of steps."""
        while self.step < until:
            self.step += 1
            self._optimizer.param_groups[0]["lr"] = RATE * min(self.step / RISE, 1)
            self._optimizer.zero_grad()
            torch.autograd.backward(self._text.loss(self._network, self._text.batch(BATCH, self._order)))
            nn.utils.clip_grad_norm_(self._network.parameters(), 1.0)
            self._optimizer.step()

    def passes(self, tokens: int) -> Passes:
        """Passes of one unseen batch."""
        batch = self._text.batch(tokens // CONTEXT, torch.Generator().manual_seed(UNSEEN))
        return Passes(self._network, lambda: self._text.loss(self._network, batch))


def rows(table: Path) -> list[tuple[str, ...]]:
    """Return the rows of the table."""
    return [tuple(row) for row in csv.reader(table.read_text("utf-8").splitlines())][1:] if table.exists() else []


def missing(
    arguments: argparse.Namespace, seed: int, step: int, found: list[tuple[str, ...]]
) -> Iterator[tuple[int, str, float]]:
    """Yield tokens, form and bits that the table lacks."""
    there = {row[:5] for row in found}
    for tokens in arguments.tokens:
        for form in arguments.forms:
            for bits in arguments.bits:
                if (str(seed), str(step), str(tokens), form, f"{bits:g}") not in there:
                    yield tokens, form, bits


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    parser.add_argument("--steps", nargs="+", type=int, default=(0, 300), help="training steps before measuring")
    parser.add_argument("--tokens", nargs="+", type=int, default=(16384,))
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
    parser.add_argument("--bits", nargs="+", type=float, default=(4, 5))
    parser.add_argument("--stale", nargs="*", type=int, default=(), help="training steps between directions and measurement")
    parser.add_argument("--table", type=Path, default=TABLE)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    found = rows(arguments.table)

    def add(*row: object) -> None:
        found.append(tuple(str(part) for part in row))
        print(*row, flush=True)
        write_whole(arguments.table, Table(HEADER, sorted(found)).csv())

    for seed in arguments.seeds:
        gpt = Gpt(seed)
        for step in sorted(arguments.steps):
            gpt.train(step)
            held: dict[int, tuple[Passes, list[Tensor | None]]] = {}
            for tokens, form, bits in missing(arguments, seed, step, found):
                if tokens not in held:
                    held[tokens] = (passes := gpt.passes(tokens)), passes.gradient()
                ratio, error = measured(*held[tokens], form, bits)
                add(seed, step, tokens, form, f"{bits:g}", f"{ratio:.2f}", f"{error:.4f}")
        if arguments.stale:
            _stale(gpt, seed, arguments, add)
    print(Table(HEADER, sorted(found)).markdown())


def _stale(gpt: Gpt, seed: int, arguments: argparse.Namespace, add: Callable[..., None]) -> None:
    """Measure with directions made before some training steps."""
    tokens, bits, first = arguments.tokens[-1], arguments.bits[0], gpt.step
    made: list[tuple[Tensor, Tensor]] = []
    passes = gpt.passes(tokens)
    with noted(made):
        measured(passes, passes.gradient(), "both", bits)
    for later in (0, *sorted(arguments.stale)):
        gpt.train(first + later)
        exact = passes.gradient()
        for label, directions in (("both", nullcontext()), (f"stale {later}", stale(made))):
            with directions:
                ratio, error = measured(passes, exact, "both", bits)
            add(seed, gpt.step, tokens, label, f"{bits:g}", f"{ratio:.2f}", f"{error:.4f}")


if __name__ == "__main__":
    main()

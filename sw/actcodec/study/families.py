"""Measure gradients of models of other libraries under every policy, early and later in training.

:mod:`actcodec.policies.recommended` derives its recommendations from these measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

import torch
from cdu_tools.errors import MissingToolError
from torch import Tensor, nn

from actcodec.policies.catalog import POLICY_NAMES
from actcodec.policies.policy import CodecSpec, Policy, Rule
from actcodec.policies.recommended import ALIKE, GOOD, SHARE, OnFamily
from actcodec.policies.tables.rules import first_rules
from actcodec.saved.statistics import Statistics
from actcodec.study.check import CANDIDATES, named_policy
from actcodec.study.diagnosis import Passes
from actcodec.study.foreign import Foreign
from actcodec.study.gradient_similarity import Likeness, likeness

#: Steps of training between the first and the second measurement of policies.
STEPS = 32
_LEARNING_RATE = 1e-3
#: Every policy with its default options, and the candidates of :func:`~actcodec.study.check.check`.
POLICIES = (
    *(CodecSpec(name) for name in POLICY_NAMES if name not in ALIKE),
    *(spec for spec in CANDIDATES if spec.options),
)
#: Bits of tensors saved by normalisations, and of all others, by the policy's name: shows where few bits do harm.
BITS = {"bits 2, normalised 8": (8, 2), "bits 8, normalised 2": (2, 8)}


@dataclass(frozen=True)
class FamilyRow:
    """One policy on one model."""

    family: str
    model: str
    seed: int
    policy: str  #: name with options
    first: Likeness  #: to the gradient with random weights
    later: Likeness  #: to the gradient after training
    ratio: float  #: ratio over activations, after training
    ratio_of_everything: float

    @property
    def worse(self) -> Likeness:
        """Return the comparison farther from the exact gradient."""
        return min(self.first, self.later, key=lambda one: one.cosine)


def rows_of(foreign: Foreign, specs: Sequence[CodecSpec] = POLICIES, steps: int = STEPS, seed: int = 0) -> Iterator[FamilyRow]:
    """Yield a row for each usable policy, with seed 0 for :data:`BITS` too; the seed sets weights and random numbers.

    The model is trained without compression by AdamW, a batch per step; the gradient is that of one batch, before and after. An
    adaptive policy is one object for both: at the second measurement it uses its state of the first.
    """
    torch.manual_seed(seed)
    model = foreign.build()
    chosen = dict(_usable(specs)) | ({} if seed else {name: _split(*bits) for name, bits in BITS.items()})
    before = _tried(model, lambda: foreign.loss(model, 0), chosen.values())
    _train(model, foreign.loss, steps)
    after = _tried(model, lambda: foreign.loss(model, 0), chosen.values())
    for name, (first, _), (later, kept) in zip(chosen, before, after, strict=True):
        yield FamilyRow(foreign.family, foreign.name, seed, name, first, later, kept.ratio, kept.ratio_of_everything)


def on_family(rows: Sequence[FamilyRow]) -> OnFamily:
    """Combine a policy's rows of one family, over all models and seeds."""
    lowest: dict[str, float] = {}
    for row in rows:
        lowest[row.model] = min(row.worse.cosine, lowest.get(row.model, 1.0))
    hardest = min(lowest, key=lambda model: lowest[model])
    bad = {model: cosine for model, cosine in lowest.items() if cosine < GOOD}
    return OnFamily(
        geometric_mean(row.ratio_of_everything for row in rows),
        lowest[hardest],
        hardest,
        len(lowest),
        len(lowest) - len(bad),
        len({row.seed for row in rows}),
        bad if len(lowest) - len(bad) >= SHARE * len(lowest) else {},
    )


def _usable(specs: Sequence[CodecSpec]) -> Iterator[tuple[str, Policy]]:
    for spec in specs:
        try:
            yield named_policy(spec)
        except MissingToolError:  # no CUDA device
            continue


def _split(normalised: int, others: int) -> Policy:
    """Return a policy of ActNN's codes with these bits."""
    consumers: tuple[tuple[int, tuple[str, ...]], ...] = ((normalised, ("norm",)), (others, ()))
    rules = (Rule(CodecSpec("actnn-sample", {"bits": bits}), consumer=consumer) for bits, consumer in consumers)
    return Policy((*first_rules({}), *rules), keep_signs=True)


def _tried(model: nn.Module, step: Callable[[], Tensor], chosen: Iterable[Policy]) -> list[tuple[Likeness, Statistics]]:
    passes = Passes(model, step)
    exact = passes.gradient()
    found = []
    for policy in chosen:
        gradient, statistics = passes.outcome(policy)
        assert statistics is not None, "the step was compressed"
        found.append((likeness(exact, gradient, passes.layers), statistics))
    return found


def _train(model: nn.Module, loss: Callable[[nn.Module, int], Tensor], steps: int) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), _LEARNING_RATE)
    for number in range(1, 1 + steps):
        optimizer.zero_grad()
        torch.autograd.backward(loss(model, number))
        optimizer.step()
    optimizer.zero_grad()

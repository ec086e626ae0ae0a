"""Policy ``auto``: measure candidates on each tensor, and pick a codec for each under a budget or an error bound.

Every ``interval`` steps each tensor is compressed with every candidate, which gives bytes and the squared error
``||e_n||**2`` of each sample n. The backward pass of that step gives the gradients g at the results of the operations that
read the tensor, and :mod:`~actcodec.policies.budget.sensitivity` the share of errors that reaches the gradient, so that its
squared error is estimated as

    sum over readers of  share * sum over n of  ||g_n||**2 * ||e_n||**2

relative to the squared norm of the gradient of the parameters of those operations. The estimate takes errors as independent of
the values and of each other, as those of stochastic rounding are; benchmarks/auto_policy.py compares it with the exact gradient
error that :mod:`~actcodec.study.diagnosis` finds. The choice for the next steps is a multiple-choice knapsack
(:mod:`actcodec.policies.budget.knapsack`):

- ``ratio``: least estimated error within the bytes of a compression ratio. The ratio counts everything, what is exact and the
  signs of ReLU too, and holds over the run: bytes that some steps used too much are taken from the next ones.
- ``error``: fewest bytes with an estimated relative gradient error of no more than a bound.
- ``activation_error``: fewest bytes with a relative error ``||x - x'|| / ||x||`` of each tensor of no more than a bound.

Tensors that a rule cannot tell apart (module, operations, format) get one codec, so that the outcome can be written as a policy
of plain rules. Signs of ReLU stay exact. Until gradients were seen everything has 8 bits (``sfpr``).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from glob import escape
from typing import Any

import torch
from cdu_tools.errors import UserError
from cdu_tools.near_names import advice
from cdu_tools.numbers import is_real, is_whole

from actcodec import codecs
from actcodec.backends.named import TORCH
from actcodec.codecs import Codec
from actcodec.policies.auto.candidates import CANDIDATES, Candidate, candidate_specs
from actcodec.policies.auto.step import AutoItem, AutoStep, CandidateEstimate, ItemCodec, Undecided
from actcodec.policies.budget.knapsack import Option, lightest_choice, no_worse_choice
from actcodec.policies.policy import CODED_DTYPES, CodecFactory, CodecSpec, Policy, Rule, SavedTensor, check_state
from actcodec.policies.tables.rules import first_rules
from actcodec.saved.statistics import Statistics

#: Names of the options.
AUTO_OPTIONS = ("ratio", "error", "activation_error", "candidates", "interval", "backend")
#: Codec of a tensor that has not been measured.
START = CodecSpec("sfpr")
_RATIO, _INTERVAL = 16.0, 20
#: Attributes that count steps and bytes of a run.
_COUNTS = ("_measured_at", "_steps", "_original", "_kept", "_warned", "_held")
#: Upper limit of the options ``ratio`` and ``error``, beyond the reach of any codec.
_GREATEST = 1e6
#: (module, producer, consumer, dtype): the properties that a rule can distinguish.
ItemKey = tuple[str, str, str, torch.dtype]


def item_key(tensor: SavedTensor) -> ItemKey:
    """Return the key of a tensor."""
    return (tensor.module, tensor.producer, tensor.consumer, tensor.dtype)


class AutoPolicy(Policy):
    """Measure candidates and pick a codec for every tensor; see the module. One object serves one model.

    Parameters
    ----------
    ratio
        Compression ratio to reach, bytes before over bytes after, above 1. The default is 16 when none of the three goals is
        given.
    error
        Bound on the estimated relative gradient error of all tensors together, above 0.
    activation_error
        Bound on the relative error of each tensor, above 0.
    candidates
        Codecs to choose from, by default :data:`~actcodec.policies.auto.candidates.CANDIDATES`.
    interval
        Steps from one measurement to the next, 1 or more.
    backend
        Backend of the candidates that have this option: ``torch`` or ``native``, which produce the same bytes.
    codec_factory
        As in :class:`Policy`.

    Raises UserError for options that are not allowed. A goal that no choice reaches is met as nearly as possible, with one
    warning.
    """

    def __init__(
        self,
        ratio: float | None = None,
        error: float | None = None,
        activation_error: float | None = None,
        candidates: Sequence[Candidate] = CANDIDATES,
        interval: int = _INTERVAL,
        backend: str = TORCH,
        codec_factory: CodecFactory | None = None,
    ) -> None:
        goals = {"ratio": ratio, "error": error, "activation_error": activation_error}
        given = {name: goal for name, goal in goals.items() if goal is not None}
        if len(given) > 1:
            raise UserError(f"{' and '.join(given)} exclude each other: give one of them")
        (self._goal_name, self._goal), *_ = given.items() or (("ratio", _RATIO),)
        least = 1 if self._goal_name == "ratio" else 0
        if not (is_real(self._goal, least, _GREATEST) and self._goal > least):
            raise UserError(
                f"{self._goal_name} = {self._goal!r} is not allowed: use a number above {least}, up to {_GREATEST:g}"
            )
        if not is_whole(interval, 1):
            raise UserError(f"interval = {interval!r} is not allowed: use 1 or more steps")
        self._undecided = Undecided()
        rules = (*first_rules({}), Rule(self._undecided, dtypes=CODED_DTYPES))
        super().__init__(rules, codec_factory=codec_factory, keep_signs=True)
        factory = _on(backend, codec_factory or codecs.codec)
        self._specs, self._interval = candidate_specs(candidates), interval
        self._used = [self._made(spec, factory) for spec in self._specs]
        self._start = self._made(START, factory)
        # Measuring uses codecs of its own and so leaves the random numbers of the others alone.
        self._measuring = [factory(spec.name, **spec.options) for spec in self._specs]
        self._begin()

    def _made(self, spec: CodecSpec, factory: CodecFactory) -> Codec:
        codec = self._resolve(spec, factory)
        assert codec is not None, "exact is no candidate"
        return codec

    def _begin(self) -> None:
        self._items: dict[ItemKey, AutoItem] = {}
        self._factors: dict[ItemKey, float] = {}
        self._step: AutoStep | None = None
        self._measured_at: int | None = None
        self._steps = self._original = self._kept = 0
        self._warned = False
        self._held: int | None = None

    def restart(self, seed: int) -> None:
        """Implement :class:`Policy`. Everything learnt is forgotten."""
        super().restart(seed)
        for codec in self._measuring:
            codec.restart(seed)
        self._begin()

    def set_epoch(self, epoch: int) -> None:
        """Implement :class:`Policy`."""
        super().set_epoch(epoch)
        for codec in self._measuring:
            codec.set_epoch(epoch)

    def observer(self) -> AutoStep:
        """Implement :class:`Policy`. Decides first if the last step was measured."""
        self._conclude()
        due = self._measured_at is None or self._steps - self._measured_at >= self._interval
        self._step = AutoStep(self._undecided, self._measured_codec if due else self._codec, due)
        self._steps += 1
        return self._step

    def _conclude(self) -> None:
        """Decide from the measurements of the last step; a second call changes nothing."""
        if self._step is not None and self._step.measures:
            self._step.end()
            self._decide(self._step)

    def state_dict(self) -> dict[str, Any]:
        """Implement :class:`Policy`. Decides first if the last step was measured."""
        self._conclude()
        return super().state_dict() | {
            "measuring": [codec.state_dict() for codec in self._measuring],
            "items": [(key, item.state_dict()) for key, item in self._items.items()],
            "factors": list(self._factors.items()),
            "counts": {name: getattr(self, name) for name in _COUNTS},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Implement :class:`Policy`."""
        super().load_state_dict(state)
        check_state(state, "measuring", "items", "factors", "counts")
        for codec, one in zip(self._measuring, state["measuring"], strict=True):
            codec.load_state_dict(one)
        self._begin()
        self._items = {key: AutoItem.of_state(one, self._specs) for key, one in state["items"]}
        self._factors = dict(state["factors"])
        for name in _COUNTS:
            setattr(self, name, state["counts"][name])

    def context_closed(self, statistics: Statistics) -> None:
        """Implement :class:`Policy`."""
        assert self._step is not None, "a context opens before it closes"
        self._original += statistics.bytes_original
        self._kept += statistics.bytes_compressed
        self._step.closed(statistics)

    @property
    def estimates(self) -> dict[ItemKey, list[CandidateEstimate]]:
        """Return the last measurement's estimates for the candidates, by (module, producer, consumer, dtype)."""
        return {key: [one for one in item.estimates if one is not None] for key, item in self._items.items()}

    @property
    def choices(self) -> dict[ItemKey, CandidateEstimate]:
        """Return the estimates of the candidates in use, by (module, producer, consumer, dtype)."""
        places = ((key, item, self._place(item)) for key, item in self._items.items())
        chosen = ((key, item.estimates[place]) for key, item, place in places if place is not None)
        return {key: estimate for key, estimate in chosen if estimate is not None}

    def correct(self, factors: Mapping[ItemKey, float]) -> None:
        """Multiply the estimated gradient errors of tensors by factors from now on, and measure again in the next step.

        See :func:`~actcodec.study.calibration.calibrate`.
        """
        self._factors = dict(factors)
        self._measured_at = None

    @property
    def candidates(self) -> tuple[CodecSpec, ...]:
        """Return the codecs that the policy chooses from."""
        return self._specs

    @property
    def wanted_ratio(self) -> float:
        """Return the wanted ratio of bytes before to bytes after compression; infinite when the goal is an error."""
        return self._goal if self._goal_name == "ratio" else math.inf

    def hold(self, candidate: CodecSpec | None) -> None:
        """Use this candidate for every tensor it fits, now and after each measurement; None ends this.

        See :func:`~actcodec.study.calibration.settle`.
        """
        self._held = None if candidate is None else self._specs.index(candidate)

    def _place(self, item: AutoItem) -> int | None:
        """Return the index of the candidate that an item uses; None while nothing is chosen."""
        held = self._held is not None and bool(item.estimates) and item.estimates[self._held] is not None
        return self._held if held else item.chosen

    def everywhere(self, candidate: CodecSpec) -> Policy:
        """Return a policy of plain rules with one candidate for all tensors decided here, or ``sfpr`` if it does not fit."""
        rules = (*first_rules({}), Rule(candidate, dtypes=CODED_DTYPES), Rule(START, dtypes=CODED_DTYPES))
        return Policy(rules, keep_signs=True)

    def decided(self) -> Policy:
        """Return a policy of plain rules with the current choices, without measurements; unseen tensors get ``sfpr``."""
        rules = [
            Rule(choice.codec, (producer,), (consumer,), escape(module), (dtype,))
            for (module, producer, consumer, dtype), choice in self.choices.items()
        ]
        return Policy((*first_rules({}), *rules, Rule(START, dtypes=CODED_DTYPES)), keep_signs=True)

    def _codec(self, tensor: SavedTensor, candidates: Sequence[Codec] = ()) -> ItemCodec:
        """Return the codec of the next tensor."""
        item = self._items.setdefault(item_key(tensor), AutoItem())
        spec, codec = START, self._start
        place = self._place(item)
        if place is not None and self._used[place].fits(tensor.shape):
            spec, codec = self._specs[place], self._used[place]
        return ItemCodec(item, spec, codec, candidates)

    def _measured_codec(self, tensor: SavedTensor) -> ItemCodec:
        return self._codec(tensor, self._measuring)

    def _decide(self, step: AutoStep) -> None:
        """Choose candidates for the items that a step measured, unless its backward pass gave no finite gradient."""
        items = [item for item in self._items.values() if item.measured]
        if items and 0 < step.squared_gradient < math.inf:
            self._measured_at = self._steps - 1
            factors = {id(item): self._factors.get(key, 1.0) for key, item in self._items.items()}
            for item in items:
                item.estimate(list(zip(self._specs, self._used, strict=True)), step.squared_gradient, factors[id(item)])
            for item, place in zip(items, self._choice(items, step), strict=True):
                item.chosen = place
        for item in items:
            item.measured = []

    def _choice(self, items: Sequence[AutoItem], step: AutoStep) -> list[int]:
        """Return the index of the chosen candidate of each item."""
        fitting = [[(place, one) for place, one in enumerate(item.estimates) if one is not None] for item in items]
        if self._goal_name == "activation_error":
            # The smallest candidate within the bound; if there is none, the one with the smallest error.
            return [min(one, key=lambda pair: (max(pair[1].relative_error, self._goal), pair[1].nbytes))[0] for one in fitting]
        if self._goal_name == "error":
            limit = budget = self._goal**2
            options = [[(one.gradient_error**2, one.nbytes) for _, one in candidates] for candidates in fitting]
        else:
            limit = step.bytes_original / self._goal - step.bytes_elsewhere
            budget = limit + (self._original / self._goal - self._kept) / self._interval
            options = [[(one.nbytes, one.gradient_error**2) for _, one in candidates] for candidates in fitting]
        alike = [
            [_index(candidates, place, of_item) for candidates, of_item in zip(fitting, options, strict=True)]
            for place in range(len(self._specs))
        ]
        picked = self._picked(options, limit, budget, alike)
        return [candidates[place][0] for candidates, place in zip(fitting, picked, strict=True)]

    def _picked(
        self, options: Sequence[Sequence[Option]], limit: float, budget: float, alike: Sequence[Sequence[int]]
    ) -> tuple[int, ...]:
        """Return the knapsack's choice, or one candidate for all items (``alike``) where its estimate is better.

        Returns the lightest choice if none is within the budget, and warns if even that exceeds the limit.
        """
        lightest = lightest_choice(options)
        if lightest.weight > limit and not self._warned:
            self._warned = True
            goal = f"{self._goal_name} = {self._goal:g}"
            warnings.warn(f"policy auto cannot reach {goal} with these candidates and comes as near as it can", stacklevel=2)
        return lightest.picked if lightest.weight > budget else no_worse_choice(options, budget, alike).picked


def _index(candidates: Sequence[tuple[int, CandidateEstimate]], wanted: int, options: Sequence[Option]) -> int:
    """Return the position of ``wanted`` among the candidates that fit an item; that of the lightest one if it does not fit."""
    places = [place for place, _ in candidates]
    return places.index(wanted) if wanted in places else options.index(min(options))


def _on(backend: str, factory: CodecFactory) -> CodecFactory:
    """Return a factory whose codecs compute on a backend if they have this option."""

    def make(name: str, **options: Any) -> Codec:
        chosen = {"backend": backend} if backend != TORCH and "backend" in codecs.codec_options(name) else {}
        return factory(name, **chosen | options)

    return make


def auto_policy(codec_factory: CodecFactory | None = None, **options: Any) -> AutoPolicy:
    """Return policy ``auto`` with the options of :class:`AutoPolicy`; UserError for other options."""
    for option in options:
        if option not in AUTO_OPTIONS:
            raise UserError(f"codec 'auto' has no option {option!r}: {advice(option, AUTO_OPTIONS)}")
    return AutoPolicy(codec_factory=codec_factory, **options)

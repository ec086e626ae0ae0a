"""Correct the estimates of policy ``auto`` by one exact diagnosis.

The estimates of ``auto`` ignore the effect of an error after the operation that reads the tensor. For convolutions and linear
layers there is none: the saved tensor serves the gradient of the weights only. For normalisation it is large: besides the
gradient of gamma, the error e of the normalised values x moves the gradient at the input by
``-(gamma / sigma) * x * mean(g * e)``, a multiple of x itself, which earlier layers add up coherently. Its size
depends on those layers. A diagnosis with one codec for all tensors measures it for each; the factor between diagnosis and
estimate is then used for all candidates.

:func:`settle` compares gradients themselves: whatever the estimates are, one candidate for all tensors replaces the choice
if it keeps no more bytes and its gradient is nearer the exact one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

from cdu_tools.errors import UserError
from torch import Tensor, nn

from actcodec import codecs
from actcodec.policies.auto.policy import AutoPolicy, ItemKey, item_key
from actcodec.policies.policy import CODED_DTYPES, CodecSpec, Policy, Rule
from actcodec.policies.tables.rules import first_rules
from actcodec.saved.statistics import Statistics
from actcodec.study.diagnosis import Passes, diagnose, distance

#: Codec of the diagnosis: unbiased, takes every shape, and about as coarse as the codecs in use.
REFERENCE = CodecSpec("actnn-sample", {"bits": 2})


def calibrate(policy: AutoPolicy, model: nn.Module, step: Callable[[], Tensor]) -> dict[ItemKey, float]:
    """Compare estimates with a diagnosis of one step, pass the factors to the policy, and return them.

    Takes T + 3 passes for T tensors and leaves the model unchanged; repeat it now and then, because the factors change. Tensors
    whose estimate is zero get no factor. Parameters and errors as in :func:`~actcodec.study.diagnosis.diagnose`.
    """
    alone = AutoPolicy(ratio=2, candidates=[REFERENCE], interval=1)
    Passes(model, step).gradient(alone)
    alone.observer()  # makes the decision
    codec = codecs.codec(REFERENCE.name, **REFERENCE.options)
    everywhere = Policy((*first_rules({}), Rule(codec, dtypes=CODED_DTYPES)), keep_signs=True)
    squares: dict[ItemKey, float] = defaultdict(float)
    for tensor in diagnose(model, step, everywhere).tensors:
        squares[item_key(tensor.seen)] += tensor.gradient_error**2
    factors = {
        key: math.sqrt(squares[key]) / one.gradient_error
        for key, one in alone.choices.items()
        if squares[key] > 0 and one.gradient_error > 0
    }
    policy.correct(factors)
    return factors


def settle(policy: AutoPolicy, model: nn.Module, step: Callable[[], Tensor]) -> CodecSpec | None:
    """Ensure that the policy's choice is no worse than any single candidate; return the candidate that it now holds, or None.

    The policy's choice and every candidate alone are tried on one step. Among the candidates that keep no more bytes than the
    choice, or than the policy's ratio allows, the one with the least gradient error is held (:meth:`AutoPolicy.hold`) if
    that error is less than the choice's. Takes C + 2 passes for C candidates and leaves the model unchanged. Repeat it now
    and then, because the best choice changes. UserError if nothing has been chosen yet. Parameters and errors as in
    :func:`~actcodec.study.diagnosis.diagnose`.
    """
    policy.hold(None)
    if not policy.choices:
        raise UserError("policy auto has chosen nothing yet: let it take a training step or two, then settle")
    passes = Passes(model, step)
    exact = passes.gradient()

    def tried(chosen: Policy) -> tuple[float, Statistics]:
        gradient, kept = passes.outcome(chosen)
        assert kept is not None, "the step was compressed"
        return distance(exact, gradient), kept

    least, own = tried(policy.decided())
    allowed = max(own.bytes_compressed, own.bytes_original / policy.wanted_ratio)
    better = None
    for candidate in policy.candidates:
        error, kept = tried(policy.everywhere(candidate))
        if kept.bytes_compressed <= allowed and error < least:
            better, least = candidate, error
    policy.hold(better)
    return better

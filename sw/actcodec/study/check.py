"""Measure the effect of policies on one training step of the user: gradient, bytes, peak, time; and recommend one.

The step is repeated with the same weights, buffers, data and random numbers, without compression and with each policy.
:mod:`~actcodec.study.gradient_similarity` compares the gradients.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from cdu_tools.errors import UserError
from torch import Tensor, nn

from actcodec.backends.named import AUTO
from actcodec.policies.catalog import policy, policy_options
from actcodec.policies.policy import CodecSpec, Policy
from actcodec.policies.recommended import GOOD, NOISE, named, verdict
from actcodec.saved.allocations import allocations
from actcodec.saved.statistics import Statistics, text_table
from actcodec.study.diagnosis import Passes, norm_of
from actcodec.study.gradient_similarity import cosine, likeness

#: Policies that are tried by default.
CANDIDATES = (
    CodecSpec("brc"),
    *map(CodecSpec, ("sfpr", "sfpr+zvc")),
    *(CodecSpec(name, {"keep_signs": True}) for name in ("jpeg-act", "jpeg-gmc")),
    *(CodecSpec("actnn-L2", {"bits": bits}) for bits in (8, 6, 2)),
    *(CodecSpec("blpa-coded", {"bits": bits}) for bits in (8, 7, 6, 5)),
    *(CodecSpec("transformer", {"bits": bits}) for bits in (6, 5)),
    *map(CodecSpec, ("transformer", "actnn-L2", "blpa", "blpa-coded", "division")),
)
#: Peaks up to this multiple of the lowest count as equal.
_NEARLY = 1.02
_MIB = 1 << 20


@dataclass(frozen=True)
class PolicyCheck:
    """The results of one policy. Peaks are relative to memory before the step; ratios are relative to the tensors' own
    dtypes.
    """

    policy: str  #: name with options
    cosine: float  #: whole gradient and the exact one
    norm_ratio: float  #: norm of the gradient over that of the exact one
    worst_layer: str  #: module with the lowest cosine; empty if no layer has a gradient above rounding errors
    worst_cosine: float
    ratio: float  #: ratio over activations, see :class:`~actcodec.saved.statistics.Statistics`
    ratio_of_everything: float  #: ratio over all saved tensors except weights and buffers
    peak_bytes: int  #: most bytes given out by torch's allocator at a time, forward and backward
    seconds: float
    uncoded: str = ""  #: uncompressed tensors with reasons, if they are many

    @property
    def verdict(self) -> str:
        """``good``, ``risky`` or ``noise``, by the cosine of the whole gradient."""
        return verdict(self.cosine)


@dataclass(frozen=True)
class Check:
    """The result of :func:`check`."""

    policies: tuple[PolicyCheck, ...]
    refused: dict[str, str]  #: policies that cannot be used here, with reasons
    peak_bytes: int  #: peak without compression
    seconds: float

    @property
    def recommended(self) -> PolicyCheck | None:
        """The good policy with nearly the lowest peak that keeps the fewest bytes; None if none lowers the peak.

        Peaks differ little when weights and their gradients take most of the memory; larger batches will show the bytes.
        """
        good = [one for one in self.policies if one.verdict == "good" and one.peak_bytes < self.peak_bytes]
        least = min((one.peak_bytes for one in good), default=0)
        near = [one for one in good if one.peak_bytes <= _NEARLY * least]
        return max(near, key=lambda one: (one.ratio_of_everything, -one.seconds), default=None)

    def table(self) -> str:
        """Return a text table: a row per policy, and the recommendation."""
        rows: list[tuple[str, ...]] = [
            ("policy", "verdict", "worst layer", "cosine", "norm", "worst", "ratio", "activations", "peak MiB", "peak", "time")
        ]
        rows.append(("without", "", "", "", "", "", "", "", f"{self.peak_bytes / _MIB:.1f}", "1.00", "1.00"))
        rows += [
            (
                *(one.policy, one.verdict, one.worst_layer or "-"),
                *(f"{number:.4f}" for number in (one.cosine, one.norm_ratio, one.worst_cosine)),
                *(f"{one.ratio_of_everything:.2f}", f"{one.ratio:.2f}"),
                *(f"{one.peak_bytes / _MIB:.1f}", f"{one.peak_bytes / self.peak_bytes:.2f}"),
                f"{one.seconds / self.seconds:.2f}",
            )
            for one in self.policies
        ]
        found = self.recommended
        lines = [text_table(rows, left=3), f"good: cosine of the gradient {GOOD} or more; noise: below {NOISE}"]
        lines.append("ratio: of everything that autograd keeps but weights and buffers; beside it that of activations alone")
        lines += [f"{one.policy}: {one.uncoded}" for one in self.policies if one.uncoded][:1]
        lines += [f"{name} cannot be used here: {reason}" for name, reason in self.refused.items()]
        named = "none of these; keep the step as it is" if found is None else found.policy
        return "\n".join([*lines, f"recommended: {named}"])

    def to_data(self) -> dict[str, Any]:
        """Return plain values, as for JSON."""
        found = self.recommended
        return {
            "recommended": None if found is None else found.policy,
            "without": {"peak_bytes": self.peak_bytes, "seconds": self.seconds},
            "policies": [asdict(one) | {"verdict": one.verdict} for one in self.policies],
            "refused": self.refused,
        }


def check(
    model: nn.Module,
    step: Callable[[], Tensor],
    policies: Sequence[str | CodecSpec | Policy] = CANDIDATES,
    *,
    on_policy: Callable[[int, int], None] = lambda done, total: None,
) -> Check:
    """Try policies on one step of your own training, in seconds, before a long run.

    >>> import torch, actcodec
    >>> model, x = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 1)), torch.rand(32, 64)
    >>> found = actcodec.check(model, lambda: model(x).square().mean(), ["sfpr", "actnn"])
    >>> [one.policy for one in found.policies], found.policies[0].cosine > 0.99
    (['sfpr', 'actnn'], True)

    Parameters, their ``grad``, buffers (running statistics) and torch's random numbers are restored afterwards. Each
    policy takes two steps, one under torch's profiler for its peak, one for its time. Policies with an option ``backend`` use
    ``auto`` unless another is given.

    Parameters
    ----------
    model
        The model, in the mode (train, eval) to be measured; a gradient early in training says little about later ones.
    step
        Computes the loss, a tensor of one value with a gradient function; the same for the same weights, buffers and random
        numbers.
    policies
        Names, names with options, or policies. An adaptive policy is seen as it is in its first step.
    on_policy
        Called after each policy with the number of policies done, and the total.

    Raises UserError for unknown names and options, for a model without a parameter that requires a gradient, and if the step
    runs backward itself, or its gradient is not finite, or zero, or differs when the step is repeated.
    """
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        raise UserError(f"policies = {policies!r} is not allowed: use a list of names, or of policies")
    chosen = [named_policy(which) for which in policies]
    trial = _Trial(model, step)
    plain = trial.run(None)
    norm = norm_of(plain.gradient)
    if not (math.isfinite(norm) and norm > 0):
        raise UserError(f"the gradient has norm {norm:g}: take a step with a finite gradient that is not zero")
    again = cosine(plain.gradient, plain.repeated)
    if again < GOOD:
        raise UserError(
            f"the step repeated has a gradient of cosine {again:.3f} with the first one: take the same batch each time, and "
            "random numbers of torch's own generators"
        )
    rows, refused = [], {}
    for number, (name, one) in enumerate(chosen, 1):
        try:
            rows.append(_compared(name, trial.run(one), plain, trial.layers))
        except UserError as error:
            refused[name] = str(error)
        on_policy(number, len(chosen))
    return Check(tuple(rows), refused, plain.peak_bytes, plain.seconds)


@dataclass(frozen=True)
class _Outcome:
    """The step of one policy."""

    gradient: list[Tensor | None]
    repeated: list[Tensor | None]  #: the gradient of the second step
    statistics: Statistics | None
    peak_bytes: int
    seconds: float


class _Trial:
    """Repeat a step from the same state."""

    def __init__(self, model: nn.Module, step: Callable[[], Tensor]) -> None:
        self._passes = Passes(model, step)
        self.layers = self._passes.layers
        self._devices = {parameter.device for parameter in self._passes.parameters if parameter.device.type == "cuda"}

    def run(self, chosen: Policy | None) -> _Outcome:
        """Run a step under the profiler, which also warms up, then one for the clock."""
        peak, (gradient, statistics) = self._peak(lambda: self._passes.outcome(chosen))
        self._wait()
        begin = time.perf_counter()
        repeated = self._passes.gradient(chosen)
        self._wait()
        return _Outcome(gradient, repeated, statistics, peak, time.perf_counter() - begin)

    def _wait(self) -> None:
        """Wait until all devices have finished their work."""
        for device in self._devices:
            torch.cuda.synchronize(device)

    def _peak(self, run: Callable[[], Any]) -> tuple[int, Any]:
        if not self._devices:
            seen = allocations(run)
            return seen.peak, seen.result
        before = sum(torch.cuda.memory_allocated(device) for device in self._devices)
        for device in self._devices:
            torch.cuda.reset_peak_memory_stats(device)
        result = run()
        return sum(torch.cuda.max_memory_allocated(device) for device in self._devices) - before, result


def named_policy(which: str | CodecSpec | Policy) -> tuple[str, Policy]:
    """Return a policy and its name. The backend is ``auto`` if the policy has that option and no other is given.

    UserError for what is no policy.
    """
    if isinstance(which, Policy):
        origin = which.origin
        return (type(which).__name__ if origin is None else named(origin)), which
    if not isinstance(which, (str, CodecSpec)):
        raise UserError(f"a {type(which).__name__} is no policy here: use a name, a CodecSpec, or a Policy")
    spec = CodecSpec(which) if isinstance(which, str) else which
    backend = {"backend": AUTO} if "backend" in policy_options(spec.name) else {}
    return named(spec), policy(spec.name, **(backend | spec.options))


def _compared(name: str, found: _Outcome, plain: _Outcome, layers: Sequence[str]) -> PolicyCheck:
    alike = likeness(plain.gradient, found.gradient, layers)
    assert found.statistics is not None, "the step was compressed"
    return PolicyCheck(
        name,
        alike.cosine,
        alike.norm_ratio,
        alike.worst_layer,
        alike.worst_cosine,
        found.statistics.ratio,
        found.statistics.ratio_of_everything,
        found.peak_bytes,
        found.seconds,
        found.statistics.much_uncoded,
    )

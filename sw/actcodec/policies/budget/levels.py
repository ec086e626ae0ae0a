"""The levels of ActNN as policies (section 5.2).

========  ==========================================================================================================
actnn-L0  nothing is compressed
actnn-L1  4 bits for tensors that convolutions save, the rest exact
actnn-L2  4 bits for everything
actnn-L3  2 bits on average, divided among layers and samples (:mod:`actcodec.policies.budget.mixed_precision`)
actnn-L4  L3, with compressed tensors moved to host memory while the forward pass continues (CUDA)
actnn-L5  L4, and memory that CUDA's allocator holds in unused pieces is given back when they are too many (CUDA)
========  ==========================================================================================================

At all levels but L0 ReLU keeps its signs in one bit per value, also beside the values that the next layer wants, and dropout
its mask; losses and softmax results stay exact.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from cdu_tools.errors import MissingToolError, UserError

from actcodec.codecs.actnn.sample_groups import ActnnSampleCodec
from actcodec.offload.host_swap import HostSwap
from actcodec.policies.budget.mixed_precision import MixedPrecisionPolicy
from actcodec.policies.policy import CODED_DTYPES, EXACT, CodecFactory, Policy, Rule
from actcodec.policies.tables.modes import exact_policy
from actcodec.policies.tables.rules import first_rules

_QUANTISER_OPTIONS = ("group", "rounding", "seed", "backend")
_UNIFORM_OPTIONS = ("bits", *_QUANTISER_OPTIONS)
_MIXED_OPTIONS = (*_UNIFORM_OPTIONS, "interval", "average")
#: Names of the levels, with the options that they take.
LEVELS: dict[str, tuple[str, ...]] = {
    "actnn-L0": (),
    "actnn-L1": _UNIFORM_OPTIONS,
    "actnn-L2": _UNIFORM_OPTIONS,
    "actnn-L3": _MIXED_OPTIONS,
    "actnn-L4": _MIXED_OPTIONS,
    "actnn-L5": _MIXED_OPTIONS,
}
_UNIFORM_BITS, _MEAN_BITS = 4, 2
#: L5 releases memory when less than this part of the allocator's memory is in use.
_LEAST_USED = 0.2


def level_policy(level: str, codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return the policy of a level, ``actnn-L0`` to ``actnn-L5``.

    Options of L1 and L2: bits (4), group (256), rounding, seed, backend, as for codec ``actnn-sample``. Options of L3 to L5:
    bits, the mean (2; any number from 1 to 8), group, rounding, seed, backend, and interval (20) and average (0) as for
    :class:`~actcodec.policies.budget.mixed_precision.MixedPrecisionPolicy`. L0 has none. UserError for others.

    Without a CUDA device L4 warns and works as L3; L5 raises MissingToolError there, because it differs from L4 only in the
    use of CUDA's allocator.
    """
    if level not in LEVELS:
        raise UserError(f"unknown level {level!r}: use {', '.join(LEVELS)}")
    for option in options:
        if option not in LEVELS[level]:
            choice = f"use {', '.join(LEVELS[level])}" if LEVELS[level] else "it has none"
            raise UserError(f"codec {level!r} has no option {option!r}: {choice}")
    if level == "actnn-L0":
        return exact_policy(codec_factory)
    quantiser = {name: options[name] for name in _QUANTISER_OPTIONS if name in options}
    if level in ("actnn-L1", "actnn-L2"):
        codec = ActnnSampleCodec(options.get("bits", _UNIFORM_BITS), **quantiser)
        rules = _rules(codec, ("conv",) if level == "actnn-L1" else ())
        return Policy(rules, EXACT, codec_factory, keep_signs=True)
    swaps, gives_back = level != "actnn-L3", level == "actnn-L5"
    _check_device(level, swaps, gives_back)
    codec = ActnnSampleCodec(**quantiser)
    return MixedPrecisionPolicy(
        _rules(codec),
        codec,
        options.get("bits", _MEAN_BITS),
        codec_factory=codec_factory,
        swap=HostSwap() if swaps else None,
        least_used=_LEAST_USED if gives_back else None,
        **{name: options[name] for name in ("interval", "average") if name in options},
    )


def _rules(codec: ActnnSampleCodec, consumers: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    """Return rules with the codec for tensors that some operations save, or for all tensors."""
    return (*first_rules({"backend": codec.backend}), Rule(codec, consumer=consumers, dtypes=CODED_DTYPES))


def _check_device(level: str, swaps: bool, gives_back: bool) -> None:
    if torch.cuda.is_available() or not swaps:
        return
    if gives_back:
        raise MissingToolError(
            f"{level} is about the memory that CUDA's allocator holds, and there is no CUDA device here: use actnn-L3"
        )
    warnings.warn(f"{level} swaps to host memory, where tensors on the CPU already are: it is actnn-L3 here", stacklevel=3)

"""Which policies are good for which kind of network, and which are stable, as benchmarks/families.py has measured it.

The gradient of a policy is *good* where its cosine with the exact one is :data:`GOOD` or more, with every seed, before training
and after it. A policy is good for a family of networks if it is on :data:`SHARE` of its models, and the others are named;
recommended is the densest of these, that with the highest ratio of everything that autograd keeps. A named policy is *stable*
if it is good for some family, with its own options or with others that were measured, and *experimental* if it is good for
none: these are published forms, kept for comparison under their papers' names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from actcodec.policies.kernels import GPU, kernels_of
from actcodec.policies.policy import CodecSpec

#: A gradient whose cosine with the exact one is at least the first is good, below the second it is noise.
GOOD, NOISE = 0.99, 0.9
#: Part of a family's models on which the gradients of a policy that is good for it are good.
SHARE = 0.95
STABLE, EXPERIMENTAL = "stable", "experimental"
#: Policies that move tensors to other memory, and those whose gradients they have.
ALIKE = {"vdnn": "none", "actnn-L4": "actnn-L3", "actnn-L5": "actnn-L3"}
_MEASURED = "measured.json"


@dataclass(frozen=True)
class OnFamily:
    """A policy on all models of a family."""

    ratio: float  #: of everything, geometric mean
    cosine: float  #: lowest of all models and seeds, before training and after
    hardest: str  #: the model that has it
    models: int
    good_models: int  #: those on which the gradient is good with every seed
    seeds: int  #: with one alone the policy was not good for the family, and was not tried again
    exceptions: Mapping[str, float] = field(default_factory=dict)  #: lowest cosines of the models beside the good ones

    @property
    def good(self) -> bool:
        """Return whether the gradient is good on enough of the models."""
        return self.good_models >= SHARE * self.models


@dataclass(frozen=True)
class Measured:
    """A policy with its options, and what came of it in each family, by the family's name."""

    policy: CodecSpec
    families: Mapping[str, OnFamily]

    @property
    def text(self) -> str:
        """Name and options, as in ``sfpr keep_signs=True``."""
        return named(self.policy)


def verdict(cosine: float) -> str:
    """``good``, ``risky`` or ``noise``: what the cosine of a gradient with the exact one says."""
    return "good" if cosine >= GOOD else "risky" if cosine >= NOISE else "noise"


def named(spec: CodecSpec) -> str:
    """Name and options in a line."""
    return " ".join([spec.name, *(f"{name}={value}" for name, value in spec.options.items())])


@cache
def measured() -> tuple[Measured, ...]:
    """All policies that were measured."""
    rows = json.loads(files(__package__).joinpath(_MEASURED).read_text("utf-8"))
    return tuple(
        Measured(CodecSpec(row["policy"], row["options"]), {name: OnFamily(**found) for name, found in row["families"].items()})
        for row in rows
    )


def families() -> tuple[str, ...]:
    """Names of the families."""
    return tuple(measured()[0].families)


def recommended(family: str, among: Callable[[str], bool] = lambda name: True) -> Measured:
    """The densest policy that is good for a family, of those whose names are ``among``."""
    good = (one for one in measured() if one.families[family].good and among(one.policy.name))
    return max(good, key=lambda one: one.families[family].ratio)


def has_kernels(name: str) -> bool:
    """Return whether backends compute the codecs of a named policy."""
    return bool(kernels_of(name))


def has_gpu_kernels(name: str) -> bool:
    """Return whether a GPU has kernels for the codecs of a named policy."""
    return GPU in kernels_of(name)


def exceptions(family: str, among: Callable[[str], bool] = lambda name: True) -> str:
    """The models of a family on which its recommended policy is not good, and their cosines, in words; empty without any."""
    found = recommended(family, among).families[family].exceptions
    return ", ".join(f"{model} ({cosine:.3f})" for model, cosine in found.items())


def good_for(name: str, options: bool = True) -> tuple[str, ...]:
    """The families for which a named policy is good, with any of the ``options`` that were measured or with none."""
    its = [one for one in measured() if one.policy.name == ALIKE.get(name, name) and (options or not one.policy.options)]
    return tuple(family for family in families() if any(one.families[family].good for one in its))


def status(name: str) -> str:
    """``stable`` or ``experimental``, of a named policy."""
    return STABLE if good_for(name) else EXPERIMENTAL

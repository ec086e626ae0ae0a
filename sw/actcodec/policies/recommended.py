"""Tell which policies are good for which kind of network, and which are stable, from measurements of benchmarks/families.py.

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

#: A gradient is good if its cosine with the exact one is at least the first, and noise if it is below the second.
GOOD, NOISE = 0.99, 0.9
#: Part of a family's models that must have good gradients for a policy to be good for the family.
SHARE = 0.95
STABLE, EXPERIMENTAL = "stable", "experimental"
#: Policies that move tensors to other memory, with the policy that has the same gradients.
ALIKE = {"vdnn": "none", "actnn-L4": "actnn-L3", "actnn-L5": "actnn-L3"}
_MEASURED = "measured.json"


@dataclass(frozen=True)
class OnFamily:
    """The results of a policy on all models of a family."""

    ratio: float  #: ratio over all saved tensors, geometric mean
    cosine: float  #: lowest of all models and seeds, before training and after
    hardest: str  #: model with the lowest cosine
    models: int
    good_models: int  #: models with a good gradient for every seed
    seeds: int  #: number of seeds; with 1 the policy failed on the family and was not tried again
    exceptions: Mapping[str, float] = field(default_factory=dict)  #: lowest cosines of the models beside the good ones

    @property
    def good(self) -> bool:
        """Return whether the gradient is good on enough of the models."""
        return self.good_models >= SHARE * self.models


@dataclass(frozen=True)
class Measured:
    """A policy with its options, and its results by name of the family."""

    policy: CodecSpec
    families: Mapping[str, OnFamily]

    @property
    def text(self) -> str:
        """Return name and options, as in ``sfpr keep_signs=True``."""
        return named(self.policy)


def verdict(cosine: float) -> str:
    """Return ``good``, ``risky`` or ``noise`` for the cosine of a gradient with the exact one."""
    return "good" if cosine >= GOOD else "risky" if cosine >= NOISE else "noise"


def named(spec: CodecSpec) -> str:
    """Return name and options in one line."""
    return " ".join([spec.name, *(f"{name}={value}" for name, value in spec.options.items())])


@cache
def measured() -> tuple[Measured, ...]:
    """Return all policies that were measured."""
    rows = json.loads(files(__package__).joinpath(_MEASURED).read_text("utf-8"))
    return tuple(
        Measured(CodecSpec(row["policy"], row["options"]), {name: OnFamily(**found) for name, found in row["families"].items()})
        for row in rows
    )


def families() -> tuple[str, ...]:
    """Return the names of the families."""
    return tuple(measured()[0].families)


def recommended(family: str, among: Callable[[str], bool] = lambda name: True) -> Measured:
    """Return the policy with the highest ratio that is good for a family, of those whose names satisfy ``among``."""
    good = (one for one in measured() if one.families[family].good and among(one.policy.name))
    return max(good, key=lambda one: one.families[family].ratio)


def has_kernels(name: str) -> bool:
    """Return whether backends compute the codecs of a named policy."""
    return bool(kernels_of(name))


def has_gpu_kernels(name: str) -> bool:
    """Return whether a GPU has kernels for the codecs of a named policy."""
    return GPU in kernels_of(name)


def exceptions(family: str, among: Callable[[str], bool] = lambda name: True) -> str:
    """Return a phrase naming the models of a family on which its recommended policy is not good, with cosines, or ""."""
    found = recommended(family, among).families[family].exceptions
    return ", ".join(f"{model} ({cosine:.3f})" for model, cosine in found.items())


def good_for(name: str, options: bool = True) -> tuple[str, ...]:
    """Return the families for which a named policy is good, with any of the measured ``options`` or without options."""
    its = [one for one in measured() if one.policy.name == ALIKE.get(name, name) and (options or not one.policy.options)]
    return tuple(family for family in families() if any(one.families[family].good for one in its))


def status(name: str) -> str:
    """Return the status of a named policy, ``stable`` or ``experimental``."""
    return STABLE if good_for(name) else EXPERIMENTAL

"""Warn of codes for the inputs of normalisations with so few bits that the gradient through them is noise.

The backward pass of a normalisation removes from the gradient its part along the normalised values, so that an error of
these values reaches all earlier layers. benchmarks/families.py measured it: with 2 bits for tensors saved by normalisations,
and 8 for all others, next to nothing is left of the gradient on models of four of seven families.
"""

from __future__ import annotations

from torch import Tensor

from actcodec.codecs import Codec
from actcodec.policies.policy import Policy, SavedTensor
from actcodec.policies.recommended import named

#: Bits with which the gradient is noise.
FEW_BITS = 2
#: Bits that suffice for most networks.
ENOUGH_BITS = 4


class FewBitsWarning(UserWarning):
    """A policy gives a noisy gradient for a tensor that it has met."""


def warning_of(policy: Policy, tensor: SavedTensor, codec: Codec) -> str | None:
    """Return the warning for a codec that a policy has chosen for a tensor; None if nothing is known against it."""
    bits = getattr(codec, "bits", None)
    if isinstance(bits, Tensor):
        bits = float(bits.double().mean())
    if tensor.consumer != "norm" or bits is None or bits > FEW_BITS:
        return None
    who = type(policy).__name__ if policy.origin is None else f"policy {named(policy.origin)!r}"
    where = f"{tensor.function} of module {tensor.module!r}" if tensor.module else tensor.function
    return (
        f"{who} keeps {bits:.3g} bits of what {where} normalises, which often makes noise of the gradient: give it "
        f"{ENOUGH_BITS} bits or more, or take a recommended policy (docs/user/policies.md, actcodec.check)"
    )

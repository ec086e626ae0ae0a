"""A tensor that a normalisation saves, and codes of so few bits that the gradient through it is noise.

The backward pass of a normalisation takes from the gradient what lies along the normalised values, so that their error goes to
all layers before. benchmarks/families.py has measured it: with 2 bits for what normalisations save, and 8 for all the rest,
next to nothing is left of the gradient on models of four of seven families.
"""

from __future__ import annotations

from torch import Tensor

from actcodec.codecs import Codec
from actcodec.policies.policy import Policy, SavedTensor
from actcodec.policies.recommended import named

#: Bits of codes that are few.
FEW_BITS = 2
#: Bits that are enough in most networks.
ENOUGH_BITS = 4


class FewBitsWarning(UserWarning):
    """A policy is known to be noise for what it meets."""


def warning_of(policy: Policy, tensor: SavedTensor, codec: Codec) -> str | None:
    """What to say of a codec that a policy has chosen for a tensor; None where nothing is known against it."""
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

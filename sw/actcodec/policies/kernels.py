"""List the codecs without kernels on GPUs, and word the warnings for policies that meet a tensor there with one of them."""

from __future__ import annotations

import warnings

from cdu_tools.errors import MissingToolError

from actcodec.backends.named import TRITON
from actcodec.codecs import Codec
from actcodec.policies.catalog import policy, policy_options
from actcodec.policies.policy import Policy

#: Codecs that have backends but no GPU kernels: torch's operations compute them there. Other codecs have kernels (backend
#: ``triton``), or consist of torch operations only.
WITHOUT_GPU_KERNELS = frozenset(
    (
        *("autoquantz", "blpa-float", "division-float", "actnn-float", "acgc-quant", "acgc-quantz"),
        *("blpa-coded", "feature-coded", "feature-klt", "cusz", "jpeg-base", "acgc-jpeg"),
    )
)
#: Codecs among these whose entropy coder runs on the host, which costs a copy there and back for each tensor.
ON_THE_HOST = frozenset(("blpa-coded", "feature-coded", "feature-klt", "cusz", "jpeg-base", "acgc-jpeg"))
CPU, GPU = "CPU", "GPU"


class KernelsWarning(UserWarning):
    """A policy runs without kernels where its tensors are."""


def kernels_of(name: str) -> tuple[str, ...]:
    """Return the devices on which a named policy has kernels for all its codecs: ``CPU`` (``native``), ``GPU`` (``triton``)."""
    if "backend" not in policy_options(name):
        return ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # levels that move tensors say that there is nothing to move
        try:
            codecs = policy(name).codecs_of_rules
        except MissingToolError:  # its memory is that of a CUDA device
            return ()
    return (CPU,) if any(codec.name in WITHOUT_GPU_KERNELS for codec in codecs) else (CPU, GPU)


def warning_of(chosen: Policy, codec: Codec) -> str | None:
    """Return the warning for a codec that a policy has chosen on a GPU; None where it has kernels there, or needs none."""
    if codec.name not in WITHOUT_GPU_KERNELS:
        return None
    who = type(chosen).__name__ if chosen.origin is None else f"policy {chosen.origin.name!r}"
    host = ", and its entropy coder runs on the host, to which every tensor is copied" if codec.name in ON_THE_HOST else ""
    return (
        f"{who}: codec {codec.name!r} has no kernels for GPUs, so that torch's operations compute it{host}; the table in "
        "docs/user/policies.md names policies that have kernels there"
    )


def warning_of_backend(chosen: Policy) -> str | None:
    """Return the warning for a policy whose codecs were given backend ``triton``, before it meets a tensor."""
    given = [codec for codec in chosen.codecs_of_rules if getattr(codec, "backend", None) == TRITON]
    given.sort(key=lambda codec: codec.name not in ON_THE_HOST)
    return next((said for codec in given if (said := warning_of(chosen, codec)) is not None), None)

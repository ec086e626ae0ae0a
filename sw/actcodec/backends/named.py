"""Selection of a backend by name: the golden model, kernels, and the backends that other packages add."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from cdu_tools.distribution import missing
from cdu_tools.errors import UserError

from actcodec.backends.auto_backend import AutoBackend
from actcodec.backends.backend import Backend
from actcodec.backends.native.backend import NativeBackend
from actcodec.backends.torch_backend import TorchBackend
from actcodec.backends.triton.available import triton_backend

#: Name of the golden model as a backend.
TORCH = "torch"
#: Name of the compiled kernels as a backend.
NATIVE = "native"
#: Name of the kernels for GPUs as a backend.
TRITON = "triton"
#: Name of the backend that takes the fastest of these for each tensor.
AUTO = "auto"
#: Group of the entry points that other packages add backends with.
BACKEND_GROUP = "actcodec.backends"


def added() -> dict[str, EntryPoint]:
    """Return the backends that installed packages add, by name."""
    return {entry.name: entry for entry in entry_points(group=BACKEND_GROUP)}


def backend(which: str | Backend) -> Backend:
    """Return a backend by name, or the given one.

    ``torch`` is the golden model. ``native`` produces the same bytes with kernels that are compiled on first use
    (:mod:`actcodec.backends.native`), ``triton`` with kernels for GPUs (:mod:`actcodec.backends.triton`). ``auto`` uses the
    fastest of these for each tensor: ``native`` on the CPU, if there is a compiler, ``triton`` on CUDA devices, if Triton is
    installed. Other packages add backends as entry points of the group ``actcodec.backends``: functions that take the part of
    the name after the colon (None without a colon) and return a :class:`Backend`. For example, ``rtl`` simulates the compiled
    unit of configuration ``tiny``, and ``rtl:paper`` that of configuration ``paper``.

    Raises UserError for an unknown name and MissingToolError if the package or compiler that a backend needs is not installed.
    """
    if isinstance(which, Backend):
        return which
    if which == TORCH:
        return TorchBackend()
    if which == NATIVE:
        return NativeBackend()
    if which == TRITON:
        return triton_backend()
    if which == AUTO:
        return AutoBackend()
    name, colon, argument = which.partition(":") if isinstance(which, str) else ("", "", "")
    found = added()
    if name not in found:
        names = ", ".join(repr(known) for known in (TORCH, NATIVE, TRITON, AUTO, *found))
        raise UserError(f"unknown backend {which!r}: use {names}, or an object derived from actcodec.codecs.Backend")
    try:
        make = found[name].load()
    except ModuleNotFoundError as error:
        raise missing(f"the package {error.name} of backend {name!r}", "verify") from error
    made = make(argument if colon else None)
    assert isinstance(made, Backend), f"{found[name].value} did not return a Backend"
    return made

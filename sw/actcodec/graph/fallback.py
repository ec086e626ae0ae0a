"""The policy of hooks for a model that the compiler does not compile."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from cdu_tools.errors import UserError
from torch import nn
from torch.nn.parameter import is_lazy

from actcodec.backends.named import AUTO
from actcodec.graph.formats import format_of
from actcodec.graph.integers import Integers
from actcodec.graph.partition import KEEP
from actcodec.graph.torch_private import CompilerError, compiles_recurrent_layers
from actcodec.policies.catalog import policy_options
from actcodec.training import compress_activations
from actcodec.training.selection import check_shapes


class NotCompiledWarning(UserWarning):
    """A model that does not compile runs as it was written, with hooks; or a part of it does, with all values kept."""


def warn_of_recurrent_layers(model: nn.Module) -> None:
    """Warn of layers at which the compiler leaves the function that calls them."""
    layers = [(name, type(one).__name__) for name, one in model.named_modules() if isinstance(one, nn.RNNBase)]
    if layers and not compiles_recurrent_layers():
        name, kind = layers[0]
        warnings.warn(
            f"{name or 'the model'} is an nn.{kind}, which torch.compile does not compile: its values, and those of the rest "
            "of the function that calls it, are kept as they are; compress_activations codes them",
            NotCompiledWarning,
            stacklevel=3,
        )


def hooks_policy(name: str) -> str:
    """Return the policy of ``compress_activations`` that is nearest to a format of compiled graphs."""
    if name == KEEP:
        return "none"
    return "int8-rows" if isinstance(format_of(name), Integers) else name


class Fallback:
    """Calls a compiled model, or the model as it was written with hooks from when the compiler has failed.

    The compiler can fail in the first call in training, in evaluation, with gradients and without. What such a call has done to
    buffers and random numbers is undone. Failures in later calls are raised, as they are of ``torch.compile``.

    Parameters
    ----------
    model
        Its own tensors are not coded.
    compiled_call
        Calls the compiled model.
    policy
        The format that compiled graphs code in.
    """

    def __init__(self, model: nn.Module, compiled_call: Callable[..., Any], policy: str) -> None:
        self._model, self._call, self._policy = model, compiled_call, hooks_policy(policy)
        self._compiled: set[tuple[bool, bool]] | None = set()  # in which modes a call has ended; None once one has failed

    @torch.compiler.disable(reason="actcodec.compiled compiles this model by itself")  # type: ignore[no-untyped-call,untyped-decorator]
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model; raise UserError of the compilation as it is."""
        mode = self._model.training, torch.is_grad_enabled()
        if self._compiled is None or mode in self._compiled:
            return self._call(*args, **kwargs)
        put_back = state_of(self._model)
        try:
            found = self._call(*args, **kwargs)
        except CompilerError as error:
            raise_own(error)
            put_back()
            options: dict[str, Any] = {"backend": AUTO} if "backend" in policy_options(self._policy) else {}
            hooked = compress_activations(self._model, self._policy, **options)(partial(plain_call, self._model))
            found = hooked(*args, **kwargs)  # an error of the model itself is raised here
            self._warn(error)
            self._call, self._compiled = hooked, None
            return found
        self._compiled.add(mode)
        return found

    def _warn(self, error: Exception) -> None:
        warnings.warn(
            f"the model does not compile ({reason(error)}) and runs as it was written, with the policy {self._policy!r} of "
            "compress_activations",
            NotCompiledWarning,
            stacklevel=3,
        )


def plain_call(model: nn.Module, *args: Any, **kwargs: Any) -> Any:
    """Call a model as it was written.

    As no function of torch's own, whose code the compiler skips, it lets a model compile that is nothing but layers of torch.
    """
    return model._call_impl(*args, **kwargs)  # type: ignore[no-untyped-call]


def raise_own(error: Exception) -> None:
    """Raise the UserError that the compiler has wrapped, if it has."""
    inner = getattr(error, "inner_exception", None)
    if isinstance(inner, UserError):
        raise inner from None


def reason(error: BaseException) -> str:
    """Return the first line of what the compiler says of a failure."""
    cause = getattr(error, "inner_exception", error)
    return f"{type(cause).__name__}: {next(iter(str(cause).splitlines()), '')}"


def state_of(model: nn.Module) -> Callable[[], None]:
    """Return a function that puts back buffers and random numbers as they are now; UserError for buffers without shapes."""
    if any(map(is_lazy, model.buffers())):
        check_shapes(model)
    buffers = {buffer: buffer.clone() for buffer in model.buffers()}
    host = torch.get_rng_state()
    devices = torch.cuda.get_rng_state_all()  # of no device, where none is used

    def put_back() -> None:
        with torch.no_grad():
            for buffer, value in buffers.items():
                buffer.copy_(value)
        torch.set_rng_state(host)
        torch.cuda.set_rng_state_all(devices)

    return put_back

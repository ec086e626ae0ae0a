"""``compress_activations``: training steps whose saved activations are compressed between forward and backward."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ContextDecorator
from functools import partial
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from itertools import chain
from typing import Any, TypeVar

import torch
from cdu_spec.modes import JPEG_GMC
from cdu_tools.errors import UserError
from torch import nn

from actcodec.codecs import Codec
from actcodec.golden.sfpr import NONFINITE_POLICIES
from actcodec.policies.catalog import policy as policy_of
from actcodec.policies.kernels import KernelsWarning, warning_of_backend
from actcodec.policies.policy import EXACT, CodecFactory, Policy
from actcodec.saved.peak_memory import PeakMemory
from actcodec.saved.statistics import Statistics
from actcodec.saved.untraced import stop_tracing, untraced
from actcodec.training.compression import LEAST_BYTES, RAISE, SATURATE, Compression, Limits, check_switch
from actcodec.training.hooks import Hooks, in_checkpoint
from actcodec.training.selection import ModuleSelection, check_shapes
from actcodec.training.session import Session

_DEFEATS_CHECKPOINT = (
    "compress_activations is inside a function of torch.utils.checkpoint: what the function saves is kept, compressed, and not "
    "computed again; open the context around the checkpoint to have both"
)


@untraced
def compress_activations(
    model: nn.Module,
    codec: str | Policy | Codec = JPEG_GMC,
    *,
    measure_error: bool = False,
    measure_peak: bool = False,
    codec_factory: CodecFactory | None = None,
    nonfinite: str | None = None,
    only: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    min_bytes: int = LEAST_BYTES,
    checkpoints: bool = False,
    compress_loss: bool = False,
    double_backward: bool = False,
    **options: Any,
) -> ActivationCompression:
    """Compress tensors that autograd saves while the context is open; gradients are computed from the reconstructions.

    >>> import torch, actcodec
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
    >>> with actcodec.compress_activations(model, "jpeg-act", S=1.125) as stats:
    ...     loss = model(torch.rand(4, 1, 18, 18)).sum()
    >>> loss.backward()
    >>> stats.ratio_of_everything > 4
    True

    Returns a context that can be entered repeatedly, also within itself (every entry has its own statistics, and all share one
    policy). The context is also a decorator, and ``enable()`` and ``disable()`` switch it without a ``with``. Several contexts
    may be left in any order. A context can be pickled and copied, with its model; a copy is not entered on any thread.

    Neither the model nor any global state is changed: the context uses ``torch.autograd.graph.saved_tensors_hooks`` and a
    ``TorchFunctionMode``, both of this thread only. Backward may run outside the context, on any thread, and more than once.
    Nothing is saved, and so nothing is packed, under ``no_grad``. The innermost of nested contexts packs.

    These tensors are kept exactly: parameters and tensors that only rearrange or convert one, buffers, statistics of
    normalisation layers, integers, boolean masks and dropout masks (one bit per value), factors that apply to several values
    of the other one, masks of an attention, inputs of a checkpoint around a part of the model (unless ``checkpoints``),
    tensors of rank 0 and 1 and of few bytes, subclasses of Tensor, tensors saved by operations whose gradients do not tolerate
    an error (:mod:`actcodec.saved.gradient_needs`), losses (unless ``compress_loss``), factors of tensors that a pole reads
    (:mod:`actcodec.saved.poles`), and tensors that the policy leaves exact. They share memory with the model, so that changing
    one in place before backward raises, as it does without hooks. Compressed tensors are copies, so that changing the original
    does not matter.

    Unless the policy turns off such ``companions`` (``none`` does), only the shape is kept of the input of a pool whose values
    no other operation needs, the indices of a max pool take as many bits as its windows have positions, and float masks and
    inputs of activations that are linear within a few regions (ReLU6, clamp) take one bit per value; no gradient changes.

    A tensor that two operations save is kept once, also when they see its memory in two shapes (views, transposes, slices of a
    quarter or more): it is compressed in the shape of the first, and the others see the reconstruction in their own shape. When
    the first operation needs only signs (ReLU) and a later one needs values, the values replace the signs for both, unless the
    policy keeps the signs beside them (``keep_signs``) and the values' codec does not preserve zeros itself.

    Parameters
    ----------
    model
        The model; its parameters and buffers are recognised, and policy and statistics use its module names.
    codec
        Name of a policy (:data:`~actcodec.training.POLICY_NAMES`, mostly the name of its main codec); a :class:`Policy`; or a
        codec object for every activation that fits it.
    measure_error
        True to decompress at once and record the relative error of every tensor.
    measure_peak
        True to measure the peak of memory since the context was entered, as ``stats.peak_bytes``; this resets the peak count of
        CUDA's allocator.
    codec_factory
        ``factory(name, **options)`` makes the codecs of a named policy; the default is ``actcodec.codec``.
    nonfinite
        Treatment of tensors with NaN or infinity, or with other values that a codec cannot hold: ``exact`` (the default) keeps
        them as they are and warns once, so that an overflow reaches the gradients, where a GradScaler finds it; ``raise``
        raises in forward; ``saturate`` is the option of codecs that have it.
    only, exclude
        Names of modules, as in ``named_modules()``, with ``*`` for any letters; a name includes all modules inside. Activations
        of other modules than ``only``, or of modules in ``exclude``, are kept exactly.
    min_bytes
        Tensors of fewer bytes are kept exactly, because a header and half a millisecond cost more than they save.
    checkpoints
        True to compress the inputs of a ``torch.utils.checkpoint`` too. The checkpoint then recomputes from the reconstruction,
        the same each time; the part of the model within it sees one more error.
    compress_loss
        True to compress tensors that belong to a loss too. A loss is code outside all modules, after a module of the
        model, modules without parameters outside the model, and modules that are called a loss or
        a criterion (:mod:`actcodec.saved.loss`). By default their tensors are kept exactly, as ``loss`` in the statistics.
    double_backward
        True for losses that contain a gradient (``create_graph=True``): keeps every tensor exactly on which the values of a
        gradient with respect to inputs depend, signs of ReLU included. Only inputs of linear layers and convolutions, which
        only gradients of weights read, are then compressed.
    options
        Options of the named codec; ``keep_signs=True`` with any: a bit more per value of a ReLU, for gradients without the
        error of values that were rounded to zero. The policies ``sfpr`` and ``sfpr+zvc`` keep signs by default.

    Warns once, on exit, if more than a tenth of the bytes that autograd keeps, parameters excluded, are not compressed and
    neither the policy nor an argument asks for that; the warning states the share and the reason. Warns inside a function of
    ``torch.utils.checkpoint``, which the context would keep from saving memory; once if a policy uses so few bits for tensors
    that a normalisation saves that the gradient may be noise (:mod:`actcodec.policies.few_bits`); once if a policy has no
    kernels on the GPU of its tensors (:mod:`actcodec.policies.kernels`); and once, in backward, if values are computed from
    rounded tensors (:mod:`actcodec.saved.second_order`).

    Raises UserError for unknown codecs and options, and if ``torch.func.grad``, ``vjp``, ``jacrev`` or ``hessian`` are used
    with it, which torch does not allow. Other errors of a codec are raised in forward.
    """
    if nonfinite not in (None, EXACT, *NONFINITE_POLICIES):
        raise UserError(f"nonfinite = {nonfinite!r} is not allowed: use {EXACT}, {RAISE} or {SATURATE}")
    if nonfinite == SATURATE:
        options["nonfinite"] = SATURATE
    for switch, value in (("measure_error", measure_error), ("measure_peak", measure_peak)):
        check_switch(switch, value)
    policy = policy_of(codec, codec_factory, **options)
    if nonfinite is None and policy.origin is not None:
        nonfinite = policy.origin.options.get("nonfinite")
    said = None if policy.kernels_told else warning_of_backend(policy)
    if said is not None:
        policy.kernels_told = True
        warnings.warn(said, KernelsWarning, stacklevel=2)
    limits = Limits(ModuleSelection(model, only, exclude), min_bytes, checkpoints, compress_loss, double_backward)
    return ActivationCompression(
        model, policy, limits, measure_error=measure_error, measure_peak=measure_peak, strict=nonfinite == RAISE
    )


class UncodedWarning(UserWarning):
    """Much of the memory that autograd keeps is not compressed, though neither the policy nor an argument asks for that."""


_Function = TypeVar("_Function", bound=Callable[..., Any])
#: Decorator for methods that open a context: compiled code that reaches one is not compiled any further.
_in_compiled_code = partial(untraced, calls=False)


class ActivationCompression(ContextDecorator):
    """The context returned by :func:`compress_activations`: a policy for a model, and its state on each thread.

    Parameters
    ----------
    model
        Its parameters, buffers and module names are read at each entry, so that it may change between entries.
    policy
        Chooses codecs; one object for all entries, so that random numbers continue and learnt values are kept.
    limits
        Limits of compression that hold whatever the policy says.
    measure_error, strict
        As in :class:`~actcodec.training.compression.Compression`.
    measure_peak
        True to measure the peak of memory for the statistics.
    """

    def __init__(
        self,
        model: nn.Module,
        policy: Policy,
        limits: Limits,
        *,
        measure_error: bool = False,
        measure_peak: bool = False,
        strict: bool = False,
    ) -> None:
        self.policy = policy
        self._model, self._limits = model, limits
        self._measure_error, self._measure_peak, self._strict = measure_error, measure_peak, strict
        self._entered = _Entered()
        self._warned = False  # about uncompressed bytes
        #: Statistics of the last entry; None before the first.
        self.statistics: Statistics | None = None

    @_in_compiled_code
    def __enter__(self) -> Statistics:
        """Start to compress tensors that this thread saves. Returns the statistics, which grow as tensors are saved."""
        stop_tracing()
        check_shapes(self._model)
        if in_checkpoint():
            warnings.warn(_DEFEATS_CHECKPOINT, stacklevel=2)
        compression = Compression(self.policy, self._limits, measure_error=self._measure_error, strict=self._strict)
        peak = PeakMemory(_device_of(self._model)) if self._measure_peak else None
        session = Session(self._model, compression, peak)
        hooks = Hooks(session)
        hooks.enter()
        self._entered.hooks.append(hooks)
        self.statistics = session.statistics
        return session.statistics

    @_in_compiled_code
    def __exit__(self, kind: Any, raised: BaseException | None, trace: Any) -> None:
        """Undo the last entry of this thread; other contexts that were entered meanwhile continue."""
        stop_tracing()
        if not self._entered.hooks:
            raise UserError("this compression is not enabled on this thread: enable it first")
        said = self._entered.hooks.pop().leave(raised)
        if said and not self._warned:
            self._warned = True
            warnings.warn(said, UncodedWarning, stacklevel=2)

    def __call__(self, function: _Function) -> _Function:
        """Return ``function`` with each of its calls in an entry of its own.

        UserError for generators and coroutines, whose calls end before their code has run.
        """
        if isgeneratorfunction(function) or iscoroutinefunction(function) or isasyncgenfunction(function):
            raise UserError(
                f"{function.__qualname__} is a generator or a coroutine, which runs after its call has ended: use a `with` "
                "within it in place of the decorator"
            )
        return super().__call__(function)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickle or :mod:`copy`; a copy is not entered on any thread."""
        return {name: value for name, value in vars(self).items() if name != "_entered"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _entered=_Entered())

    def enable(self) -> Statistics:
        """Enter without a ``with``, as a callback does; see :meth:`__enter__`."""
        return self.__enter__()

    def disable(self) -> None:
        """Leave the last entry. UserError if this thread has not entered."""
        self.__exit__(None, None, None)

    def state_dict(self) -> dict[str, Any]:
        """Return the policy's state between steps, for a checkpoint; see :meth:`~actcodec.training.Policy.state_dict`."""
        return self.policy.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state; UserError for the state of another policy."""
        self.policy.load_state_dict(state)

    @property
    def enabled(self) -> bool:
        """Return whether this thread has entered."""
        return bool(self._entered.hooks)


class _Entered(threading.local):
    """The hooks that a thread has entered, the innermost last."""

    def __init__(self) -> None:
        self.hooks: list[Hooks] = []


def _device_of(model: nn.Module) -> torch.device:
    """Return the device of the first of a model's tensors."""
    return next(chain(model.parameters(), model.buffers(), [torch.empty(0)])).device

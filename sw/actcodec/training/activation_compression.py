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
from cdu_spec.bitstream import JPEG_GMC
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
from actcodec.training.compression import LEAST_BYTES, RAISE, SATURATE, Compression, Limits
from actcodec.training.hooks import Hooks, in_checkpoint
from actcodec.training.selection import ModuleSelection
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
    """Compress what autograd saves while the context is open; gradients come from the reconstructions.

    >>> import torch, actcodec
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
    >>> with actcodec.compress_activations(model, "jpeg-act", S=1.125) as stats:
    ...     loss = model(torch.rand(4, 1, 18, 18)).sum()
    >>> loss.backward()
    >>> stats.ratio_of_everything > 4
    True

    What it returns is a context that may be entered again and again, and within itself (every entry has statistics of its own
    and one policy goes through all), a decorator, and may be switched with ``enable()`` and ``disable()``. Several contexts may
    be left in any order. It may be pickled and copied, with its model; a copy is enabled nowhere.

    The model is not changed and nothing global is: the context works by ``torch.autograd.graph.saved_tensors_hooks`` and a
    ``TorchFunctionMode``, both of this thread only. Backward may run outside the context, on any thread, and more than once.
    Under ``no_grad`` nothing is saved, so nothing is packed. Of nested contexts the innermost one packs.

    Kept exactly: parameters and whatever is only a rearranged or converted copy of one, buffers, statistics of
    normalisation layers, integers, boolean masks and dropout masks (one bit per value), factors that stand for several values
    of the other one, masks of an attention, what a checkpoint around a part of the model saves (unless ``checkpoints``),
    tensors of rank 0 and 1 and of few bytes, subclasses of Tensor, what is saved by operations whose gradients would not bear
    an error (:mod:`actcodec.saved.needs`), losses (unless ``compress_loss``), factors of what a pole reads
    (:mod:`actcodec.saved.poles`), and what the policy leaves exact. As these share memory with the model, changing
    one in place before backward raises, as it does without hooks. Compressed tensors are copies, so that changing the original
    does not matter.

    Unless the policy leaves out such ``companions`` (``none`` does), no more than the shape is kept of the input of a pool that
    no other operation wants the values of, the indices of a max pool take as many bits as its windows have positions, and float
    masks and inputs of activations that are linear within a few regions (ReLU6, clamp) one bit per value; no gradient changes
    by it.

    A tensor that two operations save is kept once, also when they see its memory in two shapes (views, transposes, slices of a
    quarter or more): it is compressed in the shape of the first, and the others see the reconstruction so. When its first user
    needed only signs (ReLU) and a later one needs values, the values replace the signs for both, unless the policy keeps the
    signs beside them (``keep_signs``) and the values' codec does not keep zeros apart itself.

    Parameters
    ----------
    model
        Its parameters and buffers are recognised; its module names go to the policy and the statistics.
    codec
        Name of a policy (:data:`~actcodec.training.POLICY_NAMES`: mostly that of its main codec); a :class:`Policy`; or a codec
        object for every activation that fits it.
    measure_error
        Decompress at once and record the relative error of every tensor.
    measure_peak
        ``stats.peak_bytes`` says the most memory in use since the context was entered; the count of CUDA's allocator begins
        anew for it.
    codec_factory
        ``factory(name, **options)`` makes the codecs of a named policy; ``actcodec.codec`` unless given.
    nonfinite
        Tensors with NaN or infinity, and others whose values a codec cannot hold: ``exact`` (the default) keeps them as they
        are and warns once, so that an overflow reaches the gradients, where a GradScaler finds it; ``raise`` raises in forward;
        ``saturate`` is the option of codecs that have it.
    only, exclude
        Names of modules, as in ``named_modules()``, that stand for all that is in them, with ``*`` for any letters: activations
        of others, or of these, are kept exactly.
    min_bytes
        Tensors of fewer bytes are kept exactly: a header and half a millisecond are too much for them.
    checkpoints
        Whether what a ``torch.utils.checkpoint`` begins with is compressed too. What is computed again is then computed from
        the reconstruction, the same however often; the part of the model within it sees one more error.
    compress_loss
        Whether what belongs to a loss is compressed too. Unless it is, code outside of all modules, behind a module of the
        model, is a loss, and so are modules without parameters that are not the model's, and modules that are called a loss or
        a criterion (:mod:`actcodec.saved.loss`): what they save is kept exactly, and called ``loss`` in the statistics.
    double_backward
        For losses that contain a gradient (``create_graph=True``): keeps exactly whatever the values of a gradient by inputs
        depend on, signs of ReLU included. What is left to compress are inputs of linear layers and convolutions, which only
        gradients of weights read.
    options
        Options of the named codec; ``keep_signs=True`` with any: a bit more per value of a ReLU, for gradients without the
        error of values that were rounded to zero. The policies ``sfpr`` and ``sfpr+zvc`` keep them unless told otherwise.

    Warns once, when it is left, where more than a tenth of the bytes that autograd keeps, parameters aside, are not compressed
    and neither the policy nor an argument wants it so: the share, and why. Warns inside a function of
    ``torch.utils.checkpoint``, which the context would keep from saving memory; once where a policy keeps so few bits of what
    a normalisation saves that the gradient may be noise (:mod:`actcodec.policies.few_bits`); once where a policy has no kernels
    on the GPU that its tensors are on (:mod:`actcodec.policies.kernels`); and once, in backward, where values are computed from
    what a codec has rounded (:mod:`actcodec.saved.second_order`).

    Raises UserError for unknown codecs and options, and where ``torch.func.grad``, ``vjp``, ``jacrev`` or ``hessian`` are used
    together with it, which torch does not allow. In forward, a codec's other errors pass through.
    """
    if nonfinite not in (None, EXACT, *NONFINITE_POLICIES):
        raise UserError(f"nonfinite = {nonfinite!r} is not allowed: use {EXACT}, {RAISE} or {SATURATE}")
    if nonfinite == SATURATE:
        options["nonfinite"] = SATURATE
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
    """Much of what autograd keeps is not compressed, and nobody asked for that."""


_Function = TypeVar("_Function", bound=Callable[..., Any])
#: A context that is opened within compiled code ends the compilation of what comes after.
_in_compiled_code = partial(untraced, calls=False)


class ActivationCompression(ContextDecorator):
    """What :func:`compress_activations` returns: a policy for a model, and whether it is at work.

    Parameters
    ----------
    model
        Its parameters, buffers and module names are looked up at each entry, so that it may change between them.
    policy
        Chooses codecs; one object for all entries, so that random numbers go on and what it has learnt stays.
    limits
        What is not compressed, whatever the policy says.
    measure_error, strict
        As for :class:`~actcodec.training.compression.Compression`.
    measure_peak
        Whether the statistics know the peak of memory.
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
        self._warned = False  # of what is not compressed
        #: Of the last entry; None before the first.
        self.statistics: Statistics | None = None

    @_in_compiled_code
    def __enter__(self) -> Statistics:
        """Compress from now on what this thread saves. Returns the account, which grows as tensors are saved."""
        stop_tracing()
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
        """Save as before the last entry of this thread; other contexts that were entered meanwhile go on."""
        stop_tracing()
        if not self._entered.hooks:
            raise UserError("this compression is not enabled on this thread: enable it first")
        said = self._entered.hooks.pop().leave(raised)
        if said and not self._warned:
            self._warned = True
            warnings.warn(said, UncodedWarning, stacklevel=2)

    def __call__(self, function: _Function) -> _Function:
        """``function`` with each of its calls in an entry of its own.

        UserError for generators and coroutines, whose calls end before anything of them has run.
        """
        if isgeneratorfunction(function) or iscoroutinefunction(function) or isasyncgenfunction(function):
            raise UserError(
                f"{function.__qualname__} is a generator or a coroutine, which runs after its call has ended: use a `with` "
                "within it in place of the decorator"
            )
        return super().__call__(function)

    def __getstate__(self) -> dict[str, Any]:
        """A copy, by pickle or :mod:`copy`, is entered nowhere."""
        return {name: value for name, value in vars(self).items() if name != "_entered"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _entered=_Entered())

    def enable(self) -> Statistics:
        """Enter without a ``with``, as a callback does; see :meth:`__enter__`."""
        return self.__enter__()

    def disable(self) -> None:
        """Leave again. UserError when it is not enabled on this thread."""
        self.__exit__(None, None, None)

    def state_dict(self) -> dict[str, Any]:
        """What the policy carries from step to step, for a checkpoint: see :meth:`~actcodec.training.Policy.state_dict`."""
        return self.policy.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another run was; UserError for the state of another policy."""
        self.policy.load_state_dict(state)

    @property
    def enabled(self) -> bool:
        """Whether this thread is inside."""
        return bool(self._entered.hooks)


class _Entered(threading.local):
    """The hooks that a thread has entered, the innermost last."""

    def __init__(self) -> None:
        self.hooks: list[Hooks] = []


def _device_of(model: nn.Module) -> torch.device:
    """Where the first of a model's tensors is."""
    return next(chain(model.parameters(), model.buffers(), [torch.empty(0)])).device

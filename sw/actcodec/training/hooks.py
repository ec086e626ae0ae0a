"""``compress_activations``: a training step whose saved activations are compressed between forward and backward."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

import torch
import torch.utils.checkpoint
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from actcodec.codecs import Codec, MismatchError
from actcodec.training.cache import TensorCache
from actcodec.training.catalog import policy as policy_of
from actcodec.training.forms import BITS, Bits, Coded, Exact, Form, distinct_bytes
from actcodec.training.layout import Layout
from actcodec.training.needs import SIGNS, bears_errors
from actcodec.training.operations import (
    CHECKPOINT,
    NOT_TRACED,
    UNKNOWN,
    Operation,
    OperationTracker,
    is_parameter,
    leaf_of,
    low_precision_copy,
    plain,
    producer,
    untraced,
)
from actcodec.training.policy import EXACT, CodecFactory, GroupObserver, Policy, SavedTensor, signs_only
from actcodec.training.pool_indices import WindowPositions
from actcodec.training.regions import ExtremeBits, RegionBits, regions_of
from actcodec.training.shape_only import SHAPE, ShapeOnly
from actcodec.training.statistics import Statistics, TensorRecord, relative_error

#: Operations that may draw a float mask for a dropout within them.
_MASKING = ("dropout", "mul", "attention", "recurrent")
#: Forms without values, each of which serves the operation that it was made for and no other.
_WITHOUT_VALUES = (ShapeOnly, RegionBits, ExtremeBits)
#: Where ``torch.nn.utils.parametrize`` puts the modules that compute a weight from parameters.
_PARAMETRIZATION = "parametrizations"
#: Modules whose functions stand on the call stack between what saves a tensor and the pack hook.
_BETWEEN = (__name__, torch.autograd.function.__name__, "torch._dynamo")

_DEFEATS_CHECKPOINT = (
    "compress_activations is inside a function of torch.utils.checkpoint: what the function saves is kept, compressed, and not "
    "computed again; open the context around the checkpoint to have both"
)


@contextmanager
def compress_activations(
    model: nn.Module,
    codec: str | Policy | Codec = "jpeg-act",
    *,
    measure_error: bool = False,
    codec_factory: CodecFactory | None = None,
    **options: Any,
) -> Iterator[Statistics]:
    """Compress what autograd saves while the context is open; gradients come from the reconstructions.

    >>> import torch, actcodec
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
    >>> with actcodec.compress_activations(model, "jpeg-act", S=1.125) as stats:
    ...     loss = model(torch.rand(4, 1, 18, 18)).sum()
    >>> loss.backward()
    >>> stats.ratio > 4
    True

    The model is not changed and nothing global is: the context works by ``torch.autograd.graph.saved_tensors_hooks`` and a
    ``TorchFunctionMode``, both of this thread only. Backward may run outside the context, on any thread, and more than once.
    Under ``no_grad`` nothing is saved, so nothing is packed. Of nested contexts the innermost one packs.

    Kept exactly: parameters and whatever is only a rearranged or converted copy of one, buffers, statistics of
    normalisation layers, integers, boolean masks and dropout masks (one bit per value), factors that stand for several values
    of the other one, masks of an attention, what a checkpoint around a part of the model saves, tensors of rank 0 and 1,
    subclasses of Tensor, what is saved by operations whose gradients would not bear an error (:mod:`actcodec.training.needs`),
    and what the policy leaves exact. As these share memory with the model, changing one in place before
    backward raises, as it does without hooks. Compressed tensors are copies, so that changing the original does not matter.

    Unless the policy leaves out such ``companions`` (``none`` does), no more than the shape is kept of the input of a pool that
    no other operation wants the values of, the indices of a max pool take as many bits as its windows have positions, and float
    masks and inputs of activations that are linear within a few regions (ReLU6, clamp) one bit per value; no gradient changes
    by it.

    A tensor that two operations save is kept once. When its first user needed only signs (ReLU) and a later one needs values,
    the values replace the signs for both, unless the policy keeps the signs beside them (``keep_signs``) and the values'
    codec does not keep zeros apart itself.

    Parameters
    ----------
    model
        Its parameters and buffers are recognised; its module names go to the policy and the statistics.
    codec
        Name of a policy (:data:`~actcodec.training.POLICY_NAMES`: mostly that of its main codec); a :class:`Policy`; or a codec
        object for every activation that fits it.
    measure_error
        Decompress at once and record the relative error of every tensor.
    codec_factory
        ``factory(name, **options)`` makes the codecs of a named policy; ``actcodec.codec`` unless given.
    options
        Options of the named codec; ``keep_signs=True`` with any: a bit more per value of a ReLU, for gradients without the
        error of values that were rounded to zero.

    Warns inside a function of ``torch.utils.checkpoint``, which the context would keep from saving memory.

    Raises UserError for unknown codecs and options. In forward, a codec's errors (NaN in an activation) pass through.
    """
    if torch.compiler.is_compiling():
        torch._dynamo.graph_break(msg=NOT_TRACED)
    if untraced(_in_checkpoint)():
        warnings.warn(_DEFEATS_CHECKPOINT, stacklevel=3)
    session = _Session(model, policy_of(codec, codec_factory, **options), measure_error)
    with session.tracker, saved_tensors_hooks(untraced(session.pack), untraced(session.unpack)):
        yield session.statistics
    session.close()


class _Saved:
    """What the graph holds in place of one distinct saved tensor."""

    __slots__ = ("__weakref__", "beside", "form", "is_mask", "record")

    def __init__(self, form: Form, record: TensorRecord | None = None, signs: bool = False, beside: int = 0) -> None:
        self.form = form
        self.record = record
        self.is_mask = signs
        self.beside = beside  #: bytes of the signs and regions that other operations keep of the same tensor


class _Session:
    """State of one context."""

    def __init__(self, model: nn.Module, policy: Policy, measure_error: bool) -> None:
        self._observer = policy.observer()
        self._groups = self._observer if isinstance(self._observer, GroupObserver) else None
        self.tracker = OperationTracker(None if self._observer is None else self._finished)
        self.statistics = Statistics()
        self._policy = policy
        self._measure_error = measure_error
        self._choices = 0
        self._cache: TensorCache[_Saved] = TensorCache()
        self._module_names = {id(module): name for name, module in model.named_modules()}
        # The storages themselves are held, so that their addresses mean nothing else while the context is open.
        self._fixed = {
            storage._cdata: storage
            for tensor in (*model.parameters(), *model.buffers())
            if (storage := _storage(tensor)) is not None
        }

    def close(self) -> None:
        """Tell the policy what was kept."""
        self._policy.context_closed(self.statistics)

    def pack(self, x: Tensor) -> _Saved:
        """Pack hook: the kept form of a tensor that autograd saves."""
        with _PlainTorch():
            saved = self._pack(x)
        if isinstance(saved.form, Coded) and self.tracker.current is not None:
            self.tracker.current.saved.append(saved.form.codec)
        return saved

    def unpack(self, saved: _Saved) -> Tensor:
        """Unpack hook: the tensor for backward; the same values however often it is called."""
        form = saved.form
        if isinstance(form, Exact):
            return form.tensor()
        with _PlainTorch(), torch.no_grad(), _naming("" if saved.record is None else saved.record.name):
            return form.tensor()

    def _finished(self, operation: Operation, result: Any) -> None:
        if operation.saved and self._observer is not None:
            self._observer.finished(operation, result)

    def _pack(self, x: Tensor) -> _Saved:
        if _storage(x) is None or x.numel() == 0 or self._is_parameter(x):
            return _Saved(Exact(x))
        found = self._cache.get(x)
        reduced = self._without_values(x, found)
        if reduced is not None:
            return reduced
        if found is not None and found.record is None:
            return found
        saved = self._add_user(x, found) if found is not None else self._first(x)
        if saved is not found:
            self._cache.put(x, saved)
        return saved

    def _without_values(self, x: Tensor, found: _Saved | None) -> _Saved | None:
        """The form of a tensor of which the operation needs no values; None where it does.

        Indices of pooling become positions in windows.
        """
        operation = self.tracker.current
        if operation is None or not self._policy.companions:
            return None
        if x.dtype == torch.int64:
            positions = WindowPositions.of(x, operation)
            if positions is None:
                return None
            self.statistics.index_bytes_original += distinct_bytes(x)
            self.statistics.index_bytes_compressed += positions.nbytes
            return _Saved(positions)
        form: Form | None = ShapeOnly.of(x, operation)
        kind, beside = SHAPE, 0
        if form is None and not self._has_regions(x, operation, found):
            form, kind = regions_of(x, operation), BITS
            beside = 0 if form is None else form.nbytes
        if form is None:
            return None
        if found is None:
            saved = _Saved(form, self._record(x, self._facts(x), kind, form), beside=beside)
            self._cache.put(x, saved)
            return saved
        if found.record is not None:
            found.beside += beside
            found.record.bytes_compressed += beside
            if operation.name not in found.record.saved_by:
                found.record.saved_by += (operation.name,)
        return _Saved(form)

    def _has_regions(self, x: Tensor, operation: Operation, found: _Saved | None) -> bool:
        """Whether what is kept of a tensor anyway tells in which regions of the operation its values lie."""
        if found is not None and isinstance(found.form, Exact):
            return True
        if self._groups is None or plain(operation.function) not in SIGNS:
            return False
        return self._groups.has_signs(x, operation)

    def _first(self, x: Tensor) -> _Saved:
        if not x.is_floating_point():
            return _Saved((Bits.of(x) if x.dtype == torch.bool else None) or Exact(x))
        if x.ndim < 2:
            return _Saved(Exact(x))
        tensor = self._facts(x)
        if _PARAMETRIZATION in tensor.module.split("."):
            return _Saved(Exact(x))
        auxiliary = self._is_auxiliary(x)
        may_be_mask = tensor.consumer in _MASKING if auxiliary else tensor.consumer == "mul" and not x.requires_grad
        mask = Bits.of(x) if may_be_mask else None
        if mask is not None:
            form, kind = (mask, BITS) if self._policy.companions else (Exact(x), EXACT)
            return _Saved(form, self._record(x, replace(tensor, producer="mask"), kind, form))
        if auxiliary:
            # Made inside the operation and not differentiable: a statistic.
            return _Saved(Exact(x))
        return self._compressed(x, tensor, self._codec_for(x, tensor))

    def _codec_for(self, x: Tensor, tensor: SavedTensor) -> Codec | None:
        operation = self.tracker.current
        unsuitable = (
            Layout.of(x).overlaps
            or tensor.consumer == CHECKPOINT
            or (tensor.consumer == UNKNOWN and x.grad_fn is None)
            or (operation is not None and operation.is_side_argument(x))
        )
        return None if unsuitable else self._policy.choose(tensor)

    def _compressed(self, x: Tensor, tensor: SavedTensor, codec: Codec | None) -> _Saved:
        if codec is not None and self._observer is not None:
            codec = self._observer.codec_of(tensor, codec)
            if self._groups is not None and self.tracker.current is not None:
                codec = self._groups.member_codec(x, tensor, codec, self.tracker.current)
        with _naming(tensor.module):
            form: Form = Exact(x) if codec is None else Coded(x, codec)
            record = self._record(x, tensor, EXACT if codec is None else codec.name, form)
        if codec is not None:
            record.choice = self._choices
            self._choices += 1
            if self._groups is not None:
                self._groups.counted(codec, record)
        return _Saved(form, record, codec is not None and signs_only(codec))

    def _add_user(self, x: Tensor, saved: _Saved) -> _Saved:
        """Another operation saves a tensor that is already kept: the stronger form serves both."""
        record = saved.record
        assert record is not None
        tensor = self._facts(x)
        without_values = isinstance(saved.form, _WITHOUT_VALUES)
        if without_values or isinstance(saved.form, (Coded, Bits)):
            codec = self._codec_for(x, tensor)
            wants_exact = codec is None and not isinstance(saved.form, Bits)
            wants_values = codec is not None and (without_values or (saved.is_mask and not signs_only(codec)))
            if wants_exact or wants_values:
                stronger = self._compressed(x, tensor, codec)
                assert stronger.record is not None
                self.statistics.records.pop()
                record.codec = stronger.record.codec
                record.choice = stronger.record.choice
                record.bytes_compressed = stronger.record.bytes_compressed
                record.relative_error = stronger.record.relative_error
                if self._groups is not None:
                    if isinstance(saved.form, Coded):
                        self._groups.replaced(saved.form.codec, record)
                    if isinstance(stronger.form, Coded):
                        self._groups.replaced(stronger.form.codec, stronger.record)
                        self._groups.counted(stronger.form.codec, record)
                if without_values:
                    saved = _Saved(stronger.form, record, stronger.is_mask, saved.beside)
                elif wants_values and self._policy.keep_signs and not _keeps_zeros(stronger.form):
                    saved = _Saved(stronger.form, record, beside=saved.beside + saved.form.nbytes)
                else:
                    saved.form, saved.is_mask = stronger.form, stronger.is_mask
                record.bytes_compressed += saved.beside
        if tensor.consumer not in record.saved_by:
            record.saved_by += (tensor.consumer,)
        return saved

    def _record(self, x: Tensor, tensor: SavedTensor, codec: str, form: Form) -> TensorRecord:
        record = TensorRecord(
            name=tensor.module,
            op=tensor.producer,
            shape=tensor.shape,
            dtype=str(x.dtype).removeprefix("torch."),
            codec=codec,
            bytes_original=distinct_bytes(x),
            bytes_compressed=form.nbytes,
            relative_error=relative_error(x, form.tensor(), codec) if self._measure_error else None,
            saved_by=(tensor.consumer,),
        )
        self.statistics.records.append(record)
        return record

    def _facts(self, x: Tensor) -> SavedTensor:
        operation = self.tracker.current
        consumer = operation.name if operation is not None else CHECKPOINT if _checkpoint_saves() else UNKNOWN
        smooth = operation is not None and bears_errors(operation, x)
        return SavedTensor(producer(x), consumer, tuple(x.shape), x.dtype, self._module_name(sys._getframe(1)), smooth)

    def _module_name(self, frame: FrameType | None) -> str:
        """Name of the innermost module whose forward is on the call stack.

        Reading the stack leaves the model alone: hooks on its modules would change it, and disturb other threads.
        """
        call = nn.Module._call_impl.__code__
        while frame is not None:
            if frame.f_code is call:
                name: str | None = self._module_names.get(id(frame.f_locals["self"]))
                if name is not None:
                    return name
            frame = frame.f_back
        return ""

    def _is_parameter(self, x: Tensor) -> bool:
        """Whether ``x`` is a parameter or buffer, or a rearranged or converted copy of one."""
        if is_parameter(x) or self._is_fixed(x):
            return True
        leaf = leaf_of(x)
        if leaf is not None and (is_parameter(leaf) or self._is_fixed(leaf)):
            return True
        operation = self.tracker.current
        if operation is None:
            return False
        tensors = list(operation.tensors())
        weights = [weight for weight in operation.weights() if not _same_storage(weight, tensors[0])]
        weights += [tensor for tensor in tensors if is_parameter(tensor) or self._is_fixed(tensor)]
        if any(_same_storage(x, weight) for weight in weights):
            return True
        copied = low_precision_copy(x, operation) if x.grad_fn is None and not x.requires_grad else None
        return copied is not None and any(copied is weight for weight in weights)

    def _is_fixed(self, x: Tensor) -> bool:
        storage = _storage(x)
        return storage is not None and storage._cdata in self._fixed

    def _is_auxiliary(self, x: Tensor) -> bool:
        """Whether the running operation made ``x`` for its own use: a statistic or a mask, none of its arguments."""
        operation = self.tracker.current
        if operation is None:
            return False
        if x.grad_fn is not None or x.requires_grad:
            # Statistics of group normalisation bear a history; they are smaller than what was normalised.
            normalised = next(operation.tensors(), x) if operation.name == "norm" else x
            return x.numel() < normalised.numel() and not _same_storage(x, normalised)
        return low_precision_copy(x, operation) is None and not any(_same_storage(x, arg) for arg in operation.tensors())


@contextmanager
def _naming(module: str) -> Iterator[None]:
    """Put the name of the module whose tensor it is before what a comparison of backends found."""
    try:
        yield
    except MismatchError as error:
        raise MismatchError(f"{module}: {error}" if module else str(error)) from None


def _checkpoint_saves() -> bool:
    """Whether it is ``torch.utils.checkpoint`` that saves: its own custom function is the innermost one on the call stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _frames_module(frame).startswith(_BETWEEN):
        frame = frame.f_back
    return frame is not None and _frames_module(frame) == torch.utils.checkpoint.__name__


def _frames_module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _in_checkpoint() -> bool:
    """Whether a checkpoint's own hooks are those that the context is about to take the place of."""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return hooks is not None and hooks[0].__module__ == torch.utils.checkpoint.__name__


def _keeps_zeros(form: Form) -> bool:
    return isinstance(form, Coded) and form.codec.keeps_zeros


def _storage(x: Tensor) -> torch.UntypedStorage | None:
    """The storage of a plain strided tensor with memory; None for every other kind."""
    if type(x) not in (Tensor, nn.Parameter) or x.layout != torch.strided or x.is_meta or x.is_quantized:
        return None
    return x.untyped_storage()


def _same_storage(x: Tensor, y: Tensor) -> bool:
    mine, other = _storage(x), _storage(y)
    return mine is not None and other is not None and mine._cdata == other._cdata


class _PlainTorch:
    """While entered: torch without function modes and autocast, which must not reach into a codec's arithmetic."""

    def __enter__(self) -> None:
        self._contexts: list[AbstractContextManager[Any]] = [torch._C.DisableTorchFunction()]
        self._contexts += [torch.autocast(kind, enabled=False) for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]
        for context in self._contexts:
            context.__enter__()

    def __exit__(self, *raised: Any) -> None:
        for context in reversed(self._contexts):
            context.__exit__(*raised)

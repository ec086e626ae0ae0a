"""``compress_activations``: a training step whose saved activations are compressed between forward and backward."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from math import prod
from types import FrameType
from typing import Any

import torch
import torch.utils.checkpoint
from cdu_tools.errors import UserError
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from actcodec.codecs import Codec, MismatchError
from actcodec.golden.sfpr import NONFINITE_POLICIES, UnfitValuesError
from actcodec.policies.catalog import policy as policy_of
from actcodec.policies.policy import EXACT, CodecFactory, GroupObserver, Policy, SavedTensor, signs_only
from actcodec.saved.attention import RowSums
from actcodec.saved.cache import Found, Place, TensorCache
from actcodec.saved.forms import BITS, Bits, Coded, Exact, Form, distinct_bytes
from actcodec.saved.layout import Layout
from actcodec.saved.needs import SIGNS, bears_errors
from actcodec.saved.operations import (
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
from actcodec.saved.pool_indices import WindowPositions
from actcodec.saved.regions import ExtremeBits, RegionBits, regions_of
from actcodec.saved.shape_only import SHAPE, ShapeOnly
from actcodec.saved.statistics import (
    COMPLEX,
    MASKS,
    OTHERS,
    POOL_INDICES,
    SMALL,
    STATISTICS,
    WEIGHTS,
    Statistics,
    TensorRecord,
    integers_of,
    relative_error,
)
from actcodec.saved.views import View, codec_of

#: Operations that may draw a float mask for a dropout within them.
_MASKING = ("dropout", "mul", "attention", "recurrent")
#: Forms without values, each of which serves the operation that it was made for and no other.
_WITHOUT_VALUES = (ShapeOnly, RegionBits, ExtremeBits)
#: Where ``torch.nn.utils.parametrize`` puts the modules that compute a weight from parameters.
_PARAMETRIZATION = "parametrizations"
#: Modules whose functions stand on the call stack between what saves a tensor and the pack hook.
_BETWEEN = (__name__, torch.autograd.function.__name__, "torch._dynamo")

#: What happens to a tensor whose values its codec cannot hold: NaN, infinity, or beyond the range of a 16-bit form.
_RAISE, _SATURATE = NONFINITE_POLICIES
#: From which part of a kept tensor on a part of it is rebuilt from the whole, which has to be decompressed for it.
_LEAST_PART = 1 / 4
#: Of activations.
_LEAST_RANK = 2

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
    nonfinite: str | None = None,
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
    subclasses of Tensor, what is saved by operations whose gradients would not bear an error (:mod:`actcodec.saved.needs`),
    and what the policy leaves exact. As these share memory with the model, changing one in place before
    backward raises, as it does without hooks. Compressed tensors are copies, so that changing the original does not matter.

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
    codec_factory
        ``factory(name, **options)`` makes the codecs of a named policy; ``actcodec.codec`` unless given.
    nonfinite
        Tensors with NaN or infinity, and others whose values a codec cannot hold: ``exact`` (the default) keeps them as they
        are and warns once, so that an overflow reaches the gradients, where a GradScaler finds it; ``raise`` raises in forward;
        ``saturate`` is the option of codecs that have it.
    options
        Options of the named codec; ``keep_signs=True`` with any: a bit more per value of a ReLU, for gradients without the
        error of values that were rounded to zero.

    Warns inside a function of ``torch.utils.checkpoint``, which the context would keep from saving memory.

    Raises UserError for unknown codecs and options. In forward, a codec's other errors pass through.
    """
    if torch.compiler.is_compiling():
        torch._dynamo.graph_break(msg=NOT_TRACED)
    if untraced(_in_checkpoint)():
        warnings.warn(_DEFEATS_CHECKPOINT, stacklevel=3)
    if nonfinite not in (None, EXACT, *NONFINITE_POLICIES):
        raise UserError(f"nonfinite = {nonfinite!r} is not allowed: use {EXACT}, {_RAISE} or {_SATURATE}")
    if nonfinite == _SATURATE:
        options["nonfinite"] = _SATURATE
    policy = policy_of(codec, codec_factory, **options)
    if nonfinite is None and policy.origin is not None:
        nonfinite = policy.origin.options.get("nonfinite")
    session = _Session(model, policy, measure_error, strict=nonfinite == _RAISE)
    with session.tracker, saved_tensors_hooks(untraced(session.pack), untraced(session.unpack)):
        yield session.statistics
    session.close()


class _Saved:
    """What the graph holds in place of one distinct saved tensor."""

    __slots__ = ("__weakref__", "beside", "form", "is_mask", "record", "uncounted")

    def __init__(self, form: Form, record: TensorRecord | None = None, signs: bool = False, beside: int = 0) -> None:
        self.form = form
        self.record = record
        self.is_mask = signs
        self.beside = beside  #: bytes of the signs and regions that other operations keep of the same tensor
        self.uncounted = ""  #: what it is when it is no activation


class _Session:
    """State of one context."""

    def __init__(self, model: nn.Module, policy: Policy, measure_error: bool, *, strict: bool) -> None:
        self._observer = policy.observer()
        self._groups = self._observer if isinstance(self._observer, GroupObserver) else None
        self.tracker = OperationTracker(None if self._observer is None else self._finished)
        self.statistics = Statistics()
        self._policy = policy
        self._measure_error = measure_error
        self._strict = strict
        self._warned = False
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
        codec, operation = codec_of(saved.form), self.tracker.current
        if operation is not None:
            if codec is not None:
                operation.saved.append(codec)
            if operation.name == "attention":
                operation.packed.append((x.shape, saved))
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
            try:
                self._observer.finished(operation, result)
            except UnfitValuesError as error:
                self._refused(error, self._module_name(sys._getframe(1)))

    def _refused(self, error: UnfitValuesError, module: str) -> None:
        """A codec cannot hold the values of a tensor: warn of the first one, or raise if that is asked for."""
        found = f"{module}: " * bool(module) + str(error).partition(":")[0]
        if self._strict:
            remedy = f'correct the values, or leave out nonfinite="{_RAISE}", so that such tensors are kept exactly'
            raise type(error)(f"{found}: {remedy}") from None
        if not self._warned:
            self._warned = True
            consequence = "this tensor is kept exactly, and so are others like it in this context, without a further warning"
            warnings.warn(f'{found}: {consequence}; nonfinite="{_RAISE}" raises instead', stacklevel=2)

    def _pack(self, x: Tensor) -> _Saved:
        if _storage(x) is None or x.numel() == 0:
            return self._uncounted(x, OTHERS, Exact(x))
        if x.is_conj():  # its memory holds other values than it has
            return self._uncounted(x, COMPLEX, Exact(x))
        x = x.resolve_neg()
        found = self._cache.get(x)
        if self._is_parameter(x):
            if found is not None and isinstance(found.entry.form, Exact):
                return _seen_as(x, found)
            return self._remembered(x, self._uncounted(x, WEIGHTS, Exact(x)))
        reduced = self._without_values(x, found)
        if reduced is not None:
            return reduced
        if found is None:
            whole = self._cache.whole(x)
            if whole is None or not self._serves(whole, x):
                return self._remembered(x, self._first(x))
            found = whole
        if found.entry.record is None:
            self._count(x, found.entry)
            return _seen_as(x, found)
        return self._add_user(x, found)

    def _remembered(self, x: Tensor, saved: _Saved) -> _Saved:
        self._cache.put(x, saved)
        return saved

    def _uncounted(self, x: Tensor, what: str, form: Form) -> _Saved:
        """What is no activation."""
        self.statistics.add_uncounted(what, distinct_bytes(x), form.nbytes)
        saved = _Saved(form)
        saved.uncounted = what
        return saved

    def _count(self, x: Tensor, saved: _Saved) -> None:
        """Count what an operation kept for its own use, or as a vector, when another one saves it as an activation."""
        kept_exactly = saved.uncounted in (STATISTICS, SMALL)
        if not kept_exactly or not x.is_floating_point() or x.ndim < _LEAST_RANK or self._is_auxiliary(x):
            return
        saved.record = self._record(x, self._facts(x), EXACT, saved.form)
        self.statistics.add_uncounted(saved.uncounted, -distinct_bytes(x), -saved.form.nbytes)

    def _serves(self, whole: Found[_Saved], x: Tensor) -> bool:
        """Whether what is kept of a larger tensor is enough for a part of it, as it is and without much work."""
        if isinstance(whole.entry.form, Exact):
            return True
        if whole.entry.record is None or prod(Layout.of(x).distinct_size) < _LEAST_PART * whole.place.layout.span:
            return False
        return not self._wants_more(whole.entry, self._codec_for(x, self._facts(x)))

    def _without_values(self, x: Tensor, found: Found[_Saved] | None) -> _Saved | None:
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
            return self._uncounted(x, POOL_INDICES, positions)
        form: Form | None = ShapeOnly.of(x, operation)
        kind, beside = SHAPE, 0
        if form is None and not self._has_regions(x, operation, found):
            form, kind = regions_of(x, operation), BITS
            beside = 0 if form is None else form.nbytes
        if form is None:
            return None
        if found is None:
            return self._remembered(x, _Saved(form, self._record(x, self._facts(x), kind, form), beside=beside))
        if found.entry.record is not None:
            found.entry.beside += beside
            found.entry.record.bytes_compressed += beside
            found.entry.record.add_user(operation.name)
        return _Saved(form)

    def _has_regions(self, x: Tensor, operation: Operation, found: Found[_Saved] | None) -> bool:
        """Whether what is kept of a tensor anyway tells in which regions of the operation its values lie."""
        if found is not None and isinstance(found.entry.form, Exact):
            return True
        if self._groups is None or plain(operation.function) not in SIGNS:
            return False
        return self._groups.has_signs(x, operation)

    def _first(self, x: Tensor) -> _Saved:
        if x.dtype == torch.bool:
            return self._uncounted(x, MASKS, Bits.of(x) or Exact(x))
        tensor = self._facts(x)
        if not x.is_floating_point():
            return self._uncounted(x, COMPLEX if x.is_complex() else integers_of(tensor.consumer), Exact(x))
        if x.ndim < _LEAST_RANK:
            return self._uncounted(x, SMALL, Exact(x))
        if _PARAMETRIZATION in tensor.module.split("."):
            return self._uncounted(x, WEIGHTS, Exact(x))
        auxiliary = self._is_auxiliary(x)
        may_be_mask = tensor.consumer in _MASKING if auxiliary else tensor.consumer == "mul" and not x.requires_grad
        mask = Bits.of(x) if may_be_mask else None
        if mask is not None:
            form, kind = (mask, BITS) if self._policy.companions else (Exact(x), EXACT)
            return _Saved(form, self._record(x, replace(tensor, producer="mask"), kind, form))
        if auxiliary:
            # Made inside the operation and not differentiable: a statistic.
            operation = self.tracker.current
            sums = RowSums.of(x, operation) if operation is not None and operation.name == "attention" else None
            return self._uncounted(x, STATISTICS, sums or Exact(x))
        return self._compressed(x, tensor, self._codec_for(x, tensor))

    def _codec_for(self, x: Tensor, tensor: SavedTensor) -> Codec | None:
        operation = self.tracker.current
        unsuitable = (
            x.ndim < _LEAST_RANK
            or Layout.of(x).overlaps
            or tensor.consumer == CHECKPOINT
            or (tensor.consumer == UNKNOWN and x.grad_fn is None)
            or (operation is not None and operation.is_side_argument(x))
        )
        return None if unsuitable else self._policy.choose(tensor)

    def _compressed(self, x: Tensor, tensor: SavedTensor, codec: Codec | None) -> _Saved:
        if codec is None:
            form: Form = Exact(x)
            return _Saved(form, self._record(x, tensor, EXACT, form))
        choice = self._choices
        self._choices += 1
        if self._observer is not None:
            codec = self._observer.codec_of(tensor, codec)
            if self._groups is not None and self.tracker.current is not None:
                codec = self._groups.member_codec(x, tensor, codec, self.tracker.current)
        try:
            with _naming(tensor.module):
                form = Coded(x, codec)
                record = self._record(x, tensor, codec.name, form)
        except UnfitValuesError as error:
            self._refused(error, tensor.module)
            return self._compressed(x, tensor, None)
        record.choice = choice
        if self._groups is not None:
            self._groups.counted(codec, record)
        return _Saved(form, record, signs_only(codec))

    @staticmethod
    def _wants_more(saved: _Saved, codec: Codec | None) -> bool:
        """Whether what is kept is not enough for an operation for which ``codec`` would be chosen, or None: exact."""
        if codec is None:
            return isinstance(saved.form, _WITHOUT_VALUES) or codec_of(saved.form) is not None
        return isinstance(saved.form, _WITHOUT_VALUES) or (saved.is_mask and not signs_only(codec))

    def _add_user(self, x: Tensor, found: Found[_Saved]) -> _Saved:
        """Another operation saves memory that is already kept: the stronger form serves both."""
        saved, tensor = found.entry, self._facts(x)
        assert saved.record is not None
        saved.record.add_user(tensor.consumer)
        if not isinstance(saved.form, Exact):
            codec = self._codec_for(x, tensor)
            if self._wants_more(saved, codec):
                return self._remembered(x, self._strengthened(x, tensor, codec, found))
        return _seen_as(x, found)

    def _strengthened(self, x: Tensor, tensor: SavedTensor, codec: Codec | None, found: Found[_Saved]) -> _Saved:
        """What is kept already in a stronger form; its record stays the one of both."""
        saved, stronger = found.entry, self._compressed(x, tensor, codec)
        record = saved.record
        assert record is not None
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
        if isinstance(saved.form, _WITHOUT_VALUES):
            both = _Saved(stronger.form, record, stronger.is_mask, saved.beside)
        elif codec is not None and self._policy.keep_signs and not _keeps_zeros(stronger.form):
            both = _Saved(stronger.form, record, beside=saved.beside + saved.form.nbytes)
        else:
            both = _Saved(stronger.form, record, stronger.is_mask, saved.beside)
            saved.form, saved.is_mask = _seen_from(found.place, both, Place.of(x)), stronger.is_mask
        record.bytes_compressed += both.beside
        return both

    def _record(self, x: Tensor, tensor: SavedTensor, codec: str, form: Form) -> TensorRecord:
        record = TensorRecord(
            name=tensor.module,
            op=tensor.producer,
            shape=tensor.shape,
            dtype=str(x.dtype).removeprefix("torch."),
            codec=codec,
            bytes_original=distinct_bytes(x),
            bytes_compressed=form.nbytes,
            relative_error=self._error(x, codec, form),
            saved_by=(tensor.consumer,),
        )
        self.statistics.records.append(record)
        return record

    def _error(self, x: Tensor, codec: str, form: Form) -> float | None:
        if not self._measure_error:
            return None
        return 0.0 if isinstance(form, Exact) else relative_error(x, form.tensor(), codec)

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
    return isinstance(form, Exact) or (isinstance(form, Coded) and form.keeps_zeros)


def _seen_as(x: Tensor, found: Found[_Saved]) -> _Saved:
    """What is kept in the shape of ``x``; no other object where it has that shape."""
    place = Place.of(x)
    if place == found.place:
        return found.entry
    form = Exact(x) if isinstance(found.entry.form, Exact) else _seen_from(place, found.entry, found.place)
    return _Saved(form, found.entry.record)


def _seen_from(place: Place, saved: _Saved, origin: Place) -> Form:
    """The form of a tensor at ``place`` that follows from what is kept of one at ``origin``."""
    return saved.form if place == origin else View(place, saved, origin)


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

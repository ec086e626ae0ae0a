"""Decide how each saved tensor is kept while one context is open.

A tensor that an operation saves goes through these steps in order; a tensor that one step does not handle goes on to the next.

1. Tensors that no codec takes are kept as they are: tensors without ordinary memory (:mod:`actcodec.codecs.tensor_kinds`),
   complex numbers, parameters and buffers. The plain part of a DTensor, a jagged tensor or a similar tensor goes on.
2. Tensors whose values the operation does not read become shapes, bits, or positions in windows. These forms serve this
   operation alone.
3. Memory that is kept already is seen in the new shape, in a stronger form if the present one is not enough.
4. The rest is new: masks, statistics and small tensors are kept exactly, activations as the policy decides.

Tensors that the backward of a custom function saves while it computes a part of the model again, as a reentrant checkpoint
does, are kept as they are and not counted: they are gone when that part of backward ends.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Any

import torch
from cdu_tools.errors import UserError
from torch import Tensor, nn

from actcodec.codecs import Codec
from actcodec.codecs.tensor_kinds import kind_of, part_of, parts_in
from actcodec.golden.dtype_names import dtype_name
from actcodec.policies.policy import EXACT, SavedTensor
from actcodec.saved.arithmetic import NoFunctionModes, autocast_off
from actcodec.saved.attention import ATTENTION_RANK, RowSums, without_dropout
from actcodec.saved.cache import CacheHit, CachePlace, TensorCache
from actcodec.saved.call_stack import (
    checkpoint_saves,
    computes_again,
    custom_function_saves,
    running_modules,
    runs_compiled,
)
from actcodec.saved.facts import Facts
from actcodec.saved.forms import BITS, BitForm, Exact, Form
from actcodec.saved.gradient_needs import SIGNS, norm_of, tolerates_errors
from actcodec.saved.kept import Kept, Saved, seen_as, seen_from
from actcodec.saved.loss import Losses
from actcodec.saved.norms import guarded
from actcodec.saved.operations import (
    CHECKPOINT,
    UNKNOWN,
    Operation,
    OperationTracker,
    is_marked_weight,
    plain,
    producer,
    source,
)
from actcodec.saved.ownership import ModelTensors, made_for_itself
from actcodec.saved.peak_memory import PeakMemory
from actcodec.saved.poles import Poles
from actcodec.saved.pool_indices import WindowPositions
from actcodec.saved.regions import regions_of
from actcodec.saved.second_order import NO_TASK, SecondOrder, graph_task, weight_of
from actcodec.saved.shape_only import SHAPE, ShapeOnly
from actcodec.saved.statistics import (
    COMPLEX,
    MASKS,
    POOL_INDICES,
    SMALL,
    STATISTICS,
    WEIGHTS,
    Statistics,
    TensorRecord,
    integers_of,
)
from actcodec.saved.views import Derived, Whole, codec_of
from actcodec.training.compiled import RUNS_EAGERLY, compiler_is_loaded
from actcodec.training.compression import LEAST_RANK, Compression

#: Operations that may draw a float mask for a dropout inside them.
_MASKING = ("dropout", "mul", "attention", "recurrent")
#: Attribute in which ``torch.nn.utils.parametrize`` puts the modules that compute a weight from parameters.
_PARAMETRIZATION = "parametrizations"
#: Least part of a kept tensor that is rebuilt from the whole, because the whole has to be decompressed for it.
_LEAST_PART = 1 / 4


class Session:
    """State of one context: the forms in the graph, and their statistics.

    Parameters
    ----------
    model
        See :func:`~actcodec.training.activation_compression.compress_activations`.
    compression
        The policy of this context.
    peak
        Measurement of peak memory for the statistics.
    """

    def __init__(self, model: nn.Module, compression: Compression, peak: PeakMemory | None = None) -> None:
        modules: dict[str, nn.Module] = dict(model.named_modules())
        self._model = ModelTensors(modules.values())
        self.tracker = OperationTracker(self._finished, self._model.has)
        self.second_order = SecondOrder(compression.limits.double_backward)
        self.statistics = Statistics(peak=peak)
        self._compression = compression
        self._cache: TensorCache[Saved] = TensorCache()
        self._weights: set[object] = set()  # memory of parameters and buffers that operations have saved
        self._module_names = {id(module): name for name, module in modules.items()}
        self._losses = None if compression.limits.compress_loss else Losses(modules)
        self._poles = Poles()
        self.begun = compression.begun
        self._is_of_backward = graph_task() != NO_TASK  # opened by a function that backward calls
        self._may_be_compiled = compiler_is_loaded()  # until the warning has been given

    @property
    def much_uncoded(self) -> str:
        """One sentence about a large part kept exactly under a policy that compresses; empty otherwise."""
        return self.statistics.much_uncoded if self._compression.compresses else ""

    def _is_transient(self) -> bool:
        """Return whether what backward saves lives no longer than that of one function, such as that of a checkpoint."""
        return not self._is_of_backward and computes_again()

    def close(self) -> None:
        """Pass the statistics to the policy."""
        self.begun.end()
        self._compression.close(self.statistics)

    def leave(self) -> None:
        """Release the parts that only an open context needs; the graph holds the session and is freed by reference counting."""
        with suppress(UserError):  # after another error
            self.begun.end()
        self.tracker.on_result = None
        self._poles = Poles()

    def pack(self, x: Tensor) -> Saved:
        """Return the object that the graph holds in place of a tensor that the running operation saves."""
        if graph_task() != NO_TASK and self._is_transient():
            return Saved(Exact(x, 0))
        operation = None if custom_function_saves() else self.tracker.current
        kind = None if operation is None else operation.inside
        part = part_of(x) if kind is None else None
        kind = kind_of(x) if kind is None and part is None else kind
        if kind is not None:
            return self._uncounted(WEIGHTS if self._model.holds(x) else kind.name, Exact(x))
        if part is None:
            return self._packed(x, operation)
        saved = self._packed(part.tensor, None if operation is None else operation.on_parts())
        whole = Saved(Whole(saved, part.rebuild), saved.record, uncounted=saved.uncounted)
        whole.weights = saved.weights
        return whole

    def _packed(self, x: Tensor, operation: Operation | None) -> Saved:
        """Keep a tensor in a form, and record the form with the operation."""
        if operation is not None:
            self._poles.read(operation)
        saved = self._pack(x, operation)
        codec = codec_of(saved.form)
        if codec is not None:
            saved.weights.append(weight_of(x, operation))
        if operation is not None:
            if codec is not None:
                operation.saved.append(codec)
                operation.sources.append(source(x))
                self._poles.saved(x, saved, operation)
            if operation.name == "attention":
                operation.packed.append((x.shape, saved))
        return saved

    def _finished(self, operation: Operation, result: Any) -> None:
        if graph_task() != NO_TASK and self._is_transient():
            return
        if operation.kinds:
            if operation.inside is not None:
                return
            operation, result = operation.on_parts(), parts_in(result)
        for factor in self._poles.finished(operation, result):
            with NoFunctionModes(), autocast_off():
                self.begun.end()
            self._keep_exactly(factor.saved, factor.exact)
        if self._compression.observed:
            self._compression.finished(operation, result, self._running_module)

    def _pack(self, x: Tensor, operation: Operation | None) -> Saved:
        if x.numel() == 0:
            return self._uncounted(SMALL, Exact(x, 0))
        if x.is_conj():  # its memory holds other values than it has
            return self._uncounted(COMPLEX, Exact(x))
        facts = Facts(x.resolve_neg() if x.is_neg() else x, operation)
        if self._model.has(facts.tensor, facts.address):
            return self._weight(facts)
        found = self._ended(self._cache.get(facts))
        if self._model.own(facts) or self._is_computed_weight(facts):
            if found is not None and isinstance(found.entry.form, Exact):
                return seen_as(facts.tensor, facts.place, found)
            return self._remembered(facts, self._uncounted(WEIGHTS, Exact(facts.tensor, facts.nbytes)))
        reduced = self._without_values(facts, found)
        if reduced is not None:
            return reduced
        found = found or self._whole(facts)
        if found is None:
            return self._guarded(facts, self._remembered(facts, self._first(facts)))
        return self._guarded(facts, self._again(facts, found))

    def _weight(self, facts: Facts) -> Saved:
        """Keep a parameter or buffer, which every operation keeps exactly, and count its memory once."""
        key = facts.key, facts.place.region
        if key in self._weights:
            return Saved(Exact(facts.tensor, facts.nbytes))
        self._weights.add(key)
        return self._uncounted(WEIGHTS, Exact(facts.tensor, facts.nbytes))

    def _is_computed_weight(self, facts: Facts) -> bool:
        """Return whether a tensor is computed from weights alone (standardised, merged with adapters)."""
        operation = facts.operation
        return is_marked_weight(facts.tensor) or (
            operation is not None and not operation.makes_activations and self.tracker.of_weights(operation)
        )

    def _remembered(self, facts: Facts, saved: Saved) -> Saved:
        self._cache.put(facts, saved)
        return saved

    def _ended(self, found: CacheHit[Saved] | None) -> CacheHit[Saved] | None:
        """Return ``found``, whose compression has ended."""
        if found is not None and self.begun.pending is not None:
            self.begun.end()
        return found

    # 2.: forms that serve one operation only

    def _without_values(self, facts: Facts, found: CacheHit[Saved] | None) -> Saved | None:
        """Return the form of a tensor whose values the operation does not need; None if it needs them."""
        x, operation = facts.tensor, facts.operation
        if operation is None or operation.of_parts or not self._compression.companions:
            return None
        if x.dtype == torch.int64:
            positions = WindowPositions.of(x, operation)
            return None if positions is None else self._uncounted(POOL_INDICES, positions, facts.nbytes)
        shape = ShapeOnly.of(x, operation)
        bits = None if shape is not None or self._has_regions(x, operation, found) else regions_of(x, operation)
        form, kind = (bits, BITS) if shape is None else (shape, SHAPE)
        if form is None:
            return None
        beside = 0 if bits is None else bits.nbytes
        if found is None:
            kept = self._compression.kept_as(x, kind, form)
            return self._remembered(facts, self._counted(facts, self._described(facts), kept, beside))
        if found.entry.record is not None:
            found.entry.beside += beside
            found.entry.record.bytes_compressed += beside
            found.entry.record.add_user(operation.name)
        return Saved(form)

    def _has_regions(self, x: Tensor, operation: Operation, found: CacheHit[Saved] | None) -> bool:
        """Return whether the form kept anyway tells the regions of the operation in which the values lie."""
        if found is not None and isinstance(found.entry.form, Exact):
            return True
        return plain(operation.function) in SIGNS and self._compression.has_signs(x, operation)

    # 3.: memory that is kept already

    def _whole(self, facts: Facts) -> CacheHit[Saved] | None:
        """Return the kept form of a larger tensor if it serves for a part of it as it is and without much work."""
        whole = self._ended(self._cache.whole(facts))
        if whole is None or isinstance(whole.entry.form, Exact):
            return whole
        if whole.entry.record is None or prod(facts.layout.distinct_size) < _LEAST_PART * whole.place.layout.span:
            return None
        codec = self._compression.codec_for(facts, self._described(facts))
        return None if _is_too_weak(whole.entry, codec) else whole

    def _again(self, facts: Facts, found: CacheHit[Saved]) -> Saved:
        """Handle an operation that saves memory which is kept already: the stronger form serves both."""
        x, saved = facts.tensor, found.entry
        if saved.record is None:
            self._count(facts, saved)
            return seen_as(x, facts.place, found)
        tensor = self._described(facts)
        saved.record.add_user(tensor.consumer)
        if not isinstance(saved.form, Exact):
            codec = self._compression.codec_for(facts, tensor)
            if _is_too_weak(saved, codec):
                kept = self._compression.kept(facts, tensor, codec)
                if kept.end is not None and kept.keeps_zeros:  # which centres would undo
                    kept = kept.end()
                saved.record.uncoded = "" if codec is not None else self._compression.uncoded(facts, tensor)
                return self._remembered(facts, self._strengthened(facts.place, kept, found, saved.record))
        return seen_as(x, facts.place, found)

    def _strengthened(self, place: CachePlace, kept: Kept, found: CacheHit[Saved], record: TensorRecord) -> Saved:
        """Put ``kept`` in place of the kept form, or beside it; both share the record."""
        weak = found.entry
        # Signs that survive rounding stay with the operations that hold them.
        signs_stay = not weak.without_values and not kept.keeps_zeros and self._compression.keep_signs
        both = Saved(kept.form, record, beside=weak.beside + signs_stay * weak.form.nbytes)
        kept.enter(record)
        self._compression.replaced(weak.form, record)
        self._compression.counted(kept.form, record)
        record.bytes_compressed += both.beside
        if not weak.without_values and not signs_stay:
            weak.form = seen_from(found.place, both, place)
        self._begins(kept, both, *([weak] if weak.form is both.form else []))
        return both

    def _begins(self, kept: Kept, *holders: Saved) -> None:
        """Note compression that has begun, if so, and end that of the tensor before: the device has work meanwhile."""
        if kept.end is not None:
            self.begun.end()
            self.begun.pending = holders, kept.end

    def _keep_exactly(self, saved: Saved, exact: Exact) -> None:
        """Put a tensor itself in place of its codec's form."""
        if codec_of(saved.form) is None or saved.record is None or exact.changed:
            return
        if isinstance(saved.form, Derived):
            saved.record.bytes_compressed += exact.nbytes
        else:
            self._compression.replaced(saved.form, saved.record)
            Kept(exact, EXACT, None if saved.record.relative_error is None else 0.0).enter(saved.record)
            saved.record.bytes_compressed += saved.beside
        saved.form = exact

    def _count(self, facts: Facts, saved: Saved) -> None:
        """Count a statistic or vector that an operation kept, when another operation saves it as an activation."""
        x, kept_exactly = facts.tensor, saved.uncounted in (STATISTICS, SMALL)
        if not kept_exactly or not x.is_floating_point() or x.ndim < LEAST_RANK or made_for_itself(facts):
            return
        kept = self._compression.kept_as(x, EXACT, saved.form)
        saved.record = self._record(facts, self._described(facts), kept)
        self.statistics.add_uncounted(saved.uncounted, -facts.nbytes, -saved.form.nbytes)

    def _guarded(self, facts: Facts, saved: Saved) -> Saved:
        """Return ``saved``, with exact values where a 2-norm that the operation takes would lose its gradient."""
        x, operation = facts.tensor, facts.operation
        norm = None if operation is None else norm_of(operation, x)
        if operation is None or norm is None:
            return saved
        self.begun.end()
        guard: Saved | None = operation.guards.get(id(saved))
        if guard is None:
            form = guarded(x, saved, norm)
            guard = operation.guards[id(saved)] = saved if form is None else Saved(form)
            if form is not None and saved.record is not None:
                saved.beside += form.nbytes
                saved.record.bytes_compressed += form.nbytes
        return guard

    # 4.: tensors that are saved for the first time

    def _first(self, facts: Facts) -> Saved:
        x, operation = facts.tensor, facts.operation
        if x.dtype == torch.bool:
            return self._uncounted(MASKS, BitForm.of(x) or Exact(x, facts.nbytes), facts.nbytes)
        is_small = x.ndim < LEAST_RANK and x.is_floating_point()
        if is_small and (self._losses is None or self._losses.behind_network):  # nothing else has to be known
            self._warn_of_compiled_code()
            return self._uncounted(SMALL, Exact(x, facts.nbytes), facts.nbytes)
        tensor = self._described(facts)
        if not x.is_floating_point():
            kind = COMPLEX if x.is_complex() else integers_of(tensor.consumer)
            return self._uncounted(kind, Exact(x, facts.nbytes))
        if is_small:
            return self._uncounted(SMALL, Exact(x, facts.nbytes), facts.nbytes)
        if _PARAMETRIZATION in tensor.module.split("."):
            return self._uncounted(WEIGHTS, Exact(x, facts.nbytes))
        auxiliary = made_for_itself(facts)
        masking = operation is not None and tensor.consumer in _MASKING and not without_dropout(operation)
        may_be_mask = masking if auxiliary else tensor.consumer == "mul" and not x.requires_grad
        mask = BitForm.of(x) if may_be_mask else None
        if mask is not None:
            form, kind = (mask, BITS) if self._compression.companions else (Exact(x), EXACT)
            return self._counted(facts, replace(tensor, producer="mask"), self._compression.kept_as(x, kind, form))
        if auxiliary:
            # Made inside the operation and not differentiable: a statistic.
            within: Form | None = None
            if operation is not None and operation.name == "attention":
                may_be_mask = x.ndim == ATTENTION_RANK and self._compression.companions  # a float copy of booleans
                within = BitForm.of(x) if may_be_mask else RowSums.of(x, operation)
            return self._uncounted(STATISTICS, within or Exact(x, facts.nbytes), facts.nbytes)
        codec = self._compression.codec_for(facts, tensor)
        kept = self._compression.kept(facts, tensor, codec)
        saved = self._counted(facts, tensor, kept)
        self._begins(kept, saved)
        if saved.record is not None:
            saved.record.uncoded = "" if codec is not None else self._compression.uncoded(facts, tensor)
            self._compression.counted(saved.form, saved.record)
        return saved

    # The account

    def _uncounted(self, what: str, form: Form, nbytes: int | None = None) -> Saved:
        """Keep a tensor of ``nbytes`` bytes that is no activation; they are those of the form unless given."""
        self.statistics.add_uncounted(what, form.nbytes if nbytes is None else nbytes, form.nbytes)
        return Saved(form, uncounted=what)

    def _counted(self, facts: Facts, tensor: SavedTensor, kept: Kept, beside: int = 0) -> Saved:
        """Keep an activation."""
        return Saved(kept.form, self._record(facts, tensor, kept), beside=beside)

    def _record(self, facts: Facts, tensor: SavedTensor, kept: Kept) -> TensorRecord:
        """Return a new entry in the statistics for an activation."""
        record = TensorRecord(
            name=tensor.module,
            op=tensor.producer,
            shape=tensor.shape,
            dtype=dtype_name(facts.layout.dtype),
            codec=kept.codec,
            bytes_original=facts.nbytes,
            bytes_compressed=kept.nbytes,
            relative_error=kept.relative_error,
            saved_by=(tensor.consumer,),
            choice=kept.choice,
        )
        self.statistics.records.append(record)
        return record

    def _described(self, facts: Facts) -> SavedTensor:
        """Return the properties of a tensor that rules test."""
        x, operation = facts.tensor, facts.operation
        self._warn_of_compiled_code()
        modules = running_modules(self._module_names)
        consumer = operation.name if operation is not None else CHECKPOINT if checkpoint_saves() else UNKNOWN
        # A checkpoint recomputes from one reconstruction, so that the error is that of an input of the model.
        smooth = tolerates_errors(operation, x) if operation is not None else consumer == CHECKPOINT
        function = "" if operation is None else plain(operation.function)
        loss = self._losses is not None and consumer != CHECKPOINT and self._losses.running(modules)
        module = self._module_name(modules)
        return SavedTensor(producer(x), consumer, facts.layout.size, x.dtype, module, smooth, function, loss)

    def _warn_of_compiled_code(self) -> None:
        """Warn, once, if compiled code saves a tensor."""
        if self._may_be_compiled and runs_compiled():
            self._may_be_compiled = False
            warnings.warn(RUNS_EAGERLY, stacklevel=1)

    def _running_module(self) -> str:
        """Return the name of the innermost running module of the model."""
        return self._module_name(running_modules(self._module_names))

    def _module_name(self, modules: Sequence[nn.Module]) -> str:
        """Return the name of the innermost of the running modules that is in the model; empty outside all of them."""
        for module in modules:
            if id(module) in self._module_names:
                return self._module_names[id(module)]
        return ""


def _is_too_weak(saved: Saved, codec: Codec | None) -> bool:
    """Return whether the kept form is not enough for an operation for which ``codec`` would be chosen (None: exact)."""
    if saved.without_values or codec is None:
        return not saved.exact
    there = codec_of(saved.form)
    return there is not None and there.signs_only and not codec.signs_only

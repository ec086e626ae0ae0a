"""Recompute saved results in the backward pass from the tensors they were computed from, instead of keeping them.

A transformer block saves most of its values twice or more: the input of a normalisation and its result, the input of an
activation and its result, and every step between where the activation is written out (GELU by ``tanh``, gates, root mean
squares). When one of these tensors is compressed, the tensors that follow from it value by value, or row by row, need no bytes:
the backward pass computes them from the reconstruction. Little accuracy is lost by this: where an activation is flat, the error
of its result is smaller than the error of its input.

Each call of a function in :data:`RECOMPUTED` leaves a mark on the graph node of its result: the function and its arguments.
Tensors among the arguments are recorded by *their* nodes, so that the mark keeps no tensor alive. A saved result is recomputed
if each of its arguments is kept, recomputed itself, a parameter, or small; otherwise the result gets a copy of its own.

A linear layer that widens its input (:data:`WIDENING`) is computed again too, because its result has no more information than
the input, which the layer saves for the gradient of its weight. All that is computed from one such result shares it in the
backward pass, so that the layer's product is computed once more in a step, a third of what the layer takes without.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.autograd.graph import Node

from actcodec.backends.backend import Backend
from actcodec.codecs import Codec, Packed
from actcodec.codecs.actnn.float_forms import no_bitstream
from actcodec.codecs.centring import compress_centred, decompress_centred
from actcodec.policies.policy import Policy, SavedTensor
from actcodec.saved.forms import Exact
from actcodec.saved.layout import Layout
from actcodec.saved.operations import Operation, is_parameter, metadata, plain
from actcodec.saved.statistics import TensorRecord

_ATTENTION = "scaleddotproductattention"
#: Functions whose results are recomputed, by name without underscores: pointwise, row by row, and permutations of axes.
RECOMPUTED = frozenset(
    {
        *("gelu", "silu", "mish", "elu", "celu", "selu", "softplus"),
        *("logsigmoid", "sigmoid", "tanh", "hardswish", "hardsigmoid"),
        *("relu", "relu6", "leakyrelu", "layernorm", "rmsnorm", "mul", "rmul", "multiply", "add", "radd", "sub", "rsub", "neg"),
        *("div", "truediv", "pow", "square", "transpose", "permute", "t", "swapaxes"),
        _ATTENTION,
    }
)
#: Products with a weight that are recomputed where they widen, by name without underscores.
WIDENING = frozenset(("linear", "addmm", "matmul", "mm"))
#: Least ratio of the values of such a result to the values of its input.
WIDENED = 2
#: Name that statistics show in place of a codec's name.
RECOMPUTED_NAME = "recomputed"
_KEPT_MARK, _CALL_MARK = "actcodec.kept", "actcodec.call"
#: Nodes whose result has the same values in the same order, with another shape or in other memory.
_VIEWS = frozenset(f"{name}Backward0" for name in ("View", "UnsafeView", "ReshapeAlias", "Alias"))
_RESHAPES = _VIEWS | {"CloneBackward0"}
#: Most calls between a kept tensor and the saved one: seven of GELU written out, a layer, and a norm written out before it.
_MOST_CALLS = 12
#: A tensor with at most 1/16 of the result's values may be held as it is.
_SMALL = 16
#: Functions whose two factors autograd saves itself.
_SAVES_FACTORS = ("mul", "div")


class KeptCodec(Codec):
    """The codec of one tensor from which others may be recomputed."""

    def __init__(self, codec: Codec) -> None:
        self.name, self.keeps_zeros, self.signs_only = codec.name, codec.keeps_zeros, codec.signs_only
        self.bits = getattr(codec, "bits", None)
        self.packed: Packed | None = None
        self.followed = False  #: True if another tensor is recomputed from this one
        self._codec = codec

    def compress(self, x: Tensor) -> Packed:
        """Implement :class:`Codec`. Centres are removed here, because recomputation needs values that include them."""
        self.packed = compress_centred(x, self._codec)
        return self.packed

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return decompress_centred(compressed, self._codec)

    def value(self) -> Tensor:
        """Return the reconstruction."""
        assert self.packed is not None, "it is compressed before anything follows from it"
        return self.decompress(self.packed)


@dataclass(frozen=True)
class _Origin:
    """The position of a tensor in the graph, that of the tensor it is a view of where only the shape differs.

    ``version`` counts in-place changes, ``shape`` is the shape of the view.
    """

    node: Node
    number: int
    version: int
    shape: tuple[int, ...]

    @classmethod
    def of(cls, x: Tensor) -> _Origin:
        assert x.grad_fn is not None, "it is no leaf"
        node, number = x.grad_fn, x.output_nr
        while node.name() in _VIEWS:
            inner, place = node.next_functions[0]
            if inner is None:
                break
            node, number = inner, place
        return cls(node, number, x._version, tuple(x.shape))


@dataclass(frozen=True)
class _Held:
    """A parameter or a small tensor; ``nbytes`` counts the bytes that nothing else keeps."""

    form: Exact
    nbytes: int

    def value(self) -> Tensor:
        """Return the tensor; RuntimeError if it was changed in place after it was saved."""
        return self.form.tensor()


class _Shared:
    """The result of a widening layer while the backward pass reads what follows from it, from the first reader to the last."""

    def __init__(self, like: Tensor) -> None:
        self.like = like  #: empty tensor with the dtype and device of the result
        self.readers = 0  #: saved tensors that are computed from the result
        self._read = 0
        self._value: Tensor | None = None

    def value(self, compute: Callable[[], Tensor]) -> Tensor:
        """Return the result, computed where no reader has left it."""
        value = compute() if self._value is None else self._value
        self._read += 1
        self._value = value if self._read % self.readers else None
        return value


@dataclass(frozen=True)
class _Call:
    """A call whose result may be saved. Each argument is an _Origin, a _Held, or a plain value.

    The result's node refers to this object, which must not refer back to the node: graphs are freed by reference counting
    alone.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    number: int  #: index among the results of the node
    version: int  #: version of the result
    count: int  #: values of the result
    shared: _Shared | None  #: given for a layer that widens


@dataclass(frozen=True)
class RecomputedCall:
    """A call whose arguments are all available: each is a _Source, a _Held, or a plain value."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    result: Tensor  #: empty tensor with the dtype and device of the result
    shared: _Shared | None = None

    @property
    def nbytes(self) -> int:
        """Return the bytes of tensors that are held for this recipe alone."""
        return sum(part.nbytes for part in self._parts() if isinstance(part, (_Held, _Source)))

    def value(self) -> Tensor:
        """Compute the result. Floating-point arguments are converted to its dtype, as autocast may have done."""
        return self._computed() if self.shared is None else self.shared.value(self._computed)

    def _computed(self) -> Tensor:
        arguments = [self._value(argument) for argument in self.arguments]
        keywords = {name: self._value(argument) for name, argument in self.keywords.items()}
        value: Tensor = self.function(*arguments, **keywords)
        return value

    def sources(self) -> Iterator[KeptCodec]:
        """Yield the codecs of the kept tensors that this result is computed from."""
        for part in self._parts():
            if isinstance(part, _Source):
                yield from (part.of,) if isinstance(part.of, KeptCodec) else part.of.sources()

    def widened(self) -> Iterator[_Shared]:
        """Yield the results of widening layers that this result is computed from, its own among them."""
        if self.shared is not None:
            yield self.shared
        for part in self._parts():
            if isinstance(part, _Source) and isinstance(part.of, RecomputedCall):
                yield from part.of.widened()

    def _parts(self) -> tuple[Any, ...]:
        return (*self.arguments, *self.keywords.values())

    def _value(self, argument: Any) -> Any:
        if not isinstance(argument, (_Source, _Held)):
            return argument
        value = argument.value()
        return value.to(self.result.dtype) if value.is_floating_point() else value  # masks are not converted


@dataclass(frozen=True)
class _Source:
    """A kept or recomputed tensor in the shape in which a call read it."""

    of: KeptCodec | RecomputedCall
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Return the bytes that are held for a recomputed tensor alone."""
        return self.of.nbytes if isinstance(self.of, RecomputedCall) else 0

    def value(self) -> Tensor:
        """Return the values."""
        return self.of.value().reshape(self.shape)


@dataclass(frozen=True, eq=False)
class RecomputedForm:
    """A saved tensor of the given shape that a recipe computes."""

    shape: tuple[int, ...]
    recipe: RecomputedCall

    @property
    def nbytes(self) -> int:
        """Return the bytes that the recipe holds, 0 for most recipes."""
        return self.recipe.nbytes

    def to_bytes(self) -> bytes:
        """Raise UserError: a recomputed tensor has no byte stream."""
        raise no_bitstream()

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Compute the values."""
        return self.recipe.value().reshape(self.shape).contiguous()


@dataclass
class _RecomputedCodec(Codec):
    """The codec of one tensor that is recomputed."""

    recipe: RecomputedCall
    name: str = field(default=RECOMPUTED_NAME, init=False)

    def compress(self, x: Tensor) -> RecomputedForm:
        """Implement :class:`Codec`."""
        for source in self.recipe.sources():
            source.followed = True
        for shared in self.recipe.widened():
            shared.readers += 1
        return RecomputedForm(tuple(x.shape), self.recipe)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress()


class Recomputation:
    """The observer (GroupObserver) of one context."""

    def codec_of(self, tensor: SavedTensor, codec: Codec) -> Codec:
        """Implement :class:`Observer`."""
        return codec

    def member_codec(self, x: Tensor, tensor: SavedTensor, codec: Codec, operation: Operation) -> Codec:
        """Implement :class:`GroupObserver`."""
        if all(argument is not x and argument.data_ptr() != x.data_ptr() for argument in operation.tensors()):
            _came_about(operation, x)  # the operation saves its own result before it has finished
        recipe = recipe_of(x)
        if recipe is not None:
            return _RecomputedCodec(recipe)
        kept = KeptCodec(codec)
        if x.grad_fn is not None and Layout.of(x).distinct_size == tuple(x.shape):
            place = _Origin.of(x)
            metadata(place.node)[f"{_KEPT_MARK}.{place.number}"] = (weakref.ref(kept), place.version)
        return kept

    def has_signs(self, x: Tensor, operation: Operation) -> bool:
        """Implement :class:`GroupObserver`."""
        return False

    def counted(self, codec: Codec, record: TensorRecord) -> None:
        """Implement :class:`GroupObserver`."""

    def replaced(self, codec: Codec, record: TensorRecord) -> None:
        """Implement :class:`GroupObserver`. The bytes of a tensor from which others are recomputed still count."""
        if isinstance(codec, KeptCodec) and codec.followed and codec.packed is not None:
            record.bytes_compressed += codec.packed.nbytes

    def finished(self, operation: Operation, result: Any) -> None:
        """Implement :class:`Observer`. Record how the result was computed."""
        _came_about(operation, result)


def _came_about(operation: Operation, result: Any) -> None:
    if not isinstance(result, Tensor) or result.grad_fn is None:
        return
    name = plain(operation.function)
    if name in RECOMPUTED or (name in WIDENING and _widens(operation, result)):
        _remember(operation, result, _Shared(result.new_empty(0)) if name in WIDENING else None)


def _widens(operation: Operation, result: Tensor) -> bool:
    """Return whether a product is that of a tensor and parameters, and has :data:`WIDENED` times its values or more."""
    inputs = [x for x in operation.tensors() if not is_parameter(x)]
    return len(inputs) == 1 and result.numel() >= WIDENED * inputs[0].numel()


def _remember(operation: Operation, result: Tensor, shared: _Shared | None) -> None:
    if operation.call is None or (operation.name == "attention" and operation.argument(4, "dropout_p", 0.0)):
        return
    assert result.grad_fn is not None, "it has a history"
    try:
        arguments = tuple(_reference(one, operation, result) for one in operation.args)
        keywords = {name: _reference(one, operation, result) for name, one in operation.kwargs.items()}
    except _NotHeldError:
        return
    place = _Origin.of(result)
    call = _Call(operation.call, arguments, keywords, place.number, place.version, result.numel(), shared)
    metadata(place.node)[_CALL_MARK] = call


class _NotHeldError(Exception):
    """An argument can neither be held nor recomputed."""


def _reference(argument: Any, operation: Operation, result: Tensor) -> Any:
    if not isinstance(argument, Tensor):
        if isinstance(argument, (list, tuple)) and any(isinstance(one, Tensor) for one in argument):
            raise _NotHeldError
        return argument
    if is_parameter(argument):
        return _Held(Exact(argument), 0)
    if argument.numel() * _SMALL <= result.numel():
        saved = operation.name in _SAVES_FACTORS
        return _Held(Exact(argument), 0 if saved else argument.numel() * argument.element_size())
    # In place, the argument's node is by now that of the result.
    if argument.grad_fn is None or argument.grad_fn is result.grad_fn:
        raise _NotHeldError
    return _Origin.of(argument)


def recipe_of(x: Tensor) -> RecomputedCall | None:
    """Return the recipe that computes ``x`` from kept tensors; None if there is none."""
    node = x.grad_fn
    copied = False
    while node is not None and node.name() in _RESHAPES:
        copied |= node.name() == "CloneBackward0"
        node = node.next_functions[0][0]
    call = None if node is None else metadata(node).get(_CALL_MARK)
    if not isinstance(call, _Call) or call.count != x.numel() or (not copied and call.version != x._version):
        return None
    return _resolved(call, x.new_empty(0), _MOST_CALLS)


def _resolved(call: _Call, result: Tensor, calls: int) -> RecomputedCall | None:
    if call.shared is not None:
        result = call.shared.like
    arguments = [_source(argument, result, calls) for argument in call.arguments]
    keywords = {name: _source(argument, result, calls) for name, argument in call.keywords.items()}
    found = (*arguments, *keywords.values())
    if any(one is _LOST for one in found) or not any(isinstance(one, _Source) for one in found):
        return None
    recipe = RecomputedCall(call.function, tuple(arguments), keywords, result, call.shared)
    # One product and no more: a chain of layers would be computed from its beginning for each of them.
    return None if call.shared is not None and sum(1 for _ in recipe.widened()) > 1 else recipe


_LOST = object()


def _source(argument: Any, result: Tensor, calls: int) -> Any:
    """Return the source of an argument; :data:`_LOST` if it is not available in the backward pass."""
    if not isinstance(argument, _Origin):
        return argument
    marks = metadata(argument.node)
    mark = marks.get(f"{_KEPT_MARK}.{argument.number}")
    kept = mark[0]() if isinstance(mark, tuple) and mark[1] == argument.version else None
    if kept is not None:
        return _Source(kept, argument.shape)
    call = marks.get(_CALL_MARK)
    if calls <= 1 or not isinstance(call, _Call) or (call.number, call.version) != (argument.number, argument.version):
        return _LOST
    recipe = _resolved(call, result, calls - 1)
    return _LOST if recipe is None else _Source(recipe, argument.shape)


class RecomputingPolicy(Policy):
    """A policy that keeps no tensor that can be recomputed from kept ones. One object serves any number of models."""

    every_operation = True

    def observer(self) -> Recomputation:
        """Implement :class:`Policy`."""
        return Recomputation()

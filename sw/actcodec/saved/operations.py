"""Track the running operation, and find the operation that produced a tensor; both decide how a saved tensor is compressed.

Autograd passes neither to a pack hook. The *consumer* (the operation that saves) is known because :class:`OperationTracker`, a
``TorchFunctionMode``, sees every call of a torch function before autograd does; a call inside another torch function counts
as the outer one (the ``max`` inside ``F.cross_entropy`` is ``loss``, a product inside ``svd_lowrank`` is ``svdlowrank``). The
*producer* is the ``grad_fn`` of a saved tensor. Both are mapped to the same short vocabulary: ``conv``, ``linear``,
``norm``, ``relu``, ``pool``, ``dropout``, ``sum``, ``mul``, ``div``, ``softmax``, ``attention``, ``recurrent``, ``loss``,
``input`` (a leaf), else the lower-case name of the function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.overrides import TorchFunctionMode

from actcodec.codecs import Codec
from actcodec.codecs.tensor_kinds import TensorKind, is_jagged, kind_of, parts_in, plain_part, same_storage
from actcodec.saved.call_stack import torch_function
from actcodec.saved.untraced import untraced

#: Producer of a tensor without gradient function.
INPUT = "input"
#: Consumer when no torch function is running (a custom autograd function, a scripted or fused operator).
UNKNOWN = "unknown"
#: Consumer when ``torch.utils.checkpoint`` saves the arguments of a function that it will run again.
CHECKPOINT = "checkpoint"

# First match wins; names are lower case, without underscores.
_VOCABULARY = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r".*dropout.*", "dropout"),
        (r".*(batchnorm|layernorm|groupnorm|instancenorm|rmsnorm).*", "norm"),
        (r"(linalg)?(vector|matrix)?norm", "vectornorm"),
        (r".*loss.*|.*crossentropy.*", "loss"),
        (r".*attention.*", "attention"),
        (r".*softmax", "softmax"),
        (r"(mkldnn|cudnn|miopen|thnnfused)?(lstm|gru|rnn)(tanh|relu|layer|cell)*", "recurrent"),
        (r".*pool\d?d.*", "pool"),
        (r".*conv(olution|transpose)?(\d?d)?(overrideable)?|convtbc", "conv"),
        (r"relu", "relu"),
        (r"linear|addmm|addmv|mm|mv|bmm|baddbmm|matmul|rmatmul|mkldnnlinear", "linear"),
        (r"add|iadd|radd|sub|isub|rsub", "sum"),
        (r"mul|imul|rmul|multiply", "mul"),
        (r"div|truediv|itruediv|rtruediv|divide|truedivide", "div"),
    )
)
# Nodes that only rearrange or select what another operation produced.
_VIEWS = frozenset(
    re.split(
        r"\s+",
        "view unsafeview reshapealias t transpose permute expand squeeze unsqueeze slice select narrow alias asstrided "
        "clone tocopy movedim unfold flatten contiguous split unsafesplit unbind chunk withhistory "
        "fromtorchtensor totorchtensor redistribute",
    )
)
# Nodes with one input that turn a parameter into an activation.
_LOOKUPS = frozenset({"embedding", "index", "indexselect", "gather"})
_WALK_LIMIT = 64
#: Module of the operators of PyTorch's own library, and that of all operators.
_ATEN, _OPERATORS = "torch._ops.aten", "torch._ops."
#: Number of names whose word is held.
_MOST_NAMES = 1 << 12
_PRODUCER_MARK, _WEIGHT_MARK = "actcodec.producer", "actcodec.weight"
#: Marks that some node of this process has had; a node's dictionary, which torch makes when it is first read, takes long.
_marks_made: set[str] = set()
#: Operations of layers: their result is an activation even if the input is trained (an image that is optimised).
_LAYERS = frozenset({"conv", "norm", "attention", "recurrent", "pool", "dropout"})
#: Functions that repeat the values of a weight: the result belongs to activations (learnt queries for each sample).
_REPEATS = frozenset({"repeat", "repeatinterleave", "tile", "expand", "expandas", "broadcastto"})


@lru_cache(_MOST_NAMES)
def plain(name: str) -> str:
    """Return a function's or node's name in lower case without underscores (``Tensor.__mul__`` -> ``mul``)."""
    return name.replace("_", "").lower()


def _name_of(func: Callable[..., Any]) -> str:
    """Return the name of a function; with its module if another library than torch defines it, since rules name torch's own."""
    module, name = getattr(func, "__module__", None), str(getattr(func, "__name__", UNKNOWN))
    return name if module is None or _is_torch(module) else f"{module}.{name}"


@lru_cache(_MOST_NAMES)
def _is_torch(module: str) -> bool:
    """Return whether functions of a module are PyTorch's own."""
    return module == _ATEN or (f"{module}.".startswith("torch.") and not module.startswith(_OPERATORS))


@lru_cache(_MOST_NAMES)
def canonical(name: str) -> str:
    """Return the word of the vocabulary for a function's name (``conv2d`` -> ``conv``)."""
    bare = plain(name)
    return next((word for pattern, word in _VOCABULARY if pattern.fullmatch(bare)), bare)


@lru_cache(_MOST_NAMES)
def _operation_of(name: str) -> str:
    """Return the operation of a node's name (``ConvolutionBackward0`` -> ``convolution``)."""
    return re.sub(r"backward\d*$", "", plain(name))


@lru_cache(_MOST_NAMES)
def _producer_of(name: str) -> str | None:
    """Return the word for the operation of a node's name; None if the node only rearranges or selects values."""
    operation = _operation_of(name)
    if operation.endswith("accumulategrad"):
        return INPUT
    return None if re.sub(r"(int|withsizes|dim)$", "", operation) in _VIEWS else canonical(operation)


def metadata(node: Node) -> dict[str, object]:
    """Return the dictionary that a node carries for its users (torch's annotations call it a method)."""
    return cast(dict[str, object], node.metadata)


def _mark(node: Node, mark: str, value: object) -> None:
    metadata(node)[mark] = value
    _marks_made.add(mark)


def producer(x: Tensor) -> str:
    """Return the operation that computed ``x``, found through views and copies; ``input`` if it has no gradient function."""
    node = x.grad_fn
    for _ in range(_WALK_LIMIT):
        if node is None:
            return INPUT
        if _PRODUCER_MARK in _marks_made and (mark := metadata(node).get(_PRODUCER_MARK)) is not None:
            return str(mark)
        word = _producer_of(node.name())
        if word is not None:
            return word
        node = node.next_functions[0][0] if node.next_functions else None
    return UNKNOWN


def leaf_of(x: Tensor) -> Tensor | None:
    """Return the leaf of which ``x`` is only a rearranged or converted copy; None if there is none.

    Walks from ``grad_fn`` through nodes with a single input (``t``, ``to``, ``expand`` ...) to ``AccumulateGrad``.
    """
    node = x.grad_fn
    for _ in range(_WALK_LIMIT):
        if node is None:
            return None
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, Tensor):
            return leaf
        if _operation_of(node.name()) in _LOOKUPS:
            return None
        inputs = node.next_functions
        if len(inputs) != 1:
            return None
        node = inputs[0][0]
    return None


def mark_weight(x: Any) -> None:
    """Mark ``x``, or all tensors in a tuple or list, as computed from weights alone."""
    for tensor in tensors_in((x,)):
        if tensor.grad_fn is not None:
            _mark(tensor.grad_fn, _WEIGHT_MARK, True)


def is_marked_weight(x: Tensor) -> bool:
    """Return whether ``x`` is a tensor that :func:`mark_weight` marked, or only a rearranged or converted copy of one."""
    if _WEIGHT_MARK not in _marks_made:
        return False
    node = x.grad_fn
    for _ in range(_WALK_LIMIT):
        if node is None or getattr(node, "variable", None) is not None:
            return False
        if _WEIGHT_MARK in metadata(node):
            return True
        inputs = node.next_functions
        if len(inputs) != 1:
            return False
        node = inputs[0][0]
    return False


#: Destination of a tensor's gradient: node and number; a leaf has no node. For a saved result this is the node that saves it.
Source = tuple[Node | None, int]


def source(x: Tensor) -> Source:
    """Return the source of ``x``."""
    return x.grad_fn, x.output_nr


@dataclass(eq=False)
class Operation:
    """A torch function in progress; its arguments are not to be replaced."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    function: str = UNKNOWN  #: the function's own name (``conv2d``)
    saved: list[Codec] = field(default_factory=list)  #: codec of each compressed tensor that it has saved
    sources: list[Source] = field(default_factory=list)  #: source of each of these tensors
    packed: list[tuple[torch.Size, Any]] = field(default_factory=list)  #: shape and holder of an attention's saved tensors
    factors: list[Any] = field(default_factory=list)  #: factors whose errors a later pole would multiply
    call: Callable[..., Any] | None = None  #: the called function
    of_parts: bool = False  #: True if plain parts replace arguments of other kinds, which may have other axes
    guards: dict[int, Any] = field(default_factory=dict)  #: groups kept of the arguments of 2-norms, by the holder

    def __post_init__(self) -> None:
        self._tensors = tuple(tensors_in((*self.args, *self.kwargs.values())))
        self._kinds: tuple[TensorKind, ...] | None = None
        self._storages: tuple[int | None, ...] | None = None
        self.of_weights: bool | None = None  #: the answer of :meth:`OperationTracker.of_weights`, once it is known

    def tensors(self) -> Iterator[Tensor]:
        """Return an iterator over all tensors among the arguments, also in lists and tuples; the activation comes first."""
        return iter(self._tensors)

    @property
    def storages(self) -> tuple[int | None, ...]:
        """Identities of the storages of all tensors among the arguments; None for those without ordinary memory."""
        return self._storages if self._storages is not None else self._examined()[1]

    @property
    def kinds(self) -> tuple[TensorKind, ...]:
        """Kinds of the tensors that are not ordinary, in the order of the arguments."""
        return self._kinds if self._kinds is not None else self._examined()[0]

    def _examined(self) -> tuple[tuple[TensorKind, ...], tuple[int | None, ...]]:
        """Find kinds and storages, once."""
        kinds = tuple(map(kind_of, self._tensors))
        self._kinds = tuple(filter(None, kinds))
        self._storages = tuple(
            x.untyped_storage()._cdata if kind is None else None for x, kind in zip(self._tensors, kinds, strict=True)
        )
        return self._kinds, self._storages

    def argument(self, position: int, name: str, default: Any) -> Any:
        """Return an argument by its position or name; ``default`` if it was not given."""
        return self.args[position] if position < len(self.args) else self.kwargs.get(name, default)

    def weights(self) -> Iterator[Tensor]:
        """Yield arguments that are weights or buffers by their position, whatever computed them.

        These are all but the first of a convolution, a normalisation, and ``linear``. A product of two matrices has no such
        position.
        """
        if self.has_weights:
            tensors = self.tensors()
            next(tensors, None)
            yield from tensors

    @property
    def has_weights(self) -> bool:
        """Return whether all tensors but the first are weights or buffers by their position."""
        return self.name in ("conv", "norm") or self.function == "linear"

    def on_parts(self) -> Operation:
        """Return the same call on the plain parts of its tensors; it shares this object's lists."""
        kwargs = {name: parts_in(value) for name, value in self.kwargs.items()}
        return replace(self, args=tuple(map(parts_in, self.args)), kwargs=kwargs, of_parts=True)

    @property
    def inside(self) -> TensorKind | None:
        """Return the kind of an argument whose inner tensors may be saved; None if only the arguments themselves are saved."""
        if not self.kinds:
            return None
        among_jagged = self.name == "attention"
        without_part = (kind_of(x) for x in self.tensors() if plain_part(x) is x or (among_jagged and is_jagged(x)))
        return next((kind for kind in without_part if kind is not None and kind.wraps), None)

    @property
    def makes_activations(self) -> bool:
        """Return whether the result is an activation even of weights: the result of a layer or of a repetition."""
        return self.name in _LAYERS or self.function == "linear" or plain(self.function) in _REPEATS

    def is_side_argument(self, x: Tensor) -> bool:
        """Return whether a saved tensor is a side argument of the function: a small factor or divisor, or an attention mask.

        A factor or divisor is small if it applies to several values of the other tensor (gates, rotary tables, the root mean
        squares of a normalisation written by hand). A mask may be infinite.
        """
        if self.name in ("mul", "div"):
            return any(other.numel() > x.numel() for other in self.tensors())
        if self.name == "attention":
            masks = [self.kwargs.get("attn_mask"), self.kwargs.get("key_padding_mask")]
            if self.function == "scaled_dot_product_attention":
                masks += self.args[3:4]
            return any(isinstance(mask, Tensor) and _begins_where(x, mask) for mask in masks)
        return False


def _begins_where(x: Tensor, y: Tensor) -> bool:
    """Return whether two tensors begin at the same address."""
    return same_storage(x, y) and x.storage_offset() == y.storage_offset()


def tensors_in(values: Iterable[Any]) -> Iterator[Tensor]:
    """Yield all tensors among some values, also in lists and tuples."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


class OperationTracker(TorchFunctionMode):
    """Track the torch function in progress on this thread as :attr:`current`, while entered.

    Parameters
    ----------
    on_result
        Called with every function that has ended, and its result.
    is_weight
        Tells parameters and buffers by the tensor and its storage (:attr:`Operation.storages`); tensors computed from these
        alone are marked as weights.
    """

    def __init__(
        self,
        on_result: Callable[[Operation, Any], None] | None = None,
        is_weight: Callable[[Tensor, int | None], bool] = lambda x, storage: False,
    ) -> None:
        super().__init__()
        self.current: Operation | None = None
        self.on_result = on_result
        self._is_weight = is_weight

    @untraced
    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run ``func`` and record it meanwhile."""
        kwargs = kwargs or {}
        function = torch_function(__name__) or _name_of(func)
        outer, name = self.current, canonical(function)
        self.current = operation = Operation(name, args, kwargs, function, call=func)
        try:
            result = func(*args, **kwargs)
        finally:
            self.current = outer
        # Without this guard each outer context would track these calls too, and make as many calls about each.
        with torch._C.DisableTorchFunction():
            # On the CPU dropout is a multiplication; the mark makes its result known as dropout's.
            if name == "dropout" and isinstance(result, Tensor) and result.grad_fn is not None:
                _mark(result.grad_fn, _PRODUCER_MARK, name)
            if not operation.makes_activations and self.of_weights(operation):
                mark_weight(result)
            if self.on_result is not None:
                self.on_result(operation, result)
        return result

    def of_weights(self, operation: Operation) -> bool:
        """Return whether an operation works on weights, and tensors computed from weights, alone; constants do not count."""
        if operation.of_weights is None:
            operation.of_weights = self._is_of_weights(operation)
        return operation.of_weights

    def _is_of_weights(self, operation: Operation) -> bool:
        found = False
        for x, storage in zip(operation.tensors(), operation.storages, strict=True):
            if self._is_weight(x, storage) or is_marked_weight(x):
                found = True
            elif x.requires_grad or x.numel() != 1:
                return False
        return found


def is_parameter(x: Any) -> bool:
    """Return whether ``x`` is a torch parameter (also one that a wrapper such as FSDP put in place of the model's own)."""
    kind = type(x)
    # The class of parameters asks for this mark first, in Python.
    return kind is nn.Parameter or (getattr(x, "_is_param", False) if kind is Tensor else isinstance(x, nn.Parameter))


def low_precision_copy(x: Tensor, operation: Operation) -> Tensor | None:
    """Return the argument of which ``x`` is autocast's copy, for copies without ``grad_fn`` (inputs, frozen weights)."""
    if x.dtype not in (torch.bfloat16, torch.float16):
        return None
    shapes = (x.shape, x.shape[::-1])
    wider = (arg for arg in operation.tensors() if arg.dtype == torch.float32)
    return next((arg for arg in wider if arg.shape in shapes), None)

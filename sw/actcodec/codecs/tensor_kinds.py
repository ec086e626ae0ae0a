"""Kinds of tensors: those with ordinary memory, those with a plain part that is compressed in their place, and all others.

An *ordinary* tensor is dense and strided and has values in memory of its own; codecs take no other. Some wrappers have a plain
part with all values: the local part of a DTensor, the values of a jagged nested tensor, the memory of a subclass of Tensor that
overrides functions only. Tensors of any other kind are kept exactly.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class TensorKind:
    """Kind of tensors without ordinary memory."""

    name: str  #: in the plural
    remedy: str  #: tensor to give to a codec instead, as advice
    wraps: bool = False  #: True if operations on such arguments save tensors with the shapes and memory of their inside


TRANSFORMED = TensorKind("tensors within transforms of torch.func", "compress the tensor outside of the transform", wraps=True)
FUNCTIONAL = TensorKind("functionalised tensors", "compress the tensor outside of the trace", wraps=True)
NESTED = TensorKind("nested tensors", "compress its values, or each of its x.unbind()", wraps=True)
SPARSE = TensorKind("sparse tensors", "compress x.to_dense(), or the values")
ONEDNN = TensorKind("tensors in oneDNN's layout", "compress x.to_dense()")
META = TensorKind("tensors on the device meta", "give a tensor that has values")
QUANTISED = TensorKind("quantised tensors", "compress x.dequantize()")
ZEROS = TensorKind("zeros without memory", "compress x.clone()")
#: Class whose local part holds the values of this process, and class of results that are under way and are waited for.
_DISTRIBUTED = ("torch.distributed.tensor", "DTensor")
_ASYNCHRONOUS = ("torch.distributed._functional_collectives", "AsyncCollectiveTensor")
_LAYOUTS = {torch._mkldnn: ONEDNN}  # type: ignore[attr-defined]


#: Local names, which are found faster, because every operation calls these functions.
_is_transformed, _is_functional = torch._C._functorch.is_functorch_wrapped_tensor, torch._is_functional_tensor
_STRIDED = torch.strided
#: Classes whose tensors are their own plain parts.
_PLAIN = (Tensor, torch.nn.Parameter)


def kind_of(x: Tensor) -> TensorKind | None:
    """Return the kind of a tensor without ordinary memory; None for ordinary tensors."""
    if _is_transformed(x):
        return TRANSFORMED
    if type(x) not in _PLAIN and overrides_dispatch(x):
        return TensorKind(f"tensors of the class {type(x).__name__}", "compress a plain tensor of its values", wraps=True)
    if x.is_nested:
        return NESTED
    if x.layout != _STRIDED:
        return _LAYOUTS.get(x.layout, SPARSE)
    if x.is_meta:
        return META
    if x.is_quantized:
        return QUANTISED
    if _is_functional(x):
        return FUNCTIONAL
    return ZEROS if x._is_zerotensor() else None


def overrides_dispatch(x: Tensor) -> bool:
    """Return whether a tensor is of a subclass that computes by itself and whose values are elsewhere."""
    return type(x).__torch_dispatch__ is not Tensor.__torch_dispatch__


def storage_of(x: Tensor) -> torch.UntypedStorage | None:
    """Return the storage of an ordinary tensor; None for every other kind."""
    return x.untyped_storage() if kind_of(x) is None else None


def storages_of(x: Tensor) -> list[torch.UntypedStorage]:
    """Return the storages of all tensors that a tensor consists of; none for kinds whose parts are unknown."""
    if kind_of(x) is None:
        return [x.untyped_storage()]
    return [inner for part in _inside(x) for inner in storages_of(part)]


def _inside(x: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors that a wrapper or a sparse tensor consists of."""
    if _is_transformed(x):
        return (torch._C._functorch.get_unwrapped(x),)
    if overrides_dispatch(x):
        names = x.__tensor_flatten__()[0] if hasattr(x, "__tensor_flatten__") else ()
        return tuple(part for name in names if isinstance(part := getattr(x, name), Tensor))
    if x.layout == torch.sparse_coo:
        return x._values(), x._indices()
    if x.layout in (torch.sparse_csr, torch.sparse_bsr):
        return x.values(), x.crow_indices(), x.col_indices()
    if x.layout in (torch.sparse_csc, torch.sparse_bsc):
        return x.values(), x.ccol_indices(), x.row_indices()
    return ()


def same_storage(x: Tensor, y: Tensor) -> bool:
    """Return whether two ordinary tensors look at the same memory."""
    mine, other = storage_of(x), storage_of(y)
    return mine is not None and other is not None and mine._cdata == other._cdata


def bytes_of(x: Tensor) -> int:
    """Return the bytes of the values of a tensor of any kind; those of a sparse tensor include its indices."""
    inside = _inside(x)
    return sum(map(bytes_of, inside)) if inside else x.numel() * x.element_size()


@dataclass(frozen=True, eq=False)
class TensorPart:
    """Plain part of a tensor, and the function that rebuilds the tensor from such a part."""

    tensor: Tensor  #: ordinary, with the history of the whole
    rebuild: Callable[[Tensor], Tensor]


def part_of(x: Tensor) -> TensorPart | None:
    """Return the plain part that has all values of ``x``; None if ``x`` is ordinary itself or of a kind without such a part."""
    inner = plain_part(x)
    if inner is x:
        return None
    with torch.enable_grad():
        tensor = _WithHistory.apply(x, (inner.detach(),))  # type: ignore[no-untyped-call]
    return TensorPart(tensor, _rebuilding(x.detach()))


def plain_part(x: Tensor) -> Tensor:
    """Return the plain part of ``x`` without its history; ``x`` itself if there is none."""
    if type(x) in _PLAIN or _is_transformed(x):
        return x
    if not overrides_dispatch(x):
        return x if kind_of(x) is not None or isinstance(x, torch.nn.Parameter) else x.detach().as_subclass(Tensor)
    if is_jagged(x):
        return _ordinary(x._values, x)  # type: ignore[arg-type]
    if _is_of(x, _ASYNCHRONOUS):
        return _ordinary(x.wait(), x)  # type: ignore[attr-defined]
    return _ordinary(plain_part(x._local_tensor), x) if _is_of(x, _DISTRIBUTED) else x  # type: ignore[attr-defined]


def _is_of(x: Any, place: tuple[str, str]) -> bool:
    """Return whether ``x`` is of a class, by module and name; the module is not loaded for it."""
    module = sys.modules.get(place[0])
    return module is not None and isinstance(x, getattr(module, place[1]))


def is_jagged(x: Any) -> bool:
    """Return whether ``x`` is a nested tensor whose rows lie one after the other in memory."""
    return isinstance(x, Tensor) and x.layout == torch.jagged and overrides_dispatch(x) and hasattr(x, "_values")


def parts_in(value: Any) -> Any:
    """Return ``value`` with tensors, in lists and tuples too, replaced by their plain parts."""
    if isinstance(value, Tensor):
        part = part_of(value)
        return value if part is None else part.tensor
    if type(value) in (list, tuple):
        return type(value)(parts_in(one) for one in value)
    return value


def _ordinary(inner: Tensor, x: Tensor) -> Tensor:
    return inner if kind_of(inner) is None else x


def _rebuilding(x: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the function that makes a tensor like ``x``, which has no history, of a part like its own."""
    if not overrides_dispatch(x) or _is_of(x, _ASYNCHRONOUS):
        return lambda part: part
    names, context = x.__tensor_flatten__()  # type: ignore[attr-defined]
    place = "_values" if is_jagged(x) else "_local_tensor"
    others = {name: getattr(x, name) for name in names if name != place}
    kind, size, stride = type(x), x.size(), x.stride()
    return lambda part: kind.__tensor_unflatten__({place: part, **others}, context, size, stride)  # type: ignore[attr-defined]


class _WithHistory(torch.autograd.Function):
    """Gives a part of a tensor the history of the whole, which shows its origin; nothing is ever differentiated through it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, part: tuple[Tensor]) -> Tensor:
        """Return the part; as it comes in a tuple, autograd does not see it as an argument."""
        del ctx, x
        return part[0].view_as(part[0])

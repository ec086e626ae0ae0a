"""Tell saved tensors that belong to the model, or to the running operation, from activations."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

from actcodec.codecs.tensor_kinds import same_storage, storages_of
from actcodec.saved.facts import Facts
from actcodec.saved.operations import Operation, is_parameter, leaf_of, low_precision_copy


class ModelTensors:
    """The parameters and buffers of some modules, and tensors that only rearrange or convert one."""

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        held = [x for module in modules for tensors in (module._parameters, module._buffers) for x in tensors.values()]
        # Holding the storages keeps their addresses from being reused.
        self._storages = {storage._cdata: storage for x in held if x is not None for storage in storages_of(x)}

    def __contains__(self, x: Tensor) -> bool:
        """Return whether ``x`` shares memory with a parameter or buffer, or is a parameter at all (FSDP makes its own)."""
        return is_parameter(x) or any(storage._cdata in self._storages for storage in storages_of(x))

    def has(self, x: Tensor, storage: int | None) -> bool:
        """As ``x in self`` for a tensor whose storage has the identity ``storage``; None if it has no ordinary memory."""
        return x in self if storage is None else storage in self._storages or is_parameter(x)

    def holds(self, x: Tensor) -> bool:
        """Return whether ``x`` is a parameter or buffer, or only rearranges or converts one."""
        return x in self or self._is_copy(x)

    def own(self, facts: Facts) -> bool:
        """Return whether a tensor that an operation saves is a parameter, a buffer, or a copy of one."""
        x, operation = facts.tensor, facts.operation
        if self.has(x, facts.address) or self._is_copy(x):
            return True
        if operation is None:
            return False
        if facts.is_argument and _is_weight(facts.address, operation):
            return True
        copied = low_precision_copy(x, operation) if x.grad_fn is None and not x.requires_grad else None
        return copied is not None and (copied in self or any(copied is weight for weight in _weights(operation)))

    def _is_copy(self, x: Tensor) -> bool:
        leaf = leaf_of(x)
        return leaf is not None and leaf in self


def _is_weight(storage: int, operation: Operation) -> bool:
    """Return whether a storage holds a weight of the operation by its position, or a parameter that is none of the model's."""
    first, *others = operation.storages
    if operation.has_weights and storage in others and storage != first:
        return True
    return any(there == storage and is_parameter(x) for x, there in zip(operation.tensors(), operation.storages, strict=True))


def _weights(operation: Operation) -> list[Tensor]:
    first = next(operation.tensors(), None)
    return [weight for weight in operation.weights() if first is None or not same_storage(weight, first)]


def made_for_itself(facts: Facts) -> bool:
    """Return whether the running operation made a tensor for its own use: a statistic or a mask, none of its arguments."""
    x, operation = facts.tensor, facts.operation
    if operation is None:
        return False
    if x.grad_fn is not None or x.requires_grad:
        # Statistics of group normalisation have a gradient function; they are smaller than the normalised tensor.
        normalised = next(operation.tensors(), x) if operation.name == "norm" else x
        return x.numel() < normalised.numel() and not same_storage(x, normalised)
    return not facts.is_argument and low_precision_copy(x, operation) is None

"""Tell saved tensors that belong to the model, or to the running operation, from activations."""

from __future__ import annotations

from torch import Tensor, nn

from actcodec.codecs.tensor_kinds import same_storage, storages_of
from actcodec.saved.operations import Operation, is_parameter, leaf_of, low_precision_copy


class ModelTensors:
    """The parameters and buffers of a model, and tensors that only rearrange or convert one."""

    def __init__(self, model: nn.Module) -> None:
        # Holding the storages keeps their addresses from being reused.
        self._storages = {
            storage._cdata: storage for tensor in (*model.parameters(), *model.buffers()) for storage in storages_of(tensor)
        }

    def __contains__(self, x: Tensor) -> bool:
        """Return whether ``x`` shares memory with a parameter or buffer, or is a parameter at all (FSDP makes its own)."""
        return is_parameter(x) or any(storage._cdata in self._storages for storage in storages_of(x))

    def own(self, x: Tensor, operation: Operation | None) -> bool:
        """Return whether ``x``, which ``operation`` saves, is a parameter, a buffer, or a copy of one."""
        leaf = leaf_of(x)
        if x in self or (leaf is not None and leaf in self):
            return True
        if operation is None:
            return False
        tensors = list(operation.tensors())
        weights = [weight for weight in operation.weights() if not same_storage(weight, tensors[0])]
        weights += [tensor for tensor in tensors if tensor in self]
        if any(same_storage(x, weight) for weight in weights):
            return True
        copied = low_precision_copy(x, operation) if x.grad_fn is None and not x.requires_grad else None
        return copied is not None and any(copied is weight for weight in weights)


def made_for_itself(x: Tensor, operation: Operation | None) -> bool:
    """Return whether the running operation made ``x`` for its own use: a statistic or a mask, none of its arguments."""
    if operation is None:
        return False
    if x.grad_fn is not None or x.requires_grad:
        # Statistics of group normalisation have a gradient function; they are smaller than the normalised tensor.
        normalised = next(operation.tensors(), x) if operation.name == "norm" else x
        return x.numel() < normalised.numel() and not same_storage(x, normalised)
    return low_precision_copy(x, operation) is None and not any(same_storage(x, arg) for arg in operation.tensors())

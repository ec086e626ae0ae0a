"""Whose a saved tensor is: the model's, the running operation's own, or, if neither, an activation."""

from __future__ import annotations

from torch import Tensor, nn

from actcodec.codecs.tensor_kinds import same_storage, storages_of
from actcodec.saved.operations import Operation, is_parameter, leaf_of, low_precision_copy


class ModelTensors:
    """The parameters and buffers of a model, and what is only a rearranged or converted copy of one."""

    def __init__(self, model: nn.Module) -> None:
        # The storages themselves are held, so that their addresses mean nothing else meanwhile.
        self._storages = {
            storage._cdata: storage for tensor in (*model.parameters(), *model.buffers()) for storage in storages_of(tensor)
        }

    def __contains__(self, x: Tensor) -> bool:
        """Whether ``x`` is one itself, or looks at one's memory; any parameter is (a wrapper such as FSDP makes its own)."""
        return is_parameter(x) or any(storage._cdata in self._storages for storage in storages_of(x))

    def own(self, x: Tensor, operation: Operation | None) -> bool:
        """Whether ``x``, which ``operation`` saves, is one of them or a copy."""
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
    """Whether the running operation made ``x`` for its own use: a statistic or a mask, none of its arguments."""
    if operation is None:
        return False
    if x.grad_fn is not None or x.requires_grad:
        # Statistics of group normalisation bear a history; they are smaller than what was normalised.
        normalised = next(operation.tensors(), x) if operation.name == "norm" else x
        return x.numel() < normalised.numel() and not same_storage(x, normalised)
    return low_precision_copy(x, operation) is None and not any(same_storage(x, arg) for arg in operation.tensors())

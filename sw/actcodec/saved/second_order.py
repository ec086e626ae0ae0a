"""Warn of values that are computed from reconstructions: gradients that are differentiated again (``create_graph=True``).

Such a gradient is part of the loss: forces, a gradient penalty, the residual of a differential equation. It is exact if
backward reads only exact tensors and signs. The input that a linear layer or a convolution saves is read only for the
gradient of its weight, and not at all if that gradient is not requested.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.graph import Node, get_gradient_edge

from actcodec.codecs.tensor_kinds import same_storage
from actcodec.saved.kept import Saved
from actcodec.saved.operations import Operation
from actcodec.saved.views import codec_of

#: Number of the backward pass that calls on this thread, and the number of none.
graph_task: Callable[[], int] = torch._C._current_graph_task_id
NO_TASK = -1
_REMEDY = {
    False: "give compress_activations double_backward=True, which keeps exactly what such values depend on, or compute what is "
    "differentiated outside of the context",
    True: "double_backward=True keeps exactly what gradients of inputs depend on, not those of weights: compute what is "
    "differentiated outside of the context",
}


class SecondOrderWarning(UserWarning):
    """A gradient that is differentiated again, and with it perhaps the value of a loss, is computed from reconstructions."""


class SecondOrder:
    """Watch the backward passes of one context, and warn of the first value that is computed from a reconstruction.

    Parameters
    ----------
    double_backward
        True if the context keeps exactly every tensor that gradients of inputs depend on.
    """

    def __init__(self, double_backward: bool) -> None:
        self._double_backward = double_backward
        self._warned = False

    def unpacked(self, saved: Saved) -> None:
        """Called when backward reads a tensor, in the mode in which backward runs."""
        if not self._warned and torch.is_grad_enabled() and graph_task() != NO_TASK and _changes_values(saved):
            self._warned = True
            warnings.warn(
                "a gradient is computed with create_graph=True from activations that a codec has rounded, so that the values "
                f"of the gradient, and of a loss that contains it, are not exact: {_REMEDY[self._double_backward]}",
                SecondOrderWarning,
                stacklevel=2,
            )


def weight_of(x: Tensor, operation: Operation | None) -> Node | Tensor | None:
    """Return the weight, a leaf or a graph node, for whose gradient alone an operation saves ``x``; None if there is none."""
    if operation is None or not (operation.name == "conv" or operation.function == "linear"):
        return None
    activation, weight = next(operation.tensors(), None), next(operation.weights(), None)
    if activation is None or weight is None or not same_storage(x, activation) or same_storage(x, weight):
        return None
    return weight if weight.grad_fn is None else weight.grad_fn


def _changes_values(saved: Saved) -> bool:
    codec = codec_of(saved.form)
    if codec is None or codec.lossless or codec.signs_only:
        return False
    return any(weight is None or _gets_gradient(weight) for weight in saved.weights)


def _gets_gradient(weight: Node | Tensor) -> bool:
    """Return whether the running backward pass computes the gradient of a weight."""
    node = get_gradient_edge(weight).node if isinstance(weight, Tensor) else weight
    try:
        return bool(torch._C._will_engine_execute_node(node))
    except RuntimeError:  # the weight is among the inputs of torch.autograd.grad
        return True

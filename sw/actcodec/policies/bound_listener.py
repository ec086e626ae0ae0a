"""What the layers of a running model ask of the tensors that they read: AC-GC's bounds from gradients as they come back.

Gradients are those of one layer in one step: the hooks are on the graph's own nodes, below the layer's result and above its
weight or input, and go with the graph. Nothing is left on the model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite, prod, sqrt
from typing import Any

import torch
from cdu_tools.errors import UserError
from torch import Tensor
from torch.autograd.graph import Node, get_gradient_edge

from actcodec.policies.bounds import (
    PRODUCT_CONSTANT,
    VARIANCE_GROWTH,
    Demand,
    batch_norm_demand,
    convolution_reach,
    layer_norm_demand,
    product_demand,
)
from actcodec.policies.recurring import on_gradient
from actcodec.saved.operations import Operation, is_parameter, leaf_of

#: Of convolutions of all ranks: the positions of ``stride`` and ``groups`` among the arguments.
_STRIDE, _GROUPS = 3, 6
#: Nodes between a layer's result and its weight: views, casts, transposition, the sum with a bias.
_SEARCH_LIMIT = 12
#: ``torch.batch_norm`` has more arguments than ``F.batch_norm``, in another order.
_BATCH_NORM_ARGUMENTS = 8


@dataclass(frozen=True)
class BoundOptions:
    """How strict bounds are.

    Parameters
    ----------
    variance_growth
        e**2, by which part the variance of a gradient may grow, positive (paper: 0.5; public code: 1).
    conv_constant
        k of convolutions, positive (paper: 1/2; one of two public code bases: 2).
    independent
        Whether the errors of values are independent of one another and have mean zero, so that they average out.
    """

    variance_growth: float = VARIANCE_GROWTH
    conv_constant: float = PRODUCT_CONSTANT
    independent: bool = False

    def __post_init__(self) -> None:
        for name in ("variance_growth", "conv_constant"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not (isfinite(value) and value > 0):
                raise UserError(f"{name} = {value!r} is not allowed: use a positive finite number")
        if not isinstance(self.independent, bool):
            raise UserError(f"independent = {self.independent!r} is not allowed: use True or False")


def bounded_kind(operation: Operation) -> str | None:
    """The kind of bound that a layer has, ``product``, ``batch_norm`` or ``layer_norm``; None where AC-GC has none."""
    if _weight(operation) is not None:
        return "product"
    if operation.function == "batch_norm" and len(operation.args) + len(operation.kwargs) <= _BATCH_NORM_ARGUMENTS:
        # With running statistics nothing but gamma's gradient depends on the input.
        return "batch_norm" if _argument(operation, 5, "training", False) else None
    return "layer_norm" if operation.function == "layer_norm" else None


def listen(operation: Operation, output: Tensor, values: int, options: BoundOptions, learn: Callable[[Demand], None]) -> None:
    """Call ``learn`` with what a layer asks of the tensor that it reads, once its gradients have come back.

    It is never called where no gradient depends on the tensor. The layer is ``operation``, of a kind that has a bound, with the
    result ``output``; the tensor has so many ``values``.
    """
    kind = bounded_kind(operation)
    if kind == "product":
        _listen_to_product(operation, output, values, options, learn)
    elif kind is not None:
        _listen_to_norm(kind, operation, output, options, learn)


def _listen_to_product(
    operation: Operation, output: Tensor, values: int, options: BoundOptions, learn: Callable[[Demand], None]
) -> None:
    weight = _weight(operation)
    assert weight is not None, "is a product"
    found = _edge(output, weight)
    if found is None:
        return
    reach, constant = 1.0, PRODUCT_CONSTANT
    if operation.name == "conv":
        kernel = weight.shape[2:]
        stride = _per_axis(_argument(operation, _STRIDE, "stride", 1), len(kernel))
        reach = convolution_reach(kernel, stride, _argument(operation, _GROUPS, "groups", 1))
        constant = options.conv_constant
        # A weight's gradient is a sum over the places of the map with the fewer of them.
        summed = (values if "transpose" in operation.function else output.numel()) // weight.shape[0]
    else:
        summed = round(sqrt(values * output.numel() / weight.numel()))
    averaged = max(summed, 1) if options.independent else 1
    norms: deque[Tensor] = deque(maxlen=1)
    on_gradient(output, lambda gradient: norms.append(torch.linalg.vector_norm(gradient, dtype=torch.float64)))

    def of_weight(gradient: Tensor, _: Tensor) -> None:
        if norms:
            learn(product_demand(norms.pop(), gradient, values, reach, constant, averaged))

    _on_input_gradient(*found, of_weight)


def _listen_to_norm(
    kind: str, operation: Operation, output: Tensor, options: BoundOptions, learn: Callable[[Demand], None]
) -> None:
    x = next(operation.tensors())
    found = _edge(output, x) if x.requires_grad else None
    if found is None or found[0] is not output.grad_fn:
        return
    values = x.detach().to(torch.float64)
    if kind == "batch_norm":
        channels = values.transpose(0, 1).flatten(1)
        gamma, eps = _argument(operation, 3, "weight", None), _argument(operation, 7, "eps", 1e-5)
        largest = channels.abs().amax(1)
    else:
        size = prod(_argument(operation, 1, "normalized_shape", ()))
        channels = values.reshape(-1, size)
        gamma, eps = _argument(operation, 2, "weight", None), _argument(operation, 4, "eps", 1e-5)
    sigma = (channels.var(1, correction=0) + eps).sqrt()
    count = len(channels) if kind == "batch_norm" else channels.shape[1]
    factor = sigma.new_ones(count) if gamma is None else gamma.detach().to(torch.float64, copy=True).flatten()

    def both(dx: Tensor, gradient: Tensor) -> None:
        if kind == "batch_norm":
            learn(batch_norm_demand(gradient, dx, sigma, factor, largest, independent=options.independent))
        else:
            learn(layer_norm_demand(gradient, dx, sigma, factor, independent=options.independent))

    _on_input_gradient(*found, both)


def _on_input_gradient(node: Node, place: int, learn: Callable[[Tensor, Tensor], None]) -> None:
    """Call ``learn`` with the gradient that a node passes to one of its inputs, and the first one that it got itself."""

    def hook(inputs: Sequence[Tensor | None], outputs: Sequence[Tensor | None]) -> None:
        mine, first = inputs[place], outputs[0]
        if mine is not None and first is not None:
            with torch.no_grad():
                learn(mine, first)

    node.register_hook(hook)


def _edge(output: Tensor, target: Tensor) -> tuple[Node, int] | None:
    """The node below ``output`` that passes a gradient to ``target``, and its place among those that it passes on."""
    wanted = get_gradient_edge(target)
    waiting = deque([output.grad_fn])
    for _ in range(_SEARCH_LIMIT):
        if not waiting:
            return None
        node = waiting.popleft()
        if node is None or node is wanted.node:
            continue
        for place, (below, number) in enumerate(node.next_functions):
            if below is wanted.node and number == wanted.output_nr:
                return node, place
            waiting.append(below)
    return None


def _weight(operation: Operation) -> Tensor | None:
    """The weight of a layer whose other factor is an activation; None where there is none, or it gets no gradient."""
    tensors = list(operation.tensors())
    weight = None
    if operation.function == "linear" or operation.function.rstrip("123d") in ("conv", "conv_transpose"):
        weight = tensors[1]
    elif operation.name == "linear":
        matrices = [tensor for tensor in tensors if tensor.ndim > 1]
        parameters = [matrix for matrix in matrices if is_parameter(matrix) or is_parameter(leaf_of(matrix))]
        weight = parameters[0] if len(parameters) == 1 else None
    return weight if weight is not None and weight.requires_grad else None


def _argument(operation: Operation, position: int, name: str, default: Any) -> Any:
    if position < len(operation.args):
        return operation.args[position]
    return operation.kwargs.get(name, default)


def _per_axis(value: int | Sequence[int], axes: int) -> Sequence[int]:
    numbers = [value] if isinstance(value, int) else list(value)
    return numbers * axes if len(numbers) == 1 else numbers

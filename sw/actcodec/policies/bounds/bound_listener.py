"""Derive AC-GC's bounds, the demands of a running model's layers on their saved tensors, from gradients in backward.

Gradients are those of one layer in one step: the hooks are on the graph's own nodes, below the layer's result and above its
weight or input, and go with the graph. Nothing is left on the model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite, sqrt

import torch
from cdu_tools.errors import UserError
from cdu_tools.numbers import is_real
from torch import Tensor
from torch.autograd.graph import Node

from actcodec.policies.bounds.gradient_edges import nodes_below, on_passed_gradient, place_of_source, places_of
from actcodec.policies.bounds.norm_listener import listen_to_norm, norm_kind
from actcodec.policies.bounds.pointwise_bounds import has_pointwise_bound, pointwise_demand_of
from actcodec.policies.bounds.scalar_bounds import (
    PRODUCT_CONSTANT,
    VARIANCE_GROWTH,
    Demand,
    convolution_reach,
    factor_demand,
    product_demand,
)
from actcodec.policies.recurring import on_gradient
from actcodec.saved.operations import Operation, Source, is_parameter, leaf_of, plain
from actcodec.saved.operations import source as source_of

#: Positions of ``stride`` and ``groups`` among the arguments of convolutions of all ranks.
_STRIDE, _GROUPS = 3, 6
#: Functions that multiply two activations; the nodes that do so within them, with the positions of the factors.
_FACTORS = frozenset(["mul", "imul", "rmul", "multiply", "matmul", "rmatmul", "mm", "bmm", "baddbmm", "addmm", "einsum"])
_ELEMENTWISE = "MulBackward0"
_FACTOR_PLACES = {
    _ELEMENTWISE: (0, 1),
    "MmBackward0": (0, 1),
    "BmmBackward0": (0, 1),
    "AddmmBackward0": (1, 2),
    "BaddbmmBackward0": (1, 2),
}
#: Pointwise functions that are one node each.
_POINTWISE = frozenset(
    ("gelu", "silu", "mish", "softplus", "logsigmoid", "exp", "square", "pow", "ipow", "tanh", "sigmoid", "specialexpit")
)


@dataclass(frozen=True)
class BoundOptions:
    """Options for the strictness of bounds.

    Parameters
    ----------
    variance_growth
        e**2, the relative growth allowed to the variance of a gradient, positive (paper: 0.5; public code: 1).
    conv_constant
        k of convolutions, positive (paper: 1/2; one of two public code bases: 2).
    independent
        True if the errors of values are independent with mean zero, so that they average out.
    """

    variance_growth: float = VARIANCE_GROWTH
    conv_constant: float = PRODUCT_CONSTANT
    independent: bool = False

    def __post_init__(self) -> None:
        for name in ("variance_growth", "conv_constant"):
            value = getattr(self, name)
            if not (is_real(value) and isfinite(value) and value > 0):
                raise UserError(f"{name} = {value!r} is not allowed: use a positive finite number")
        if not isinstance(self.independent, bool):
            raise UserError(f"independent = {self.independent!r} is not allowed: use True or False")


@dataclass(frozen=True)
class Bound:
    """The bound of one tensor that an operation saves."""

    kind: str
    listen: Callable[[Callable[[Demand], None]], None]  #: registers a callback that gets the demand after backward


def bound_of(operation: Operation, output: Tensor, source: Source, values: int, options: BoundOptions) -> Bound | None:
    """Return the bound of a saved tensor; None where AC-GC has none.

    The bound is never reported if no gradient depends on the tensor.

    Parameters
    ----------
    operation, output
        Operation that saves the tensor, and its result.
    source, values
        Position in the graph where the tensor's gradient goes, and the tensor's number of values.
    options
        Strictness of the bound.
    """
    weight = _weight(operation)
    if weight is not None:
        return Bound("product", partial(_listen_to_product, operation, output, weight, values, options))
    kind = norm_kind(operation)
    # Parts of a written-out RMS norm also save the result before the factor, which this bound does not cover.
    if kind is not None and (kind != "rms_norm" or source == source_of(next(operation.tensors()))):
        return Bound(kind, partial(listen_to_norm, kind, operation, output, independent=options.independent))
    function = plain(operation.function)
    if function in _FACTORS or kind == "rms_norm":
        return _factor_bound(output, source, independent=options.independent)
    return _pointwise_bound(output) if function in _POINTWISE else None


def _factor_bound(output: Tensor, source: Source, *, independent: bool) -> Bound | None:
    for node in nodes_below(output, source[0]):
        places = _FACTOR_PLACES.get(node.name())
        mine = None if places is None else place_of_source(node, source, places)
        if places is not None and mine is not None:
            # (n, k) times (k, m): k is the last axis of the first factor, and the one before of the second.
            other, axis = (places[1], -2) if mine == places[0] else (places[0], -1)
            demand = partial(
                _factor_demand,
                axis=None if node.name() == _ELEMENTWISE else axis,
                scale=float(getattr(node, "_saved_alpha", 1)),
                independent=independent,
            )
            return Bound("factor", partial(_hear_node, node, other, demand))
    return None


def _factor_demand(gradient: Tensor, other: Tensor, *, axis: int | None, scale: float, independent: bool) -> Demand:
    return factor_demand(scale * gradient, other, 1 if axis is None else other.shape[axis], independent=independent)


def _pointwise_bound(output: Tensor) -> Bound | None:
    node = output.grad_fn
    if node is None or not has_pointwise_bound(node):
        return None
    return Bound("pointwise", partial(_hear_node, node, 0, pointwise_demand_of(node)))


def _hear_node(node: Node, place: int, demand: Callable[[Tensor, Tensor], Demand], learn: Callable[[Demand], None]) -> None:
    """Report the demand that follows from the gradients that a node receives and passes on; the hook does not hold the node."""
    on_passed_gradient(node, place, lambda passed, gradient: learn(demand(gradient, passed)))


def _listen_to_product(
    operation: Operation, output: Tensor, weight: Tensor, values: int, options: BoundOptions, learn: Callable[[Demand], None]
) -> None:
    places = places_of(output, weight)
    if not places:
        return
    reach, constant = 1.0, PRODUCT_CONSTANT
    if operation.name == "conv":
        kernel = weight.shape[2:]
        stride = _per_axis(operation.argument(_STRIDE, "stride", 1), len(kernel))
        reach = convolution_reach(kernel, stride, operation.argument(_GROUPS, "groups", 1))
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

    on_passed_gradient(*places[0], of_weight)


def _weight(operation: Operation) -> Tensor | None:
    """Return the weight of a layer whose other factor is an activation; None if there is none, or if it gets no gradient."""
    tensors = list(operation.tensors())
    weight = None
    if operation.function == "linear" or operation.function.rstrip("123d") in ("conv", "conv_transpose"):
        weight = tensors[1]
    elif operation.name == "linear":
        matrices = [tensor for tensor in tensors if tensor.ndim > 1]
        parameters = [matrix for matrix in matrices if is_parameter(matrix) or is_parameter(leaf_of(matrix))]
        weight = parameters[0] if len(parameters) == 1 else None
    return weight if weight is not None and weight.requires_grad else None


def _per_axis(value: int | Sequence[int], axes: int) -> Sequence[int]:
    numbers = [value] if isinstance(value, int) else list(value)
    return numbers * axes if len(numbers) == 1 else numbers

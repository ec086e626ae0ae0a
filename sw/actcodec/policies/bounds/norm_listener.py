"""Derive the demand of a normalisation in a running model on its input: from statistics at once, then from gradients."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from math import prod

import torch
from torch import Tensor

from actcodec.policies.bounds.gradient_edges import on_total_gradient, places_of
from actcodec.policies.bounds.norm_bounds import batch_norm_demand, group_norm_demand, layer_norm_demand, rms_norm_demand
from actcodec.policies.bounds.scalar_bounds import Demand
from actcodec.policies.recurring import on_gradient
from actcodec.saved.operations import Operation

#: ``torch.batch_norm`` has more arguments than ``F.batch_norm``, in another order.
_BATCH_NORM_ARGUMENTS = 8
_FromGradients = Callable[[Tensor, Tensor], Demand]


def norm_kind(operation: Operation) -> str | None:
    """Return the kind of bound of a normalisation, its function's name; None where AC-GC has none."""
    if operation.function == "batch_norm" and len(operation.args) + len(operation.kwargs) <= _BATCH_NORM_ARGUMENTS:
        # With running statistics only gamma's gradient depends on the input.
        return "batch_norm" if operation.argument(5, "training", False) else None
    if operation.function == "instance_norm":
        return "instance_norm" if operation.argument(5, "use_input_stats", True) else None
    return operation.function if operation.function in ("layer_norm", "group_norm", "rms_norm") else None


def listen_to_norm(
    kind: str, operation: Operation, output: Tensor, learn: Callable[[Demand], None], *, independent: bool
) -> None:
    """Call ``learn`` with the demand on the input once gradients have come back; never if no gradient goes to the input."""
    x = next(operation.tensors())
    places = places_of(output, x) if x.requires_grad else []
    if not places:
        return
    demand = _demand(kind, operation, x.detach().to(torch.float64), independent=independent)
    received: deque[Tensor] = deque(maxlen=1)
    on_gradient(output, received.append)

    def both(dx: Tensor) -> None:
        if received:
            gradient = received.pop()
            # Rounding by autocast hides the part of the gradient along the input.
            if gradient.dtype == dx.dtype:
                learn(demand(gradient, dx))

    on_total_gradient(places, both)


def _demand(kind: str, operation: Operation, x: Tensor, *, independent: bool) -> _FromGradients:
    """Return a function that computes the demand from G and dX; x is float64."""
    if kind == "batch_norm":
        channels = x.transpose(0, 1).flatten(1)
        sigma = _deviation(channels, operation.argument(7, "eps", 1e-5))
        gamma, largest = _factor(operation, 3, sigma, len(channels)), channels.abs().amax(1)
        return partial(batch_norm_demand, sigma=sigma, gamma=gamma, largest=largest, independent=independent)
    if kind in ("group_norm", "instance_norm"):
        grouped = kind == "group_norm"
        groups = operation.argument(1, "num_groups", 1) if grouped else x.shape[1]
        rows = x.reshape(x.shape[0] * groups, -1)
        sigma = _deviation(rows, operation.argument(4 if grouped else 7, "eps", 1e-5))
        gamma = _factor(operation, 2 if grouped else 3, sigma, x.shape[1])
        return partial(group_norm_demand, sigma=sigma, gamma=gamma, independent=independent)
    size = prod(operation.argument(1, "normalized_shape", ()))
    rows = x.reshape(-1, size)
    if kind == "layer_norm":
        sigma = _deviation(rows, operation.argument(4, "eps", 1e-5))
        return partial(layer_norm_demand, sigma=sigma, gamma=_factor(operation, 2, sigma, size), independent=independent)
    eps = operation.argument(3, "eps", None)
    least = torch.finfo(next(operation.tensors()).dtype).eps if eps is None else eps
    sigma = (rows.square().mean(1) + least).sqrt()
    return partial(rms_norm_demand, sigma=sigma, gamma=_factor(operation, 2, sigma, size), independent=independent)


def _deviation(rows: Tensor, eps: float) -> Tensor:
    return (rows.var(1, correction=0) + eps).sqrt()


def _factor(operation: Operation, position: int, like: Tensor, size: int) -> Tensor:
    """Return the current gamma, float64, or ones."""
    gamma = operation.argument(position, "weight", None)
    return like.new_ones(size) if gamma is None else gamma.detach().to(torch.float64, copy=True).flatten()
